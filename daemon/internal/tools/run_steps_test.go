package tools

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/scenario"
	steps "github.com/service-dev/service/glasses/scenario"
)

// TestSteps_AndToolsTakeTheSameFields compares each kind of step with the tool that performs it in a single call.
func TestSteps_AndToolsTakeTheSameFields(t *testing.T) {
	// Arguments that only a tool has: the session and the limits of its wait.
	own := map[string][]string{"waitForEvent": {"since", "timeoutSeconds"}}
	for _, k := range steps.Kinds() {
		if k.Tool == "" {
			continue
		}
		properties := inputOf(t, k.Tool)
		if k.Argument != "" {
			if _, ok := properties[k.Argument]; !ok {
				t.Errorf("%s: %s has no argument %s", k.Name, k.Tool, k.Argument)
			}
			continue
		}
		var fields []string
		for _, f := range k.Fields() {
			if slices.Contains(k.OnlyStep, f.Name) {
				if _, ok := properties[f.Name]; ok {
					t.Errorf("%s must not have the argument %s", k.Tool, f.Name)
				}
				continue
			}
			fields = append(fields, f.Name)
			argument, ok := properties[f.Name].(map[string]any)
			if !ok {
				t.Errorf("the step %s has the field %s, but %s does not", k.Name, f.Name, k.Tool)
				continue
			}
			if words, ok := argument["enum"].([]any); ok {
				for _, word := range words {
					if !strings.Contains(f.Want+",", " "+word.(string)+",") {
						t.Errorf("%s.%s does not allow %v, but %s does", k.Name, f.Name, word, k.Tool)
					}
				}
			}
		}
		for name := range properties {
			if name != "sessionId" && !slices.Contains(fields, name) && !slices.Contains(own[k.Tool], name) {
				t.Errorf("%s has the argument %s, but the step %s does not", k.Tool, name, k.Name)
			}
		}
	}
}

// inputOf returns the properties of a tool's arguments.
func inputOf(t *testing.T, name string) map[string]any {
	t.Helper()
	for _, tool := range newWorld().catalogue().List() {
		if tool.Name != name {
			continue
		}
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		return schema.Properties
	}
	t.Fatalf("there is no tool %s", name)
	return nil
}

func TestRunSteps(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "s.json"), `{"scenario":1,"name":"s","deviceModel":"even_g1","steps":[{"advance":5}]}`)
	write(t, filepath.Join(root, "bad.json"), `{"scenario":1,"name":"s","steps":[{"advance":"5"}]}`)
	w := newWorld().locally()
	w.steps = scenario.StepsReport{Verdict: scenario.Fail, NowMs: 1005, Since: 9, End: w.display,
		Steps: []scenario.StepReport{{Number: 1, Step: "advance 5 ms", Verdict: scenario.Pass},
			{Number: 2, Step: "expect display.show", Verdict: scenario.Fail, Message: "nothing came"},
			{Number: 3, Verdict: scenario.Skipped}},
		Pictures: []scenario.Picture{{Name: "step-2-failed", PNG: []byte("png")}}}
	result, fields := w.call(t, "runSteps", `{"steps":[{"advance":5},{"transcript":{"text":"hi"}}]}`, IO{})
	summary, _ := fields["summary"].(string)
	if fields["verdict"] != "fail" || fields["since"] != 9.0 || len(result.Images) != 1 ||
		!strings.HasPrefix(summary, "fail: step 2 (expect display.show): nothing came; 1 steps after it were not run.") {
		t.Errorf("got %v with %d pictures, want a failure with one", fields, len(result.Images))
	}
	if s := w.stepped.Steps; len(s) != 2 || !s[1].Transcript.Final {
		t.Errorf("ran %+v", w.stepped)
	}
	w.steps.Verdict, w.steps.Steps, w.steps.Pictures = scenario.Pass, []scenario.StepReport{}, nil
	result, fields = w.call(t, "runSteps", `{"file":`+quote(filepath.Join(root, "s.json"))+`}`, IO{})
	if fields["verdict"] != "pass" || len(result.Images) != 1 {
		t.Errorf("got %v with %d pictures, want a pass with one", fields, len(result.Images))
	}
	if w.stepped.DeviceModel != "even_g1" || w.stepped.Dir != root || len(w.stepped.Steps) != 1 {
		t.Errorf("ran %+v", w.stepped)
	}
	_, fields = w.call(t, "runSteps", `{"file":`+quote(filepath.Join(root, "bad.json"))+`}`, IO{})
	if message, _ := fields["message"].(string); !strings.HasPrefix(message, `bad.json: steps[0].advance: it is the string "5"; `+
		`expected an integer from 0 to 86400000, e.g. {"advance": 1000}`) {
		t.Errorf("an invalid file: %v, want the place of the error", fields)
	}
	w.steps.Verdict, w.steps.NowMs = scenario.Unfinished, 70_000
	w.steps.Steps = []scenario.StepReport{{Number: 1, Step: "advance 90000 ms",
		Verdict: scenario.Unfinished, Message: "time is up"},
		{Number: 2, Verdict: scenario.Skipped}}
	_, fields = w.call(t, "runSteps", `{"steps":[{"advance":90000},{"advance":1}]}`, IO{})
	summary, _ = fields["summary"].(string)
	if fields["verdict"] != "unfinished" || fields["nowMs"] != 70_000.0 || w.stepped.Limit != replayQuiet ||
		!strings.HasPrefix(summary, "unfinished: step 1 (advance 90000 ms): time is up, at 70000 ms") ||
		strings.Contains(summary, "virtual") {
		t.Errorf("at the limit of %v: %v, want unfinished", w.stepped.Limit, fields)
	}
}

func TestRuns_SayFirstThatTheAppLeft(t *testing.T) {
	const gone = "the app left the session at 5 ms and did not come back"
	held := scenario.StepReport{Step: "advance 5 ms", Verdict: scenario.Pass}
	steps := stepsWords(scenario.StepsReport{Verdict: scenario.Fail, AppLeft: gone, Steps: []scenario.StepReport{held}})
	if !strings.HasPrefix(steps, "fail: "+gone) || strings.Contains(steps, "pass") {
		t.Errorf("runSteps: %s, want the failure that the app left", steps)
	}
	replay := reportWords(scenario.Report{Verdict: scenario.Fail, AppLeft: gone})
	if !strings.HasPrefix(replay, "Fail: "+gone) {
		t.Errorf("replaySession: %s, want the failure that the app left", replay)
	}
}
