package scenario

import (
	"context"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
)

// remembering is a session whose profile is known.
type remembering struct {
	*showing
	began   string // the profile that the run set
	profile string
}

func (r *remembering) Get(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{Apps: 1}, nil
}

func (r *remembering) UsePrivateMemory(_, profile string) error { r.began = profile; return nil }

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
			profile: c.profile, began: "untouched"}
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
