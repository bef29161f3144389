package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/scenario"
)

// showing is a session that shows one tree on an Even G1.
type showing struct {
	pageOnly
	display session.Display
}

func (*pageOnly) AssistantScript(string) *assistantscript.Script { return nil }

func (*pageOnly) UseScenario(
	context.Context, backend.Target, string, *assistantscript.Script, *string,
) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

func (*pageOnly) MemoryAt(string, int64) (string, bool) { return "", true }

func (*pageOnly) WearerMemory(string) (string, error) { return "", nil }

func (s *showing) Look(context.Context, backend.Target, string) (session.Display, error) {
	return s.display, nil
}

func show(state glasses.State, tree glasses.Node) *showing {
	m, _ := glasses.Model("even_g1")
	s := &showing{display: session.NewDisplay(m, state, render.Clamp(m, glasses.View{Tree: &tree}))}
	result, _ := json.Marshal(glasses.Result{OK: true, Findings: s.display.Findings()})
	s.rows = rows(
		glasses.Event{Type: glasses.RowAppAttached, Sender: glasses.SenderService, Kind: glasses.KindEvent},
		glasses.Event{Type: glasses.TypeResult, Sender: glasses.SenderGlasses, Kind: glasses.KindResult, Payload: result})
	return s
}

func runSteps(t *testing.T, s Sessions, steps string) Report {
	t.Helper()
	dir := t.TempDir()
	if err := writeFile(t.Context(), ours, dir, ".", "s.json",
		[]byte(`{"scenario":1,"name":"s","steps":[`+steps+`]}`)); err != nil {
		t.Fatal(err)
	}
	report, err := New(s).Run(t.Context(), Request{Files: ours, SessionID: "ses_abcdefgh", Path: dir + "/s.json"})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestScenario_CountsWhatIsDrawn(t *testing.T) {
	texts := func(list ...string) glasses.Node {
		tree := glasses.Node{Type: glasses.NodeColumn, Padding: 8, Gap: 2}
		for _, text := range list {
			tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeText, Text: text})
		}
		return tree
	}
	long := texts("Workout", "Round 3 of 8", "00:24", "rest", "Battery 14 %")
	folded := glasses.FreshState()
	folded.Hinge = glasses.HingeFolded
	for _, test := range []struct {
		state   glasses.State
		tree    glasses.Node
		step    string
		verdict string
		mention string
	}{
		{glasses.FreshState(), long, `{"expectDisplay":{"text":["Workout"],"absent":["Battery"],"withinMs":0}}`, Pass, ""},
		{glasses.FreshState(), long, `{"expectDisplay":{"text":["Battery 14 %"],"withinMs":0}}`, Fail, "not on the panel"},
		{folded, long, `{"expectDisplay":{"text":["Workout"],"withinMs":0}}`, Fail, "folded"},
		{glasses.FreshState(), long, `{"expectNothingClipped":{"models":["rayban_display"],"withinMs":0}}`, Pass, ""},
		{glasses.FreshState(), long, `{"expectNothingClipped":{"withinMs":0}}`, Fail, "even_g1: \"Battery 14 %\""},
		{glasses.FreshState(), texts("short"), `{"expectNothingClipped":{"withinMs":0}}`, Pass, ""},
	} {
		report := runSteps(t, show(test.state, test.tree), test.step)
		if report.Verdict != test.verdict || !strings.Contains(report.Steps[0].Message, test.mention) {
			t.Errorf("%s: %+v", test.step, report.Steps)
		}
	}
	report := runSteps(t, show(glasses.FreshState(), long), `{"note":"look","picture":"end"}`)
	if len(report.Findings) != 1 || fmt.Sprint(report.Findings[0].Kind, report.Findings[0].Text) != "clippedBattery 14 %" {
		t.Errorf("findings: %+v", report.Findings)
	}
}

