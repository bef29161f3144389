package sqlstore_test

import (
	"os"
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestAnalytics(t *testing.T) {
	million := 100_000
	switch {
	case os.Getenv("SERVICE_TEST_FULL") != "":
		million = 1_000_000
	case slow:
		million = 12_000
	}
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunAnalytics(t, million, func(t *testing.T) storetest.AnalyticsStore {
			s := openStore(t, database(t))
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
}
