//go:build unix

package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/internal/problem"
)

// If a label changed and a frame was added, accepting only the label leaves the test failing because of the frame.
func TestReplay_AcceptsTheDifferencesOfOneStep(t *testing.T) {
	t.Parallel()
	l := startLocals(t, t.TempDir())
	a := newAgent(t, l)
	dir := recordMenu(t, l, a)
	before := loadRecording(t, dir)
	kept, err := os.ReadFile(filepath.Join(dir, "scenario.json"))
	if err != nil {
		t.Fatal(err)
	}
	replay := func(args map[string]any) (replayed, []byte) {
		begin, on := menu(true)
		return a.replay(startApp(t, l, backend.ClockVirtual, begin, on).SessionID, dir, args)
	}
	found, raw := replay(map[string]any{})
	if len(found.Diffs) != 2 {
		t.Fatalf("%s", raw)
	}
	label, extra := found.Diffs[0].Step, found.Diffs[1].Step
	for _, refused := range []struct {
		args map[string]any
		code string
		says string
	}{
		{map[string]any{"acceptSteps": []int{1000}}, problem.CodeNotAccepted, "there is no step 1000"},
		{map[string]any{"acceptSteps": []int{0}}, problem.CodeNotAccepted, "there is no step 0"},
		{map[string]any{"acceptSteps": []int{label, label + 1}}, problem.CodeNotAccepted,
			fmt.Sprintf("step %d does not differ", label+1)},
		{map[string]any{"acceptSteps": []int{label}, "accept": true}, "invalid_request", "acceptSteps"},
	} {
		answer, raw := replay(refused.args)
		now, err := os.ReadFile(filepath.Join(dir, "scenario.json"))
		if answer.Code != refused.code || !strings.Contains(answer.Message, refused.says) || err != nil ||
			!bytes.Equal(now, kept) {
			t.Errorf("%v: %s, %v", refused.args, raw, err)
		}
	}
	answer, raw := replay(map[string]any{"acceptSteps": []int{label}})
	if answer.Verdict != scenario.Fail || answer.Accepted || !slices.Equal(answer.AcceptedSteps, []int{label}) ||
		answer.AcceptedDiffs[scenario.DiffChanged] != 1 || !slices.Equal(answer.DifferingSteps, []int{extra}) ||
		len(answer.Diffs) != 1 || answer.Diffs[0].Kind != scenario.DiffExtra ||
		!strings.HasPrefix(answer.Summary, fmt.Sprintf("Accepted of step %d: 1 changed", label)) ||
		!strings.Contains(answer.Summary, fmt.Sprintf("Still different: step %d.", extra)) {
		t.Errorf("accepting only the label: %s", raw)
	}
	after := loadRecording(t, dir)
	changed := 0
	for i, r := range after.Recorded.Trace {
		if !bytes.Equal(r.Payload, before.Recorded.Trace[i].Payload) {
			changed++
		}
		if r.At != before.Recorded.Trace[i].At || after.Recorded.Pictures[i].At != before.Recorded.Pictures[i].At {
			t.Errorf("frame %d moved to another time: %d", i, r.At)
		}
	}
	if changed != 1 || len(after.Recorded.Trace) != len(before.Recorded.Trace) || len(after.Steps) != len(before.Steps) {
		t.Errorf("%d of %d frames changed; want only the label's", changed, len(after.Recorded.Trace))
	}
	for _, p := range after.Recorded.Pictures {
		if _, err := os.Stat(filepath.Join(dir, "pictures", p.SHA256+".png")); err != nil {
			t.Error(err)
		}
	}
	if answer, raw := replay(map[string]any{}); len(answer.Diffs) != 1 || answer.Diffs[0].Step != extra {
		t.Errorf("replay after accepting the label: %s; want only the extra frame to differ", raw)
	}
	if answer, raw := replay(map[string]any{"acceptSteps": []int{extra}}); answer.Verdict != scenario.Pass ||
		len(answer.Diffs) != 0 || answer.DifferingSteps != nil {
		t.Errorf("accepting the frame as well: %s; want it to pass", raw)
	}
	if answer, raw := replay(map[string]any{}); answer.Verdict != scenario.Pass {
		t.Errorf("last replay: %s; want it to pass", raw)
	}
	named := map[string]bool{}
	for _, p := range loadRecording(t, dir).Recorded.Pictures {
		named[p.SHA256+".png"] = true
	}
	entries, err := os.ReadDir(filepath.Join(dir, "pictures"))
	if err != nil || len(entries) != len(named) {
		t.Errorf("%d pictures on disk, %d in the recording, error %v; want as many on disk", len(entries), len(named), err)
	}
}
