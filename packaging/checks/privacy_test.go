package checks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/telemetry"
)

var update = flag.Bool("update", false, "write the events of README's privacy section anew")

// The marks between which the events stand in README.
const (
	eventsBegin = "<!-- events: written by go test ./packaging/checks -run TestPrivacySection -update -->\n"
	eventsEnd   = "<!-- end of events -->\n"
)

// TestPrivacySection keeps what README says is collected the same as what the code can collect (T4).
func TestPrivacySection(t *testing.T) {
	path := filepath.Join("..", "..", "README.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(data), eventsBegin)
	shown, tail, ends := strings.Cut(rest, eventsEnd)
	if !begins || !ends {
		t.Fatal("README has no marks around the events")
	}
	want := eventsTable()
	if shown == want {
		return
	}
	if !*update {
		t.Fatalf("README shows other events than proto/telemetry has; run this test with -update. Want:\n%s", want)
	}
	if err := os.WriteFile(path, []byte(head+eventsBegin+want+eventsEnd+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// eventsTable is the list as Markdown.
func eventsTable() string {
	var b strings.Builder
	b.WriteString("\n| event | when | fields |\n|---|---|---|\n")
	for _, d := range telemetry.List() {
		var fields []string
		for _, f := range d.Fields {
			fields = append(fields, fmt.Sprintf("`%s` %s", f.Name, f.What))
		}
		if len(fields) == 0 {
			fields = []string{"none"}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", d.Name, d.When, strings.Join(fields, "; "))
	}
	return b.String() + "\n"
}
