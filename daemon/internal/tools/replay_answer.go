package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/scenario"
)

// maxReplay is the maximum size of the answer of replaySession in bytes, without a film's pictures and the list of all
// steps. The answer reports how much was omitted.
const maxReplay = 4096

// replayAnswerOf returns the answer for a run. It lists the steps that did not pass, or all steps if requested.
func replayAnswerOf(id string, r scenario.Report, allSteps bool) replayAnswer {
	answer := replayAnswer{Status: "done", SessionID: id, Report: r, Summary: reportWords(r)}
	if allSteps {
		return answer
	}
	answer.Steps = slices.DeleteFunc(slices.Clone(r.Steps), func(s scenario.StepReport) bool {
		return s.Verdict == scenario.Pass
	})
	answer.cut(maxReplay)
	return answer
}

// cut omits the last entries until the answer is at most most bytes long.
func (a *replayAnswer) cut(most int) {
	const enough = 40 // more steps never fit into an answer
	a.cutSteps(enough)
	a.MoreDiffs = maps.Clone(a.MoreDiffs)
	for a.size() >= most {
		switch {
		case a.cutPictures(): // differences also contain the paths of their pictures
		case len(a.Steps) > max(len(a.Diffs), 1):
			a.cutSteps(len(a.Steps) - 1)
		case len(a.Diffs) > 1:
			a.cutDiff()
		default:
			return
		}
	}
}

// size returns the length of the answer in bytes, without the pictures of a film.
func (a *replayAnswer) size() int {
	rest := *a
	rest.Frames = nil
	raw, _ := json.Marshal(rest) // these values can always be encoded
	return len(raw)
}

func (a *replayAnswer) cutSteps(most int) {
	if more := len(a.Steps) - most; more > 0 {
		a.MoreSteps += more
		a.Steps = a.Steps[:most]
	}
}

func (a *replayAnswer) cutDiff() {
	last := a.Diffs[len(a.Diffs)-1]
	a.Diffs = a.Diffs[:len(a.Diffs)-1]
	if a.MoreDiffs == nil {
		a.MoreDiffs = map[string]int{}
	}
	a.MoreDiffs[last.Kind] += last.Times()
}

// cutPictures omits the pictures of differences and reports whether there were any.
func (a *replayAnswer) cutPictures() bool {
	of := map[string]bool{}
	for _, d := range a.Diffs {
		of[d.WantFile], of[d.GotFile], of[d.DiffFile] = true, true, true
	}
	kept := slices.DeleteFunc(slices.Clone(a.Pictures), func(p scenario.Picture) bool {
		return p.File != "" && of[p.File]
	})
	cut := len(kept) < len(a.Pictures)
	a.Pictures = kept
	return cut
}

// reportWords summarizes a report. It begins with the first failure, or with the accepted differences.
func reportWords(r scenario.Report) string {
	failed, first := 0, ""
	for _, step := range r.Steps {
		if step.Verdict == scenario.Fail {
			if failed++; first == "" {
				first = fmt.Sprintf("Step %d (%s): %s. ", step.Number, step.Step, step.Message)
			}
		}
	}
	kinds, count := countsOf(r.Diffs, r.MoreDiffs)
	switch {
	case r.Accepted:
		first = fmt.Sprintf("Accepted: %s copied into the recording, which now matches the app. ", kinds)
	case len(r.Diffs) > 0:
		first = fmt.Sprintf("First divergence in %s. ", diffWords(r.Diffs[0])) + first
	}
	for _, missing := range r.MissingFonts { // missing fonts come first, because they may cause differences
		first = strings.ToUpper(missing[:1]) + missing[1:] + ". " + first
	}
	if r.AppLeft != "" {
		first = "Fail: " + r.AppLeft + ". " + first
	}
	if len(r.AcceptedSteps) > 0 {
		taken, _ := countsOf(nil, r.AcceptedDiffs)
		first = fmt.Sprintf("Accepted of %s: %s copied into the recording. ", stepWords(r.AcceptedSteps), taken) + first
		if len(r.DifferingSteps) > 0 {
			first += fmt.Sprintf("Still different: %s. ", stepWords(r.DifferingSteps))
		}
	}
	words := fmt.Sprintf("%s%s: %s after %d ms, %d of %d steps failed", first, r.Name, r.Verdict, r.DurationMs, failed,
		len(r.Steps))
	if r.Accepted {
		return words + fmt.Sprintf("; the first change was in %s.", diffWords(r.Diffs[0]))
	}
	return words + fmt.Sprintf(", %d differences.", count)
}

// diffWords describes a difference and where it is.
func diffWords(d scenario.Diff) string {
	words := fmt.Sprintf("step %d at %d ms: %s", d.Step, d.AtMs, d.Message)
	if d.Count > 1 {
		words += fmt.Sprintf(" (%d times)", d.Count)
	}
	return words
}

// stepWords lists steps by their numbers.
func stepWords(numbers []int) string {
	return "step " + strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

// countsOf counts differences by kind and describes the counts.
func countsOf(diffs []scenario.Diff, more map[string]int) (kinds string, count int) {
	of := maps.Clone(more)
	if of == nil {
		of = map[string]int{}
	}
	for _, d := range diffs {
		of[d.Kind] += d.Times()
	}
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%d %s", of[kind], kind))
		count += of[kind]
	}
	return strings.Join(list, ", "), count
}
