package scenario

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/scenario"
)

// remembering is a session whose profile is known.
type remembering struct {
	*showing
	apps    int
	began   string // the profile that the run set
	profile string
}

func (r *remembering) Get(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{Apps: r.apps}, nil
}

func (r *remembering) UseScenario(
	_ context.Context, _ backend.Target, _ string, _ *assistantscript.Script, profile *string,
) (func(context.Context) error, error) {
	before := r.began
	if profile != nil {
		r.began = *profile
	}
	return func(ctx context.Context) error {
		r.began = before
		return ctx.Err()
	}, nil
}

func (r *remembering) WearerMemory(string) (string, error) { return r.profile, nil }

func TestRunSteps_ExpectMemory(t *testing.T) {
	for _, c := range []struct{ profile, step, verdict, mention string }{
		{"Name: Ann\nLikes tea", `{"text":["Ann","tea"]}`, Pass, ""},
		{"Name: Ann", `{"text":["Ann","tea"],"withinMs":0}`, Fail, `the profile is "Name: Ann"`},
		{"", `{"text":["Ann"],"withinMs":0}`, Fail, "nothing is remembered"},
		{"", `{"empty":true}`, Pass, ""},
		{"Name: Ann", `{"empty":true,"withinMs":0}`, Fail, `the profile is "Name: Ann"`},
	} {
		s := &remembering{showing: show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Hi"}),
			apps: 1, profile: c.profile, began: "untouched"}
		req := StepsRequest{Files: ours, SessionID: "loc_abcdefgh", Steps: listOf(t, `{"expectMemory":`+c.step+`}`)}
		report, err := New(s).RunSteps(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if step := report.Steps[0]; step.Verdict != c.verdict || !strings.Contains(step.Message, c.mention) {
			t.Errorf("%s with profile %q: got %+v, want %s %s", c.step, c.profile, step, c.verdict, c.mention)
		}
		if s.began != "untouched" {
			t.Errorf("steps without a file replaced the profile by %q", s.began)
		}
		req.Memory = new("Likes tea")
		if _, err := New(s).RunSteps(t.Context(), req); err != nil || s.began != "Likes tea" {
			t.Errorf("a file's profile: got %q, %v", s.began, err)
		}
	}
}

// A scenario that cannot start leaves the session with the profile that it had.
func TestRuns_ThatCannotStartKeepTheMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(path, []byte(`{"scenario":1,"name":"x","memory":"Name: Ann","steps":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for why, s := range map[string]*remembering{"no app attaches": {}, "the script is missing": {apps: 1}} {
		s.showing, s.began = show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Hi"}), "untouched"
		s.rows = nil
		r := New(s)
		r.attachWait = 0
		req := StepsRequest{Files: ours, SessionID: "loc_abcdefgh", Memory: new("Name: Ann"), Dir: t.TempDir()}
		if s.apps > 0 {
			req.Assistant = &scenario.Assistant{File: "missing.json"}
		}
		if _, err := r.RunSteps(t.Context(), req); err == nil || s.began != "untouched" {
			t.Errorf("steps, %s: got %v, and the profile is %q", why, err, s.began)
		}
		_, err := r.Run(t.Context(), Request{Files: ours, SessionID: "loc_abcdefgh", Path: path})
		if err == nil || s.began != "untouched" {
			t.Errorf("run, %s: got %v, and the profile is %q", why, err, s.began)
		}
	}
}
