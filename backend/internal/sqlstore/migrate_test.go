package sqlstore_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/packaging/pgtest"
)

// The dumps are what the main-job version left after a linked person's day (packaging/e2e, TestDumpHoldsNoSecret).
// Every later version must open them with nothing lost.
func TestOpensTheMainJobsDatabase(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		where := filepath.Join(t.TempDir(), "service.db")
		script, err := os.ReadFile("testdata/mainjob.sqlite.sql")
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", "file:"+where)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(string(script)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		holdsTheDay(t, where)
	})
	t.Run("postgres", func(t *testing.T) {
		if postgres == nil {
			pgtest.Missing(t)
		}
		where := postgres.Database(t)
		postgres.Load(t, where, "testdata/mainjob.postgres.sql")
		holdsTheDay(t, where)
	})
}

func holdsTheDay(t *testing.T, database string) {
	t.Helper()
	s := openStore(t, database)
	defer s.Close()
	for _, email := range []string{"day@example.org", "night@example.org"} {
		a, err := s.AccountByEmail(t.Context(), email)
		if err != nil || !a.Active {
			t.Fatalf("%s: %v, %v", email, a, err)
		}
		links, err := s.Links(t.Context(), email)
		if err != nil || len(links) != 1 || !links[0].RevokedAt.IsZero() {
			t.Errorf("links of %s: %v, %v", email, links, err)
		}
		// The sessions of that day are over today; their rows and logs are what must not be lost.
		open, err := s.OpenSessions(t.Context(), a.ID, time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
		if err != nil || len(open) != 1 || open[0].Project != "com.example.day" {
			t.Fatalf("sessions of %s: %v, %v", email, open, err)
		}
		rows, err := s.SessionEvents(t.Context(), open[0].ID, 0, 100)
		if err != nil || int64(len(rows)) != open[0].LastSeq {
			t.Fatalf("%d rows, last seq %d (%v)", len(rows), open[0].LastSeq, err)
		}
		var types []string
		for _, r := range rows {
			types = append(types, r.Type)
		}
		if !strings.Contains(strings.Join(types, " "), "app.attached") {
			t.Errorf("rows of %s: %v", email, types)
		}
	}
}
