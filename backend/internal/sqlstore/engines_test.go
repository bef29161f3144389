package sqlstore_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/sqlstore"
	"github.com/service-dev/service/backend/internal/storetest"
	"github.com/service-dev/service/packaging/pgtest"
	"github.com/service-dev/service/packaging/reaper"
)

var postgres *pgtest.Cluster

func TestMain(m *testing.M) {
	useMemory()
	os.Exit(reaper.Run(func() int {
		if os.Getenv("SERVICE_TEST_GROUP_FILE") != "" { // a process that is to be killed, and could stop nothing
			return m.Run()
		}
		cluster, err := pgtest.Start()
		switch {
		case errors.Is(err, pgtest.ErrMissing):
			fmt.Fprintln(os.Stderr, "SKIPPING every test on PostgreSQL:", err)
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			return 1
		default:
			postgres = cluster
			defer cluster.Stop()
		}
		return m.Run()
	}))
}

// eachBlank runs f with a function that makes a database without tables and gives its address.
func eachBlank(t *testing.T, f func(t *testing.T, database func(t *testing.T) string)) {
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) string { return filepath.Join(t.TempDir(), "service.db") })
	})
	t.Run("postgres", func(t *testing.T) {
		if postgres == nil {
			pgtest.Missing(t)
		}
		f(t, func(t *testing.T) string { return postgres.Database(t) })
	})
}

// eachEngine runs f with a function that makes a database without content and gives its address. The database is a copy
// of one that was migrated: migrating each anew would take a third of these tests' time.
func eachEngine(t *testing.T, f func(t *testing.T, database func(t *testing.T) string)) {
	eachBlank(t, func(t *testing.T, database func(t *testing.T) string) {
		migrated := database(t)
		if err := openStore(t, migrated).Close(); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(migrated, "postgres") {
			f(t, func(t *testing.T) string { return postgres.Copy(t, migrated) })
			return
		}
		content, err := os.ReadFile(migrated)
		if err != nil {
			t.Fatal(err)
		}
		f(t, func(t *testing.T) string {
			where := filepath.Join(t.TempDir(), "service.db")
			if err := os.WriteFile(where, content, 0o600); err != nil {
				t.Fatal(err)
			}
			return where
		})
	})
}

func openStore(t *testing.T, database string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), database, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLinks(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunLinks(t, storetest.Engine{Rounds: 200, Open: func(t *testing.T) (storetest.Store, func() storetest.Store) {
			where := database(t)
			open := openStore(t, where)
			t.Cleanup(func() { open.Close() })
			return open, func() storetest.Store {
				if err := open.Close(); err != nil {
					t.Error(err)
				}
				open = openStore(t, where)
				return open
			}
		}})
	})
}
