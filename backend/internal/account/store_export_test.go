package account

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/link"
)

// Every table is exported or listed as not exported, and its rows are deleted with the account.
func TestTables_ExportedOrListedAndDeletedWithAccount(t *testing.T) {
	s := NewStore(dbtest.Open(t))
	for _, table := range s.list(t, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
		given := slices.ContainsFunc(exportSections,
			func(e exportSection) bool { return strings.Fields(e.table)[0] == table })
		if given == slices.Contains(notExported, table) {
			t.Errorf("%s: list it in store_export.go as either exported or not exported", table)
		}
		columns := s.list(t, "SELECT name FROM pragma_table_info('"+table+"')")
		if slices.Contains(columns, "account_id") && !s.goesWithTheAccount(t, table, 0) {
			t.Errorf("%s: account_id does not reference accounts with ON DELETE CASCADE", table)
		}
	}
	ignore := func(string, map[string]any) error { return nil }
	if err := s.ExportAccount(t.Context(), "ada", ignore); err != nil {
		t.Error(err)
	}
	for _, e := range exportSections {
		for column := range strings.SplitSeq(e.columns, ",") {
			if name := strings.TrimSpace(column); neverExported[name] {
				t.Errorf("section %s exports %s, which must never be exported", e.name, name)
			}
		}
	}
}

// Deleting an account also removes it from the journal of a running server. A reader that still sees the earlier state
// delays this until the next sweep.
func TestDeleteAccount_TruncatesJournal(t *testing.T) {
	file := dbtest.File(t)
	dir := filepath.Dir(file)
	d, err := db.Attach(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s := NewStore(d)
	const email = "nobody-else@example.org"
	insert := func() {
		t.Helper()
		if err := s.InsertAccount(t.Context(), Account{ID: "a", Email: email, PasswordHash: "x",
			CreatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if len(filesWith(t, dir, email)) == 0 {
			t.Fatal("found no file that contains the existing account")
		}
	}
	insert()
	if err := s.DeleteAccount(t.Context(), "a", time.Now()); err != nil {
		t.Fatal(err)
	}
	if left := filesWith(t, dir, email); left != nil {
		t.Errorf("the deleted account is still in %q", left)
	}

	insert()
	client, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	reader, err := client.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Rollback()
	var n int
	if err := reader.QueryRow("SELECT COUNT(*) FROM accounts").Scan(&n); err != nil || n != 1 {
		t.Fatalf("the reader sees %d accounts (error %v), want 1", n, err)
	}
	if err := s.DeleteAccount(t.Context(), "a", time.Now()); err != nil {
		t.Errorf("deletion while a reader is open: %v", err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	var timeout int
	err = s.Write(t.Context(), func(tx *sql.Tx) error { return tx.QueryRow("PRAGMA busy_timeout").Scan(&timeout) })
	if err != nil || timeout < 5000 {
		t.Errorf("the writer's busy timeout is %d ms (error %v), want the usual one", timeout, err)
	}
	now := time.Now()
	if _, err := link.NewStore(d).Sweep(t.Context(), now, now, now, audit.Trace{}); err != nil {
		t.Fatal(err)
	}
	if left := filesWith(t, dir, email); left != nil {
		t.Errorf("after the sweep the account is still in %q", left)
	}
}

// filesWith returns the names of the files in a directory that contain a text.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			found = append(found, filepath.Base(file))
		}
	}
	return found
}

func (s *Store) goesWithTheAccount(t *testing.T, table string, deep int) bool {
	if table == "accounts" {
		return true
	}
	parents := s.list(t, "SELECT \"table\" FROM pragma_foreign_key_list('"+table+
		"') WHERE on_delete = 'CASCADE' AND \"from\" = 'account_id'")
	return deep < 5 && slices.ContainsFunc(parents, func(p string) bool { return s.goesWithTheAccount(t, p, deep+1) })
}

func (s *Store) list(t *testing.T, query string) []string {
	t.Helper()
	all, err := db.All(t.Context(), s, db.Value[string], query)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
