// Package enginetest runs tests on each database engine of the backend, SQLite and PostgreSQL.
package enginetest

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // driver "sqlite"

	"github.com/service-dev/service/test/pgtest"
)

// postgres is the cluster of this test binary, which the first test that needs it starts.
var postgres struct {
	sync.Once
	cluster *pgtest.Cluster
	err     error
}

// Run runs the tests of a binary and returns their exit code. TestMain must call it inside reaper.Run.
func Run(m *testing.M) int {
	UseMemory()
	defer func() {
		if postgres.cluster != nil {
			postgres.cluster.Stop()
		}
	}()
	return m.Run()
}

// Postgres returns the binary's PostgreSQL cluster. If PostgreSQL is not installed, it ends the test with
// pgtest.Missing. TestMain must call Run.
func Postgres(t testing.TB) *pgtest.Cluster {
	t.Helper()
	postgres.Do(func() { postgres.cluster, postgres.err = pgtest.Start() })
	switch {
	case errors.Is(postgres.err, pgtest.ErrMissing):
		pgtest.Missing(t)
	case postgres.err != nil:
		t.Fatal(postgres.err)
	}
	return postgres.cluster
}

// EachBlank runs f on every engine. The function passed to f creates a database without tables and returns its URL or
// path.
func EachBlank(t *testing.T, f func(t *testing.T, database func(t *testing.T) string)) {
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) string { return filepath.Join(t.TempDir(), "service.db") })
	})
	t.Run("postgres", func(t *testing.T) {
		cluster := Postgres(t)
		f(t, func(t *testing.T) string { return cluster.Database(t) })
	})
}

// IsPostgres reports whether a database address is a PostgreSQL URL.
func IsPostgres(address string) bool { return strings.HasPrefix(address, "postgres") }

// Connect opens a database without the store, as an operator's SQL client does.
func Connect(t testing.TB, address string) *sql.DB {
	t.Helper()
	driver, name := "sqlite", "file:"+address+"?_pragma=busy_timeout(10000)"
	if IsPostgres(address) {
		driver, name = "pgx", address
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
