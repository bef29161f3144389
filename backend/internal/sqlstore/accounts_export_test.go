package sqlstore

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// Every table is exported or listed as not exported, and its rows are deleted with the account.
func TestTables_ExportedOrListedAndDeletedWithAccount(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "service.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, table := range s.list(t, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
		given := slices.ContainsFunc(exportSections,
			func(e exportSection) bool { return strings.Fields(e.table)[0] == table })
		if given == slices.Contains(notExported, table) {
			t.Errorf("%s: list it in accounts_export.go as either exported or not exported", table)
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
	dir := t.TempDir()
	s, err := Open(t.Context(), filepath.Join(dir, "service.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const email = "nobody-else@example.org"
	insert := func() {
		t.Helper()
		if err := s.InsertAccount(t.Context(), account.Account{ID: "a", Email: email, PasswordHash: "x",
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
	reader, err := s.reads.BeginTx(t.Context(), nil)
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
	if err := s.writes.QueryRow("PRAGMA busy_timeout").Scan(&timeout); err != nil || timeout != busyTimeout {
		t.Errorf("the writer's busy timeout is %d ms (error %v), want busyTimeout", timeout, err)
	}
	now := time.Now()
	if _, err := s.Sweep(t.Context(), now, now, now, audit.Trace{}); err != nil {
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
	parents := s.list(t, "SELECT \"table\" FROM pragma_foreign_key_list('"+table+"') WHERE on_delete = 'CASCADE' AND \"from\" = 'account_id'")
	return deep < 5 && slices.ContainsFunc(parents, func(p string) bool { return s.goesWithTheAccount(t, p, deep+1) })
}

func (s *Store) list(t *testing.T, query string) []string {
	t.Helper()
	rows, err := s.reads.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