// confirming is a session whose glasses confirm their picture at the third read, without a row.
type confirming struct {
	*showing
	looks int
}

func (c *confirming) Look(ctx context.Context, target backend.Target, id string) (session.Display, error) {
	if c.looks++; c.looks == 3 {
		c.display.Unconfirmed = ""
	}
	return c.showing.Look(ctx, target, id)
}

func TestRun_ExpectDisplayAwaitsTheGlasses(t *testing.T) {
	s := show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Hello"})
	s.display.Unconfirmed = "the right arm has not confirmed the picture yet"
	report := runSteps(t, s, `{"expectDisplay":{"text":["Hello"],"withinMs":0}}`)
	if report.Verdict == Pass || !strings.Contains(fmt.Sprint(report), s.display.Unconfirmed) {
		t.Errorf("got %+v, want a failure that names the arm", report)
	}
	c := &confirming{showing: s}
	if report := runSteps(t, c, `{"expectDisplay":{"text":["Hello"],"withinMs":50000}}`); report.Verdict != Pass {
		t.Errorf("got %+v, want it to pass once the glasses have confirmed", report)
	}
}

// slowPanel is a session whose glasses confirm their picture after the default wait of a scenario.
type slowPanel struct {
	*showing
	confirmed time.Time
}

func (s *slowPanel) Look(ctx context.Context, target backend.Target, id string) (session.Display, error) {
	if time.Now().After(s.confirmed) {
		s.display.Unconfirmed = ""
	}
	return s.showing.Look(ctx, target, id)
}

func TestRun_ExpectDisplayAwaitsASlowPanel(t *testing.T) {
	s := &slowPanel{show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Hello"}),
		time.Now().Add(1400 * time.Millisecond)}
	s.display.Unconfirmed = "the picture is on its way to the panel"
	if report := runSteps(t, s, `{"expectDisplay":{"text":["Hello"]}}`); report.Verdict != Pass {
		t.Errorf("got %+v, want the default wait to last until the panel has confirmed", report)
	}
}

func TestRun_ExpectDisplayHoldsForTheConfirmedAndTheNextView(t *testing.T) {
	row := func(texts ...string) glasses.Node {
		tree := glasses.Node{Type: glasses.NodeColumn}
		for _, text := range texts {
			tree.Children = append(tree.Children, glasses.Node{Type: glasses.NodeText, Text: text})
		}
		return tree
	}
	s := show(glasses.FreshState(), row("Desk", "12:02"))
	before := row("Desk", "12:01")
	s.display.Unconfirmed = "the picture is on its way to the panel"
	s.display.Confirmed = &glasses.View{Tree: &before, Focus: -1}
	for step, want := range map[string]string{
		`"text":["Desk"]`:                     Pass,
		`"text":["Desk"],"absent":["12:00"]`:  Pass,
		`"text":["12:02"]`:                    Fail,
		`"text":["12:01"]`:                    Fail,
		`"text":["Desk"],"absent":["12:01"]`:  Fail,
		`"text":["Desk"],"absent":["12:02"]`:  Fail,
		`"text":["Desk","12"],"inOrder":true`: Pass,
	} {
		if report := runSteps(t, s, `{"expectDisplay":{`+step+`,"withinMs":0}}`); report.Verdict != want {
			t.Errorf("%s: got %+v, want %s", step, report.Steps, want)
		}
	}
}

func TestRecorder_LeavesTheWaitInRealTimeToTheReplay(t *testing.T) {
	for _, virtual := range []bool{false, true} {
		r := &recorder{virtual: virtual, claimed: map[int64]struct{}{}}
		r.note(note{step: scenario.Step{ExpectDisplay: &scenario.ExpectDisplay{Text: []string{"Desk"}}}})
		if got := r.list[0].ExpectDisplay.WithinMs; (got != nil) != virtual {
			t.Errorf("virtual %v: withinMs is set: %v", virtual, got != nil)
		}
	}
}
