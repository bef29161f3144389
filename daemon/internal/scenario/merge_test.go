package scenario

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// merged compares two traces, with one step for each second of the run, and accepts the differences in some steps.
func merged(t *rapid.T, want, got []scenario.Request, steps []int) *run {
	x := &run{virtual: true, artifacts: map[int]int{}, merged: merger{steps: steps}}
	x.s.Recorded = &scenario.Recorded{Clock: "virtual", Trace: want}
	for i, r := range got {
		x.rows = append(x.rows, glasses.Event{Seq: int64(i + 1), At: r.At, Type: r.Type, Sender: glasses.SenderApp,
			Payload: r.Payload})
	}
	for n := range int64(8) {
		before := slices.IndexFunc(got, func(r scenario.Request) bool { return r.At > 1000*n })
		if before < 0 {
			before = len(got)
		}
		x.marks = append(x.marks, int64(before))
		x.report.Steps = append(x.report.Steps, StepReport{Number: int(n) + 1, AtMs: 1000 * n, Verdict: Pass})
	}
	w, _ := recordedFrames(x.s.Recorded)
	x.compareFrames(t.Context(), w, framesOf(x.rows, 0, nil))
	return x
}

func (x *run) trace() []scenario.Request {
	trace, _ := x.merged.recording()
	return trace
}

func said(trace []scenario.Request) (list []string) {
	for _, r := range trace {
		list = append(list, fmt.Sprintf("%d %s %s", r.At, r.Type, r.Payload))
	}
	return list
}

// drawTraces returns a random recording and a run of another build, which changes, drops and adds frames and is late.
// No two frames of the recording are the same, so each can be matched in only one way.
func drawTraces(t *rapid.T) (want, got []scenario.Request) {
	late := int64(0)
	for i := range rapid.IntRange(0, 14).Draw(t, "frames") {
		at := int64(500 * i)
		same := screen(at, fmt.Sprint("screen ", i), fmt.Sprint("line ", i), fmt.Sprint("end ", i))
		want = append(want, same)
		change := rapid.SampledFrom([]string{"", "", "", "label", "drop", "add", "late"}).Draw(t, "change")
		if change == "late" {
			late += 50
		}
		now := screen(at+late, fmt.Sprint("screen ", i), fmt.Sprint("line ", i), fmt.Sprint("end ", i))
		switch change {
		case "label":
			now = screen(at+late, fmt.Sprint("screen ", i), fmt.Sprint("line ", i), fmt.Sprint("changed ", i))
		case "drop":
			continue
		case "add":
			got = append(got, screen(at+late, fmt.Sprint("more ", i), fmt.Sprint("added ", i)))
		}
		got = append(got, now)
	}
	return want, got
}

// If the differences in some steps are accepted into a recording, it differs from the same run only in the
// other differences. With all steps accepted it equals the run; with none it is unchanged.
func TestMerge_TakesTheNamedStepsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, got := drawTraces(t)
		all := []int{1, 2, 3, 4, 5, 6, 7, 8}
		none, every := merged(t, want, got, nil), merged(t, want, got, all)
		if trace := none.trace(); !slices.Equal(said(trace), said(want)) {
			t.Fatalf("after accepting nothing: %q\nwant %q", said(trace), said(want))
		}
		if trace := every.trace(); !slices.Equal(said(trace), said(got)) {
			t.Fatalf("after accepting all: %q\nwant the run %q", said(trace), said(got))
		}
		if len(every.report.Diffs) > 0 {
			t.Fatalf("differences remain after accepting all: %+v", every.report.Diffs)
		}
		steps := rapid.SliceOfDistinct(rapid.SampledFrom(all), func(n int) int { return n }).Draw(t, "steps")
		some := merged(t, want, got, steps)
		for n := range some.merged.taken {
			if !slices.Contains(steps, n) {
				t.Fatalf("step %d was accepted, but only %v were requested", n, steps)
			}
		}
		again := merged(t, some.trace(), got, nil)
		if total(again.report) != total(some.report) ||
			fmt.Sprint(kindsOf(again.report)) != fmt.Sprint(kindsOf(some.report)) {
			t.Fatalf("accepted %v: %v remained, then %v\nrecorded %q\nmerged %q\nrun %q", steps, some.report.Diffs,
				again.report.Diffs, said(want), said(some.trace()), said(got))
		}
		count := 0
		for _, n := range some.merged.kinds {
			count += n
		}
		if count+total(some.report) != total(none.report) {
			t.Fatalf("%d accepted and %d remaining differences are not the original %d",
				count, total(some.report), total(none.report))
		}
	})
}

// A recording may have pictures that cannot be assigned to frames, because some display commands failed. Its pictures
// are kept and replaced independently of the frames.
func TestMerge_TakesPicturesOfTheNamedSteps(t *testing.T) {
	m, _ := glasses.Model("even_g1")
	shown := func(at int64, row int64, text string) panel {
		return panel{at: at, request: row, model: m, view: glasses.View{Focus: -1,
			Tree: &glasses.Node{Type: glasses.NodeText, Text: text}}}
	}
	pictures := func(list ...panel) (out []scenario.Picture) {
		for _, p := range list {
			out = append(out, scenario.Picture{At: p.at, SHA256: sum(p.png())})
		}
		return out
	}
	old := []panel{shown(0, 1, "a"), shown(1000, 2, "b"), shown(2000, 3, "same"), shown(3000, 4, "c")}
	now := []panel{old[0], shown(1000, 2, "B"), old[2], shown(3000, 4, "C"), shown(3000, 4, "D")}
	x := &run{artifacts: map[int]int{}, marks: []int64{1, 2, 3, 4}, merged: merger{steps: []int{2}}}
	x.s.Recorded = &scenario.Recorded{Pictures: pictures(old...)}
	for n := range 4 {
		x.report.Steps = append(x.report.Steps, StepReport{Number: n + 1, AtMs: int64(1000 * n)})
	}
	x.comparePictures(t.Context(), now)
	var got []scenario.Picture
	for _, p := range x.merged.pictures {
		got = append(got, p.Picture)
	}
	if want := pictures(old[0], now[1], old[2], old[3]); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(x.report.Diffs) != 2 || x.merged.kinds[DiffPicture] != 1 || fmt.Sprint(first(x.merged.left)) != "[4]" {
		t.Errorf("%+v, %+v", x.report.Diffs, x.merged)
	}
}
