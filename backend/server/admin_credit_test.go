package server

import (
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
)

func (d *desk) creditOf(args ...string) creditJSON {
	d.Helper()
	code, out, errs := run(append([]string{"admin", "--database", d.file, "credit", "ada@example.org", "--json"}, args...)...)
	var c creditJSON
	if err := json.Unmarshal([]byte(out), &c); code != 0 || err != nil {
		d.Fatalf("got exit code %d, error %v: %s; want 0 and JSON", code, err, errs)
	}
	return c
}

func TestAdminCredit_BooksOnceByReference(t *testing.T) {
	d := newDesk(t)
	if c := d.creditOf(); c.Balance != 2*credit.USD || c.Free != 2*credit.USD || len(c.Transfers) != 1 || c.Booked != nil {
		t.Errorf("on first use: got %+v, want only the free credit", c)
	}
	for i, booked := range []bool{true, false} {
		c := d.creditOf("--add", "5.00", "--reference", "INV-7", "--note", "March")
		if c.Booked == nil || *c.Booked != booked || c.Balance != 7*credit.USD || c.Transfers[0].Note != "March" {
			t.Errorf("after --add number %d: got %+v, want 5.00 USD added once", i, c)
		}
	}
	if c := d.creditOf("--take", "1.5", "--reference", "refund of INV-7"); c.Balance != 5_500_000 {
		t.Errorf("after --take: got %+v, want a balance of 5.50 USD", c)
	}
	entries, err := audit.NewStore(d.db).AuditEntries(t.Context(), d.ada.ID, audit.Filter{Limit: 10})
	if err != nil || len(entries) != 3 || entries[2].Action != "account.created" ||
		entries[1].Summary != "added 5.00 USD of credit (INV-7)" || entries[0].Action != "credit.taken" || entries[0].Actor != audit.Operator() {
		t.Errorf("got audit entries %+v, error %v; want one for each change", entries, err)
	}
	for want, args := range map[string][]string{
		"reference": {"--add", "6.00", "--reference", "INV-7"}, "set --reference": {"--add", "6.00"},
		"like 5.00": {"--add", "-5", "--reference", "x"}, "not both": {"--add", "1", "--take", "1", "--reference", "x"},
		"only 5.50 USD; nothing was changed": {"--take", "100", "--reference", "y"}, "require --add": {"--note", "x"},
	} {
		code, out, errs := run(append([]string{"admin", "--database", d.file, "credit", "ada@example.org"}, args...)...)
		if code != 1 || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%v: got exit code %d, %q, %q; want 1 and the case's error", args, code, out, errs)
		}
	}
	if c := d.creditOf(); c.Balance != 5_500_000 || len(c.Transfers) != 3 {
		t.Errorf("after refused changes: got %+v, want no change", c)
	}
}

func TestAdminLedger_ReportsDifferences(t *testing.T) {
	d := newDesk(t)
	d.creditOf("--add", "5.00", "--reference", "INV-7")
	code, out, errs := run("admin", "--database", d.file, "ledger")
	for _, want := range []string{"every sum matches", "7.00 USD of 1 accounts",
		"5.00 USD paid in, 2.00 USD free", "next"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("got exit code %d, want %q in %s%s", code, want, out, errs)
		}
	}
	db, err := sql.Open("sqlite", "file:"+d.file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE credit_balances SET posted = posted + 1`); err != nil {
		t.Fatal(err)
	}
	code, out, errs = run("admin", "--database", d.file, "ledger")
	if code != 1 || !strings.Contains(out, "7.000001") || !strings.Contains(errs, "does not add up") {
		t.Errorf("with a wrong sum: got exit code %d, %s, %s; want 1 and the difference", code, out, errs)
	}
}
