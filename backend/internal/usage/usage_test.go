package usage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
)

// Every refusal that can end a call has a next step. Calls whose provider failed are not refusals, and calls without a
// key belong to no project.
func TestNext_KnowsEveryRefusal(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../gateway/refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if checked++; nextSteps[code] == "" && !strings.HasPrefix(code, "provider_") && code != "invalid_key" {
			t.Errorf("%s has no next step", code)
		}
		return true
	})
	if checked < 10 || next("of a later version") == "" {
		t.Errorf("%d codes", checked)
	}
}

func TestReport_Summary(t *testing.T) {
	r := Report{Unit: Day, Series: make([]Point, 7), Credit: credit.Account{Locked: true}}
	const want = "0 calls cost $0.00 in the last 7 days. $0.00 of credit left. " +
		"It cannot be spent before the owner has confirmed the account's mail address."
	if got := r.Summary(); got != want {
		t.Errorf("%q", got)
	}
	day := credit.Amount(500_000)
	r.To = time.Date(2026, 2, 28, 23, 0, 0, 0, time.UTC)
	r.addCaps(credit.OfProject, credit.Caps{Day: &day}, credit.Spent{Spent: 126_800}, credit.Spent{})
	if len(r.Caps) != 1 || !r.Caps[0].ResetsAt.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) ||
		!strings.Contains(r.Summary(), "$0.1268 of the project's day cap of $0.50 are spent.") {
		t.Errorf("%+v: %s", r.Caps, r.Summary())
	}
}
