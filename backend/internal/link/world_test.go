package link

import (
	"log/slog"
	"testing"

	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/secret"
)

// newService returns a service on an empty database.
func newService(t *testing.T, set Settings) *Service {
	t.Helper()
	return New(Options{Store: NewStore(dbtest.Open(t)), Hasher: secret.NewHasher(make([]byte, 32)), Settings: set,
		Log: slog.New(slog.DiscardHandler)})
}
