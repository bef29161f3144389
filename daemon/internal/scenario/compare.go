package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
	"github.com/service-dev/service/glasses/scenario"
)

// maxDiffs is the maximum number of differences in a report, which agents read. Further differences are only counted,
// by kind.
const maxDiffs = 12

// Kinds of differences.
const (
	DiffChanged = "changed" // the payload differs
	DiffMissing = "missing" // only in the recording
	DiffExtra   = "extra"   // only in the run
	DiffPicture = "picture" // the tree is the same, but the picture differs
	DiffTime    = "time"    // the frame is the same, but its time differs
)

// traceOf returns the app's commands and events in order.
func traceOf(rows []glasses.Event, base int64) []scenario.Request {
	trace := []scenario.Request{}
	for _, e := range rows {
		if e.Sender == glasses.SenderApp {
			trace = append(trace, scenario.Request{At: e.At - base, Type: e.Type, Payload: e.Payload})
		}
	}
	return trace
}

// panel is the display after an app's command.
type panel struct {
	at      int64
	request int64 // the row of the command
	model   glasses.DeviceModel
	view    glasses.View
}

func (p panel) png() []byte {
	if p.model.Panel == nil {
		return nil
	}
	return render.PNG(render.Draw(p.model, p.view))
}

// panels returns the panel after each successful display command, including the focus set by previous inputs. model is
// the device model before the first row.
func panels(rows []glasses.Event, base int64, model, sessionID string) []panel {
	m, _ := session.ModelOf(sessionID, model)
	asked := map[string]glasses.Event{}
	view := glasses.View{Focus: -1}
	var state glasses.State
	var list []panel
	for _, e := range rows {
		if e.Sender == glasses.SenderGlasses {
			link := state.Link
			if state, _ = state.AfterEvent(e.Type, e.Payload); glasses.PanelClears(link, state.Link) {
				view = glasses.View{Focus: -1}
			}
		}
		switch {
		case e.Kind == glasses.KindRequest && (e.Type == glasses.TypeDisplayShow || e.Type == glasses.TypeDisplayClear):
			asked[e.ID] = e
		case e.Type == glasses.TypeDevice:
			var p glasses.DeviceChange
			if json.Unmarshal(e.Payload, &p) == nil {
				if next, ok := session.ModelOf(sessionID, p.DeviceModel.ID); ok {
					m, view = next, glasses.View{Focus: -1}
				}
			}
		case e.Type == glasses.TypeInput && e.Sender == glasses.SenderGlasses:
			var in glasses.Input
			if json.Unmarshal(e.Payload, &in) == nil {
				view, _ = render.Use(m, view, in)
			}
		case e.Kind == glasses.KindResult:
			request, ok := asked[e.ID]
			delete(asked, e.ID)
			res, err := glasses.ParseResult(e.Payload)
			if !ok || err != nil || !res.OK || m.Panel == nil {
				continue
			}
			if show, err := glasses.ParseShow(request.Payload); request.Type == glasses.TypeDisplayShow && err == nil {
				view = render.Show(m, view, &show.Tree)
			} else {
				view = glasses.View{Focus: -1}
			}
			list = append(list, panel{at: e.At - base, request: request.Seq, model: m, view: view})
		}
	}
	return list
}

// maxFindings is the maximum number of findings in a report, which agents read.
const maxFindings = 5

