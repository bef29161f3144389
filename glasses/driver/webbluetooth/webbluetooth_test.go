package webbluetooth

import (
	"regexp"
	"slices"
	"testing"

	"github.com/service-dev/service/glasses/driver"
)

// The script reports only codes that package driver defines and that have a next step.
func TestScript_ReportsKnownProblems(t *testing.T) {
	codes := regexp.MustCompile(`"([a-z]+_?[a-z_]*)"`)
	words := []string{"up", "down", "notify", "written", "choose", "connect", "services", "subscribe", "write",
		"gattserverdisconnected"}
	found := 0
	for _, m := range codes.FindAllSubmatch(Script, -1) {
		word := string(m[1])
		if slices.Contains(words, word) {
			continue
		}
		found++
		if !slices.Contains(driver.Problems(), word) {
			t.Errorf("bluetooth.js reports %q, which package driver does not know", word)
		}
	}
	if found < 20 {
		t.Errorf("found %d codes in bluetooth.js, want at least 20", found)
	}
}
