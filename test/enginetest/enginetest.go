// Package enginetest runs tests on each database engine of the backend, SQLite and PostgreSQL.
package enginetest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite" // driver "sqlite"

	"github.com/service-dev/service/test/pgtest"
)

var postgres *pgtest.Cluster

// Run runs the tests of a binary with a PostgreSQL cluster and returns their exit code. TestMain must call UseMemory
// first, and then Run inside reaper.Run.
func Run(m *testing.M) int {
	cluster, err := pgtest.Start()
	switch {
	case errors.Is(err, pgtest.ErrMissing):
		fmt.Fprintln(os.Stderr, "SKIPPING all tests on PostgreSQL:", err)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	default:
		postgres = cluster
		defer cluster.Stop()
	}
	return m.Run()
}

// Postgres returns the cluster that Run started. If there is none, it ends the test with pgtest.Missing.
func Postgres(t testing.TB) *pgtest.Cluster {
	t.Helper()
	if postgres == nil {
		pgtest.Missing(t)
	}
	return postgres
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

// migrated holds the databases of the first migration by this binary, one per engine.
var migrated struct {
	sync.Mutex
	sqlite   []byte // the file
	postgres string // the URL
}

// EachMigrated is like EachBlank, but with databases that migrate has migrated. They are copies of the first one,
// because migrating each would take a third of the time of the store's tests: every call in a test binary must pass the
// same migrate.
func EachMigrated(
	t *testing.T, migrate func(t *testing.T, address string), f func(t *testing.T, database func(t *testing.T) string),
) {
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) string {
			file := filepath.Join(t.TempDir(), "service.db")
			must(t, os.WriteFile(file, migratedFile(t, migrate), 0o600))
			return file
		})
	})
	t.Run("postgres", func(t *testing.T) {
		cluster := Postgres(t)
		f(t, func(t *testing.T) string { return cluster.Copy(t, migratedURL(t, migrate)) })
	})
}

func migratedFile(t *testing.T, migrate func(t *testing.T, address string)) []byte {
	t.Helper()
	migrated.Lock()
	defer migrated.Unlock()
	if migrated.sqlite == nil {
		file := filepath.Join(t.TempDir(), "migrated.db")
		migrate(t, file)
		content, err := os.ReadFile(file)
		must(t, err)
		migrated.sqlite = content
	}
	return migrated.sqlite
}

func migratedURL(t *testing.T, migrate func(t *testing.T, address string)) string {
	t.Helper()
	migrated.Lock()
	defer migrated.Unlock()
	if migrated.postgres == "" {
		address, err := postgres.Create()
		must(t, err)
		migrate(t, address)
		migrated.postgres = address
	}
	return migrated.postgres
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
