package docs_test

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
)

// TestExamplesRunOnGlasses sends every command and control frame in the documentation to simulated glasses, which
// must accept all of them.
func TestExamplesRunOnGlasses(t *testing.T) {
	model, _ := glasses.Model("rayban_display")
	ran := 0
	for _, b := range blocks() {
		if b.language != "json" || b.kind != "app" && b.kind != "control" {
			continue
		}
		d, now := device.New(model, device.Options{}), int64(0)
		for line := range strings.Lines(b.text) {
			f, err := glasses.Parse([]byte(strings.TrimSpace(line)))
			if err != nil {
				t.Fatal(err)
			}
			if f.Type == glasses.SimAdvance || !glasses.IsCommand(f.Type) && !glasses.IsControl(f.Type) {
				continue // frames for the host's clock, hello, barriers, and the app's own events
			}
			now += 10_000
			d.Handle(now, f, nil)
			d.Tick(now + 5000)
			ran++
			for _, out := range d.Take() {
				// A photo requires the host, which this test does not have.
				if r, err := glasses.ParseResult(out.Frame.Payload); out.Ask == nil &&
					out.Frame.Type == glasses.TypeResult && out.Frame.ID == f.ID && (err != nil || r.Error != nil) {
					t.Errorf("%s: the example %s\nfails with %s", b.page, line, out.Frame.Payload)
				}
			}
		}
	}
	if ran < 20 {
		t.Errorf("only %d frames were sent, want at least 20", ran)
	}
}
