package account

import (
	"log/slog"
	"testing"

	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/secret"
)

// newService returns a service on an empty database.
func newService(t *testing.T) *Service {
	t.Helper()
	return New(Options{Store: NewStore(dbtest.Open(t)), Hasher: secret.NewHasher(make([]byte, 32)),
		Log: slog.New(slog.DiscardHandler)})
}
