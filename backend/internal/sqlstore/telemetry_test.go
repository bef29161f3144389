package sqlstore_test

import (
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
	"github.com/service-dev/service/backend/internal/telemetry"
)

func TestTelemetry(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunTelemetry(t, func(t *testing.T) telemetry.Store {
			s := openStore(t, database(t))
			t.Cleanup(func() { s.Close() })
			return s
		})
	})
}
