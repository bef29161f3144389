//go:build unix

package e2e

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// deskSteps run in one call. The next-to-last step fails.
const deskSteps = `[
	{"expectDisplay": {"text": ["Desk"], "withinMs": 20000}},
	{"state": {"battery": {"level": 9, "charging": false}}},
	{"expect": {"type": "battery", "sender": "glasses", "payload": {"level": 9}, "withinMs": 5000}},
	{"expectDisplay": {"text": ["Battery low: 9 %"], "withinMs": 10000}},
	{"picture": "low"},
	{"expectDisplay": {"absent": ["Desk"], "withinMs": 0}},
	{"advance": 10}
]`

// A list of steps has the same results and pictures on the local simulator and on the simulator page, for agents of
// both protocol generations.
func TestRunSteps_SameOnBothSimulators(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	modern := startAgent(w, "modern", false)
	browser := linkAnd(t, w, modern)
	app := deskApps(t)["go"]
	var list []any
	if err := json.Unmarshal([]byte(deskSteps), &list); err != nil {
		t.Fatal(err)
	}
	var first map[string]any
	for _, era := range []string{"modern", "legacy"} {
		for _, where := range []string{"local", "browser"} {
			t.Run(era+"/"+where, func(t *testing.T) {
				a := startAgent(w, era, false)
				a.t = t
				args := map[string]any{"fresh": true, "deviceModel": "rayban_display"}
				var s toolResult
				if where == "local" {
					args["clock"] = "virtual"
					s = a.call("startLocalSimulation", args)
				} else {
					args["openBrowser"] = false
					s = a.call("createSimulatorSession", args)
					openSimulator(t, browser, s.str(t, "sessionUrl"))
				}
				startApp(t, w, app, s)
				report := a.call("runSteps", map[string]any{"sessionId": s.str(t, "sessionId"), "steps": list})
				got := whatHappened(t, report)
				if first == nil {
					first = got
				}
				if diff := cmp.Diff(first, got); diff != "" {
					t.Errorf("the report differs from the first run's:\n%s", diff)
				}
				wantError(t, a.call("runSteps", map[string]any{"steps": []any{map[string]any{"advance": "soon"}}}),
					"invalid_request", false)
				a.call("closeSession", map[string]any{"sessionId": s.str(t, "sessionId")})
			})
		}
	}
}

// whatHappened returns the parts of a report that do not depend on the simulator's clock.
func whatHappened(t *testing.T, report toolResult) map[string]any {
	t.Helper()
	r := report.Structured
	steps, _ := r["steps"].([]any)
	var verdicts, hashes []any
	for _, s := range steps {
		verdicts = append(verdicts, s.(map[string]any)["verdict"])
	}
	if want := []any{"pass", "pass", "pass", "pass", "pass", "fail", "skipped"}; r["verdict"] != "fail" ||
		!cmp.Equal(verdicts, want) {
		t.Fatalf("got %v, want five steps that pass, one that fails and one skipped", r)
	}
	pictures, _ := r["pictures"].([]any)
	for _, p := range pictures {
		p := p.(map[string]any)
		hashes = append(hashes, p["name"], p["sha256"])
	}
	if len(hashes) != 4 {
		t.Errorf("got %d pictures, want 4 different ones: %v", len(pictures), pictures)
	}
	return map[string]any{"verdicts": verdicts, "pictures": hashes, "text": r["text"], "focus": r["focus"]}
}
