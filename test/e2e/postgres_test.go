//go:build unix

package e2e

import (
	"errors"
	"sync"
	"testing"

	"github.com/service-dev/service/test/pgtest"
)

var cluster = sync.OnceValues(pgtest.Start)

// newPostgres returns the URL of an empty database on this test binary's own server, which TestMain stops.
func newPostgres(t *testing.T) string {
	t.Helper()
	c := orMissing(t, cluster)
	started.Store(c)
	return c.Database(t)
}

// orMissing starts a server, or skips the test on a machine without PostgreSQL.
func orMissing(t *testing.T, start func() (*pgtest.Cluster, error)) *pgtest.Cluster {
	t.Helper()
	c, err := start()
	if errors.Is(err, pgtest.ErrMissing) {
		pgtest.Missing(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
