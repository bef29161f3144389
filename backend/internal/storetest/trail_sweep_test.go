package storetest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/test/enginetest"
)

// A sweep deletes more lines than one transaction may: old lines of every kind, and the oldest of the lines that anyone
// can trigger.
func TestSweepTrail_InParts(t *testing.T) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		where := database(t)
		s := dbtest.OpenAt(t, where)
		t.Cleanup(func() { s.Close() })
		client := enginetest.Connect(t, where)
		defer client.Close()
		// Every tenth of the lines at 1..5000 is an approval; all lines at 10001..15000 are codes.
		for _, statement := range []string{`INSERT INTO link_trail (id, at, action, code_ref, link_ref, account_ref, address_ref)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
			SELECT 'a' || i, i, CASE WHEN i % 10 = 0 THEN 'approve' ELSE 'view' END, '', '', '', '' FROM n`,
			`INSERT INTO link_trail (id, at, action, code_ref, link_ref, account_ref, address_ref)
			SELECT 'b' || id, at + 10000, 'issue', '', '', '', '' FROM link_trail`} {
			if _, err := client.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			old        int64
			keep       int
			want, left int64
		}{{0, 9500, 0, 10_000}, {0, 7000, 2500, 7500}, {0, 100, 6900, 600}, {10_000, 100, 500, 100}} {
			if n, err := audit.NewStore(s).SweepTrail(t.Context(), time.UnixMilli(c.old), c.keep); err != nil || n != c.want {
				t.Errorf("%+v: deleted %d lines (error %v), want the number in the case", c, n, err)
			}
			var left int64
			if err := client.QueryRow("SELECT COUNT(*) FROM link_trail").Scan(&left); err != nil || left != c.left {
				t.Errorf("%+v: %d lines remain (error %v), want the number in the case", c, left, err)
			}
		}
		if lines, err := audit.NewStore(s).Trail(t.Context(), audit.TrailFilter{}); err != nil || len(lines) != 100 ||
			lines[99].At.UnixMilli() != 14_901 {
			t.Errorf("got %d lines (error %v), want the latest 100", len(lines), err)
		}
	})
}

// The journal shrinks again after a large transaction.
func TestJournal_ShrinksAfterSweep(t *testing.T) {
	where := filepath.Join(t.TempDir(), "service.db")
	s := dbtest.OpenAt(t, where)
	t.Cleanup(func() { s.Close() })
	for i, size := range []int{100 << 20, 1, 1, 1} { // the journal restarts once it has been copied
		if err := audit.NewStore(s).AddTrail(t.Context(), audit.TrailLine{ID: string(rune('a' + i)), At: time.Now(),
			Code: string(make([]byte, size))}); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(where + "-wal")
	if err != nil || info.Size() > 65<<20 {
		t.Errorf("the journal has %d bytes (error %v), want at most 65 MiB", info.Size(), err)
	}
}
