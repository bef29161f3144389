package scenario

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
)

// leaving is a session whose rows contain when its apps attach and leave.
type leaving struct {
	*showing
	asked int
	apps  int // number of attached apps at the end
}

func (l *leaving) Get(context.Context, backend.Target, string) (backend.Session, error) {
	s := backend.Session{Transport: backend.TransportBrowser, Clock: backend.ClockReal, Pages: 1,
		Apps: 1, NowMs: 1000}
	if l.asked++; l.asked > 1 {
		s.Apps = l.apps
	}
	return s, nil
}

// appLeft returns a session that showed a tree before its app left at 2000 ms on the run's clock. The rows in more
// follow.
func appLeft(apps int, more ...string) *leaving {
	l := &leaving{showing: show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Milk"}), apps: apps}
	for _, typ := range append([]string{glasses.RowAppDetached}, more...) {
		l.rows = append(l.rows, glasses.Event{Type: typ, Sender: glasses.SenderService, Kind: glasses.KindEvent})
	}
	l.rows = rows(l.rows...)
	return l
}

func TestRuns_FailIfTheAppLeft(t *testing.T) {
	const gone = "the app left the session at 2000 ms and did not come back"
	for name, c := range map[string]struct {
		session *leaving
		step    string
		says    string
	}{
		"gone":       {appLeft(0), `{"expectDisplay":{"text":["Milk"]}}`, gone},
		"back":       {appLeft(1, glasses.RowAppAttached), `{"expectDisplay":{"text":["Milk"]}}`, ""},
		"of several": {appLeft(1), `{"picture":"end"}`, ""},
		"wanted":     {appLeft(0), `{"expect":{"type":"app.detached"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.session
			steps, err := New(s).RunSteps(t.Context(), StepsRequest{Files: ours, SessionID: "ses_abcdefgh",
				Steps: listOf(t, c.step)})
			if err != nil {
				t.Fatal(err)
			}
			if steps.AppLeft != c.says || (steps.Verdict == Fail) != (c.says != "") {
				t.Errorf("steps: %s, %q", steps.Verdict, steps.AppLeft)
			}
			s.asked = 0
			report := runSteps(t, s, c.step)
			if report.AppLeft != c.says || (report.Verdict == Fail) != (c.says != "") {
				t.Errorf("verdict %s, AppLeft %q; want a failure only if the app left unexpectedly", report.Verdict, report.AppLeft)
			}
		})
	}
}

// If the app exited while it was recorded, it may exit in a replay but need not.
func TestRecord_RemembersThatTheAppLeft(t *testing.T) {
	s := appLeft(0)
	path := filepath.Join(t.TempDir(), "rec.json")
	_, err := New(s).Record(t.Context(), RecordRequest{Files: ours, SessionID: "ses_abcdefgh", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	s.asked = 0
	report, err := New(s).Run(t.Context(), Request{Files: ours, SessionID: "ses_abcdefgh", Path: path})
	if err != nil || report.Verdict != Pass {
		t.Errorf("%+v, %v", report, err)
	}
}
