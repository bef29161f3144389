package sqlstore_test

import (
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestConnectionPages(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunConnectionPages(t, func(t *testing.T) storetest.ConnectionPageStore {
			s := openStore(t, database(t))
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
}
