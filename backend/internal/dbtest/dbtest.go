// Package dbtest opens databases for tests.
package dbtest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/test/enginetest"
)

// migrated returns the content of an empty database. It is migrated once per process, because a migration takes longer
// than most tests.
var migrated = sync.OnceValues(func() ([]byte, error) {
	enginetest.UseMemory()
	dir, err := os.MkdirTemp("", "dbtest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "service.db")
	d, err := db.Open(context.Background(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// File returns the path of an empty, migrated SQLite database. On Linux it is in memory.
func File(t testing.TB) string {
	t.Helper()
	content, err := migrated()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "service.db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Open opens a new database from File, and closes it at the end of the test.
func Open(t testing.TB) *db.DB {
	t.Helper()
	d, err := db.Attach(t.Context(), File(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// AddAccount inserts an active account with the address id@example.org and without a password.
func AddAccount(t testing.TB, d *db.DB, id string) {
	t.Helper()
	Exec(t, d, `INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at)
		VALUES ($1, $1 || '@example.org', '', 'active', 1, 1)`, id)
}

// AddProject inserts a project of an account.
func AddProject(t testing.TB, d *db.DB, accountID, id string) {
	t.Helper()
	Exec(t, d, "INSERT INTO projects (account_id, app_id, created_at) VALUES ($1, $2, 1)", accountID, id)
}

// Exec runs a statement.
func Exec(t testing.TB, d *db.DB, statement string, args ...any) {
	t.Helper()
	if _, err := d.Exec(t.Context(), "prepare test", statement, args...); err != nil {
		t.Fatal(err)
	}
}
