package sqlstore_test

import (
	"database/sql"
	"log/slog"
	"os"
	"testing"

	"github.com/service-dev/service/backend/internal/sqlstore"
	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) {
	enginetest.UseMemory()
	os.Exit(reaper.Run(func() int {
		if os.Getenv("SERVICE_TEST_GROUP_FILE") != "" { // the process that a test kills must start no cluster
			return m.Run()
		}
		return enginetest.Run(m)
	}))
}

// eachEngine runs f on every engine. The function passed to f creates an empty database and returns its address.
func eachEngine(t *testing.T, f func(t *testing.T, database func(t *testing.T) string)) {
	enginetest.EachMigrated(t, migrate, f)
}

func migrate(t *testing.T, address string) {
	t.Helper()
	if err := openStore(t, address).Close(); err != nil {
		t.Fatal(err)
	}
}

func openStore(t *testing.T, address string) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// insertProject inserts a row for a project.
func insertProject(accountID, project string) func(tx *sql.Tx) error {
	return func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO projects (account_id, app_id, created_at) VALUES ($1, $2, 1)", accountID, project)
		return err
	}
}
