package sqlstore_test

import (
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestSessions(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunSessions(t, func(t *testing.T) storetest.SessionStore {
			s := openStore(t, database(t))
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
}
