//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A failed count is ignored: it neither becomes the minimum nor is compared with other counts.
func TestLeaks_IgnoreFailedCounts(t *testing.T) {
	least := holding{unknown, unknown}
	for _, step := range []struct {
		now, want holding
		fell      bool
	}{
		{holding{unknown, unknown}, holding{unknown, unknown}, false},
		{holding{20, 9}, holding{20, 9}, true},
		{holding{unknown, unknown}, holding{20, 9}, false},
		{holding{25, 8}, holding{20, 8}, true},
		{holding{18, 8}, holding{18, 8}, true},
		{holding{18, 8}, holding{18, 8}, false},
	} {
		if fell := least.settle(step.now); fell != step.fell || least != step.want {
			t.Errorf("after %v: got %v %v, want %v %v", step.now, fell, least, step.fell, step.want)
		}
	}
	w := &testbed{results: newResults(), seam: t.TempDir()}
	if w.settled("nobody", 1<<30, true); len(w.results.findings) != 1 ||
		!strings.Contains(w.results.findings[0], "failed to count") {
		t.Errorf("findings: got %q, want one that names the failed count", w.results.findings)
	}
}

func TestLeaks_ClosedSessions(t *testing.T) {
	open := map[string]bool{"loc_open": true}
	for path, want := range map[string]bool{
		"disk/state/sessions":                       true,
		"disk/state/sessions/loc_open":              true,
		"disk/state/sessions/loc_open/events.jsonl": true,
		"disk/state/sessions/loc_open/.meta.tmp-1":  false,
		"disk/state/sessions/loc_shut":              false,
		"disk/state/sessions/loc_shut/events.jsonl": false,
		"disk/state/log/serviced.log.1":             true,
		"disk/state/run/x.sock":                     false,
	} {
		if got := kept(path, open); got != want {
			t.Errorf("kept(%s): got %v, want the opposite", path, got)
		}
	}
}

// The log keeps text that a later start of the daemon truncates.
func TestStderr_SurvivesItsFile(t *testing.T) {
	w := stderrLog{path: filepath.Join(t.TempDir(), "serviced.stderr")}
	w.readOn()
	for _, text := range []string{"panic: one\n", "", "panic: one\nmore\n", "2\n"} {
		if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.readOn()
	}
	if got := string(w.text); got != "panic: one\npanic: one\nmore\n2\n" {
		t.Errorf("unexpected text %q", got)
	}
}
