package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/proto/telemetry"
)

// TestPrivacyPageNamesEveryEvent compares the page with the events that the programs can record.
func TestPrivacyPageNamesEveryEvent(t *testing.T) {
	collected := section(t, "privacy", "privacy#what-is-collected")
	rows := 0
	for line := range strings.Lines(collected) {
		if strings.HasPrefix(line, "| `") {
			rows++
		}
	}
	if n := len(telemetry.List()); rows != n || n == 0 {
		t.Errorf("the page lists %d events, want %d", rows, n)
	}
	for _, d := range telemetry.List() {
		_, row, found := strings.Cut(collected, "\n| `"+d.Name+"` | "+d.When+" | ")
		if !found {
			t.Errorf("the page does not list %s", d.Name)
			continue
		}
		row, _, _ = strings.Cut(row, "\n")
		for _, f := range d.Fields {
			if !strings.Contains(row, fmt.Sprintf("`%s` %s", f.Name, f.What)) {
				t.Errorf("the row of %s lacks the field %s: %s", d.Name, f.Name, row)
			}
		}
		if n := strings.Count(row, "`") / 2; n != len(d.Fields) {
			t.Errorf("the row of %s lists %d fields, want %d", d.Name, n, len(d.Fields))
		}
	}
}

// section returns the text of a section of a page.
func section(t *testing.T, page, id string) string {
	t.Helper()
	p, ok := docs.Find(page)
	if !ok {
		t.Fatalf("page %s does not exist", page)
	}
	for _, s := range p.Sections {
		if s.ID == id {
			return s.Markdown
		}
	}
	t.Fatalf("section %s does not exist", id)
	return ""
}
