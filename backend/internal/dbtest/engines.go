package dbtest

import (
	"database/sql"
	"flag"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/test/enginetest"
)

// EachEngine runs f on every engine. The function passed to f creates an empty, migrated database and returns its
// address. TestMain must call enginetest.Run.
func EachEngine(t *testing.T, f func(t *testing.T, database func(t *testing.T) string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, func(t *testing.T) string { return File(t) }) })
	t.Run("postgres", func(t *testing.T) {
		enginetest.Postgres(t)
		f(t, Postgres)
	})
}

// template is the migrated database on PostgreSQL that Postgres copies.
var template struct {
	sync.Mutex
	address string
}

// Postgres returns the address of an empty, migrated database on PostgreSQL. TestMain must call enginetest.Run.
func Postgres(t *testing.T) string {
	t.Helper()
	return enginetest.Postgres(t).Copy(t, templateOn(t))
}

// templateOn returns the address of the database that Postgres copies.
func templateOn(t *testing.T) string {
	t.Helper()
	template.Lock()
	defer template.Unlock()
	if template.address == "" {
		address, err := enginetest.Postgres(t).Create()
		if err != nil {
			t.Fatal(err)
		}
		if err := OpenAt(t, address).Close(); err != nil {
			t.Fatal(err)
		}
		template.address = address
	}
	return template.address
}

// OpenAt opens and migrates the database at an address.
func OpenAt(t *testing.T, address string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// AwaitLock returns once a transaction in the client's database is waiting for another transaction.
func AwaitLock(t *testing.T, client *sql.DB) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		waiting := 0
		err := client.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if waiting > 0 {
			return
		}
	}
	t.Fatal("no transaction is waiting for a lock")
}

// SetModelRuns sets the number of runs of a rapid model, unless the command line sets it.
func SetModelRuns(t *testing.T) {
	t.Helper()
	checks, steps := "20", "40"
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		checks, steps = "500", "80"
	}
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.steps": steps, "rapid.nofailfile": "true"} {
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
		if given {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
}