// Findings returns the distinct findings in the results of display.show. model is the device model before the first
// row.
func Findings(rows []glasses.Event, model string) []Finding {
	list, seen := []Finding{}, map[Finding]bool{}
	for _, e := range rows {
		if e.Type == glasses.TypeDevice {
			var p glasses.DeviceChange
			if json.Unmarshal(e.Payload, &p) == nil {
				model = p.DeviceModel.ID
			}
		}
		if e.Kind != glasses.KindResult {
			continue
		}
		res, err := glasses.ParseResult(e.Payload)
		if err != nil {
			continue
		}
		for _, f := range res.Findings {
			if one := (Finding{model, f}); !seen[one] {
				seen[one] = true
				list = append(list, one)
			}
		}
	}
	return list
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// compare compares the run with its recording and reports the differences in the order in which they happened.
func (x *run) compare(ctx context.Context) {
	shown := panels(x.rows, x.base, x.model, x.req.SessionID)
	want, matched := recordedFrames(x.s.Recorded)
	got := framesOf(x.rows, x.base, shown)
	if !matched {
		for i := range got {
			got[i].picture = ""
		}
	}
	x.compareFrames(ctx, want, got)
	if !matched {
		x.comparePictures(ctx, shown)
	}
	if len(x.report.Diffs) > 0 {
		x.report.Verdict = Fail
	}
}

// maxChanges is the maximum number of changes listed for one frame.
const maxChanges = 3

// changedFrame returns the difference between two frames of the same type. same is equal for frames with equal changes.
func changedFrame(want, got frame) (d Diff, same string) {
	c := changesOf(want.payload, got.payload)
	d = Diff{Kind: DiffChanged, Path: c.path}
	d.Message = want.typ + " " + strings.Join(c.lines[:min(len(c.lines), maxChanges)], "; ")
	if more := len(c.lines) - maxChanges; more > 0 {
		d.Message += fmt.Sprintf("; and %d more", more)
	}
	return d, want.typ + "\n" + strings.Join(c.same, "\n")
}

// summaryOf describes the content of a frame.
func summaryOf(f frame) string {
	payload, _ := f.payload.(map[string]any)
	if tree, ok := payload["tree"]; ok {
		return strings.Join(textsOf(tree, nil), " / ")
	}
	return brief(f.payload)
}

// textsOf returns the first texts in a tree.
func textsOf(node any, list []string) []string {
	const enough = 4
	n, _ := node.(map[string]any)
	if text, ok := n["text"].(string); ok && text != "" && len(list) < enough {
		list = append(list, brief(text))
	}
	children, _ := n["children"].([]any)
	for _, child := range children {
		list = textsOf(child, list)
	}
	return list
}

// mark records the last row at the end of a step.
func (x *run) mark(ctx context.Context) error {
	if x.s.Recorded == nil {
		return nil
	}
	if err := x.fetch(ctx, 0); err != nil {
		return err
	}
	x.marks = append(x.marks, x.next)
	return nil
}

// stepOf returns the number of the step during which a row was written.
func (x *run) stepOf(seq int64) int {
	i, _ := slices.BinarySearch(x.marks, seq)
	return max(1, min(i+1, len(x.report.Steps)))
}

// stepAt returns the number of the step at a time. If several steps ran at that time, it returns the last one, which
// may have caused the missing frame.
func (x *run) stepAt(at int64) int {
	step := 1
	for i, s := range x.report.Steps {
		if s.AtMs > at {
			if i > 0 && x.report.Steps[i-1].AtMs == at {
				return i
			}
			return i + 1
		}
		step = i + 1
	}
	return step
}

// differ reports a difference, with the recorded and the new picture if there are any. It combines differences of the
// same kind with the same non-empty value of same, and counts them. If the difference is to be accepted, differ returns
// true without reporting it.
func (x *run) differ(ctx context.Context, d Diff, same, want string, png func() []byte) (accepted bool) {
	if x.merged.takes(d) {
		return true
	}
	of := d.Kind + "\n" + same
	if i, ok := x.groups[of]; ok && same != "" {
		x.report.Diffs[i].again(d.Step)
		return false
	}
	if len(x.report.Diffs) >= maxDiffs {
		if x.report.MoreDiffs == nil {
			x.report.MoreDiffs = map[string]int{}
		}
		x.report.MoreDiffs[d.Kind]++
		return false
	}
	var got []byte
	if png != nil {
		got = png()
	}
	if want != "" || got != nil {
		x.keepPictures(ctx, &d, want, got)
	}
	if x.groups == nil {
		x.groups = map[string]int{}
	}
	x.groups[of] = len(x.report.Diffs)
	x.report.Diffs = append(x.report.Diffs, d)
	return false
}

// maxAlsoSteps is the maximum number of steps that a difference lists.
const maxAlsoSteps = 20

// again counts another occurrence of the difference, in the given step.
func (d *Diff) again(step int) {
	d.Count = d.Times() + 1
	if step != d.Step && len(d.AlsoSteps) < maxAlsoSteps && !slices.Contains(d.AlsoSteps, step) {
		d.AlsoSteps = append(d.AlsoSteps, step)
	}
}

// difference returns the path of the first difference between two values, or "" if they are equal.
func difference(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return path
		}
		both := maps.Clone(w)
		maps.Copy(both, g)
		for _, name := range sortedKeys(both) {
			wv, inW := w[name]
			gv, inG := g[name]
			if inW != inG {
				return path + "." + name
			}
			if at := difference(path+"."+name, wv, gv); at != "" {
				return at
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(w) != len(g) {
			return path
		}
		for i := range w {
			if at := difference(fmt.Sprintf("%s[%d]", path, i), w[i], g[i]); at != "" {
				return at
			}
		}
		return ""
	}
	if _, object := got.(map[string]any); object {
		return path
	}
	if _, list := got.([]any); list || want != got {
		return path
	}
	return ""
}

func differs(path string, want, got any) string {
	if difference(path, want, got) == "" {
		return ""
	}
	return fmt.Sprintf("%s is %s, not %s", path, shown(got), shown(want))
}

func shown(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return short(raw)
}

// short returns raw, shortened to a readable length.
func short(raw []byte) string {
	if len(raw) <= 300 {
		return string(raw)
	}
	return string(bytes.ToValidUTF8(raw[:300], nil)) + "…"
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
