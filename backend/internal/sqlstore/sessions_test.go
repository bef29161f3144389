package sqlstore_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestSessions(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunSessions(t, func(t *testing.T) (storetest.SessionStore, func(string)) {
			where := database(t)
			s := openStore(t, where)
			t.Cleanup(func() { s.Close() })
			return s, func(statement string) { execute(t, where, statement) }
		})
	})
}

// execute runs a statement as an operator's own client would.
func execute(t *testing.T, database, statement string) {
	t.Helper()
	db := connect(t, database)
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, database string) *sql.DB {
	t.Helper()
	driver, name := "sqlite", "file:"+database
	if strings.HasPrefix(database, "postgres") {
		driver, name = "pgx", database
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	return db
}
