package main

import (
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver/panelcheck"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

func (r *realTest) wantRows(what string, rows int) {
	r.t.Helper()
	img, ok := r.pair.Picture(g1.Left)
	if !ok || img.Bounds().Dy() != rows {
		r.t.Errorf("%s: the arm shows a picture: %v; want one with %d rows", what, ok, rows)
	}
}

// The page keeps the result of a panel check, and passes it to the program the next time.
func TestPanel_IsCheckedAndKept(t *testing.T) {
	r := newRealTest(t, "", glasses.FreshState())
	r.run(3000)
	r.send("show", glasses.TypeDisplayShow, twoButtons)
	r.run(5000)
	r.wantRows("at first", 136)
	if s := r.p.panelState(); !s.CanCheck || s.Checked || s.Step != "" {
		t.Errorf("before a check: got %+v", s)
	}
	r.p.checkPanel(r.now)
	r.run(5000)
	r.p.checkPanel(r.now) // a second press changes nothing
	if s := r.p.panelState(); s.Step != panelcheck.Asking {
		t.Fatalf("got the step %q, want %q", s.Step, panelcheck.Asking)
	}
	r.p.seePanel(r.now, true, false)
	r.run(5000)
	r.wantRows("once more", 135)
	r.p.seePanel(r.now, true, true)
	r.run(5000)
	r.wantRows("after the check", 135)
	found := r.p.panelState()
	if found.Step != panelcheck.Right || !found.Checked || found.Found != `{"rows":135,"checked":true}` {
		t.Errorf("after the check: got %+v", found)
	}

	next := newRealTest(t, "", glasses.FreshState())
	for _, stored := range []string{"", "null", "[]", `{"rows":-1}`} {
		next.p.setPanel(next.now, stored)
		if s := next.p.panelState(); s.Checked {
			t.Errorf("stored %q: the panel counts as checked", stored)
		}
	}
	next.p.setPanel(next.now, found.Found)
	next.run(3000)
	next.send("show", glasses.TypeDisplayShow, twoButtons)
	next.run(5000)
	next.wantRows("the next time", 135)
	next.p.checkPanel(next.now)
	next.run(5000)
	next.p.cancelCheck(next.now)
	next.run(5000)
	next.wantRows("after a check that was cancelled", 135)
	if s := next.p.panelState(); !s.Checked || s.Step != "" {
		t.Errorf("after a check that was cancelled: got %+v", s)
	}
}
