//go:build linux

package main

import (
	"testing"
	"time"
)

// A fault explains the outcomes that it can cause, while it is active and during its grace period, for calls that
// overlap it.
func TestFaults_Explain(t *testing.T) {
	var w activeFaults
	f := &fault{name: "f", allows: []string{"backend_unreachable"}, grace: time.Hour}
	short := &fault{name: "short", allows: []string{"daemon_gone"}}
	before := time.Now()
	if w.explains("backend_unreachable", before) {
		t.Error("an outcome is explained although there was no fault")
	}
	end := w.begin(f)
	w.begin(short)()
	later := time.Now()
	for name, c := range map[string]struct {
		outcome string
		since   time.Time
		want    bool
	}{
		"while it lasts":        {"backend_unreachable", later, true},
		"something else":        {"daemon_gone", later, false},
		"one that is over":      {"daemon_gone", later, false},
		"a call from before it": {"daemon_gone", before, true},
	} {
		if got := w.explains(c.outcome, c.since); got != c.want {
			t.Errorf("%s: got explained %v, want the opposite", name, got)
		}
	}
	end()
	if !w.explains("backend_unreachable", time.Now()) || w.explains("backend_unreachable", time.Now().Add(2*time.Hour)) {
		t.Error("the grace period is not one hour")
	}
	if got := w.names(time.Now().Add(2 * time.Hour)); got != "no fault" {
		t.Errorf("names: got %s, want no fault", got)
	}
}

// An outcome that an agent must never see is a finding, regardless of the active faults.
func TestLinkOutcome(t *testing.T) {
	s := &soak{testbed: &testbed{results: newResults(), install: "inst_1", account: "own", foreigner: "foreign"}}
	for name, c := range map[string]struct {
		said     identity
		want     string
		findings int
	}{
		"linked":          {identity{"inst_1", "linked", "own"}, ok, 0},
		"another account": {identity{"inst_1", "linked", "foreign"}, "link:other_account", 0},
		"not linked":      {identity{"inst_1", "not_linked", ""}, "link:not_linked", 0},
		"nobody's":        {identity{"inst_1", "linked", "third"}, ok, 1},
		"another install": {identity{"inst_2", "linked", "own"}, ok, 1},
	} {
		_, _, before := s.results.sum()
		got := s.linkOutcome(name, c.said)
		if _, _, after := s.results.sum(); got != c.want || after-before != c.findings {
			t.Errorf("%s: got outcome %s and %d findings, want those in the table", name, got, after-before)
		}
	}
}
