//go:build unix

package e2e

import (
	"errors"
	"sync"
	"testing"

	"github.com/service-dev/service/packaging/pgtest"
)

var cluster = sync.OnceValues(pgtest.Start)

// newPostgres returns the URL of an empty database on the test binary's own server, which TestMain stops.
func newPostgres(t *testing.T) string {
	t.Helper()
	c, err := cluster()
	if errors.Is(err, pgtest.ErrMissing) {
		pgtest.Missing(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	started.Store(c)
	return c.Database(t)
}
