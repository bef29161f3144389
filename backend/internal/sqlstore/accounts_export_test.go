package sqlstore

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whoever adds a table decides whether its rows are handed out, and sees to it that they go with the account.
func TestEveryTableIsExportedOrNotAndGoesWithTheAccount(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "service.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, table := range s.list(t, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
		given := slices.ContainsFunc(exports, func(e exported) bool { return strings.Fields(e.table)[0] == table })
		if given == slices.Contains(notExported, table) {
			t.Errorf("%s: say in accounts_export.go whether it is exported", table)
		}
		columns := s.list(t, "SELECT name FROM pragma_table_info('"+table+"')")
		if slices.Contains(columns, "account_id") && !s.goesWithTheAccount(t, table, 0) {
			t.Errorf("%s: account_id does not lead to accounts by ON DELETE CASCADE", table)
		}
	}
	for _, e := range exports {
		for column := range strings.SplitSeq(e.columns, ",") {
			if name := strings.TrimSpace(column); neverExported[name] {
				t.Errorf("%s exports %s", e.section, name)
			}
		}
	}
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
