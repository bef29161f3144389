package sqlstore_test

import (
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestAccounts(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunAccounts(t, func(t *testing.T) (storetest.AccountStore, func(string, ...any), func() string) {
			where := database(t)
			s := openStore(t, where)
			t.Cleanup(func() { s.Close() })
			exec := func(statement string, args ...any) {
				db := connect(t, where)
				defer db.Close()
				if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
					t.Fatal(err)
				}
			}
			return s, exec, func() string { return dump(t, where) }
		})
	})
}
