package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"path/filepath"
	"slices"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
	"github.com/service-dev/service/proto/glasses/scenario"
)

// maxDiffs bounds the differences in a report.
const maxDiffs = 50

// traceOf returns what the app did, in order: its commands and events.
func traceOf(rows []glasses.Event, base int64) []scenario.Request {
	trace := []scenario.Request{}
	for _, e := range rows {
		if e.Sender == glasses.SenderApp {
			trace = append(trace, scenario.Request{At: e.At - base, Type: e.Type, Payload: e.Payload})
		}
	}
	return trace
}

// panel is the display after a command of the app.
type panel struct {
	at    int64
	model glasses.DeviceModel
	view  glasses.View
}

func (p panel) png() []byte {
	if p.model.Panel == nil {
		return nil
	}
	return render.PNG(render.Draw(p.model, p.view))
}

// panels replays what the panel shows after each display command that succeeded, with the focus where earlier inputs
// left it. model is the device model before the first row.
func panels(rows []glasses.Event, base int64, model string) []panel {
	m, _ := glasses.Model(model)
	asked := map[string]glasses.Event{}
	view := glasses.View{Focus: -1}
	var list []panel
	for _, e := range rows {
		switch {
		case e.Kind == glasses.KindRequest && (e.Type == glasses.TypeDisplayShow || e.Type == glasses.TypeDisplayClear):
			asked[e.ID] = e
		case e.Type == glasses.TypeDevice:
			var p glasses.DeviceChange
			if json.Unmarshal(e.Payload, &p) == nil {
				if next, ok := glasses.Model(p.DeviceModel.ID); ok {
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
			list = append(list, panel{at: e.At - base, model: m, view: view})
		}
	}
	return list
}

// maxFindings bounds the findings in a report, which agents read.
const maxFindings = 5

// Findings returns what the results of display.show found, each once. model is the device model before the first row.
func Findings(rows []glasses.Event, model string) []Finding {
	list := []Finding{}
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
			if one := (Finding{model, f}); !slices.Contains(list, one) {
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

// compareTrace returns where an app behaved differently than in the recording.
func compareTrace(want *scenario.Recorded, got []scenario.Request, virtual bool) []Diff {
	var diffs []Diff
	add := func(i int, path, message, want, got string) {
		diffs = append(diffs, Diff{Kind: "trace", Index: i, Path: path, Message: message, Want: want, Got: got})
	}
	compareTimes := virtual && want.Clock == "virtual"
	for i := range max(len(want.Trace), len(got)) {
		if i >= len(got) {
			add(i, "", want.Trace[i].Type+" is missing", short(want.Trace[i].Payload), "")
			continue
		}
		if i >= len(want.Trace) {
			add(i, "", got[i].Type+" is unexpected", "", short(got[i].Payload))
			continue
		}
		w, g := want.Trace[i], got[i]
		if w.Type != g.Type {
			add(i, "type", fmt.Sprintf("%s came instead of %s", g.Type, w.Type), w.Type, g.Type)
			continue
		}
		wantPayload, _ := decoded(w.Payload)
		gotPayload, _ := decoded(g.Payload)
		if path := difference("payload", wantPayload, gotPayload); path != "" {
			add(i, path, w.Type+" has another "+path, short(w.Payload), short(g.Payload))
		}
		if compareTimes && w.At != g.At {
			add(i, "at", w.Type+" came at another time", fmt.Sprint(w.At), fmt.Sprint(g.At))
		}
	}
	return diffs
}

// difference returns the path of the first place where two values differ, or "".
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

// short returns JSON, cut to a readable length.
func short(raw []byte) string {
	if len(raw) <= 300 {
		return string(raw)
	}
	return string(bytes.ToValidUTF8(raw[:300], nil)) + "…"
}

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// comparePictures returns where the panel looked different than in the recording.
func (x *run) comparePictures(ctx context.Context, got []panel) []Diff {
	var diffs []Diff
	want := x.s.Recorded.Pictures
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			diffs = append(diffs, Diff{Kind: "picture", Index: i, Message: "the panel was shown less often than recorded",
				Want: want[i].SHA256})
			return diffs
		case i >= len(want):
			diffs = append(diffs, Diff{Kind: "picture", Index: i, Message: "the panel was shown more often than recorded",
				Got: sum(got[i].png())})
			return diffs
		}
		picture := got[i].png()
		if sum(picture) != want[i].SHA256 {
			diffs = append(diffs, x.pictureDiff(ctx, i, want[i].SHA256, picture))
		}
	}
	return diffs
}

// maxPicture bounds a recorded picture, in bytes.
const maxPicture = 4 << 20

func (x *run) pictureDiff(ctx context.Context, i int, want string, got []byte) Diff {
	d := Diff{Kind: "picture", Index: i, Message: "the panel looks different", Want: want, Got: sum(got)}
	d.GotFile = x.req.keep(ctx, fmt.Sprintf("picture-%d-got.png", i), got)
	before, err := x.req.Files.Read(ctx, filepath.Join(x.dir, "pictures", want+".png"), maxPicture)
	if err != nil || sum(before) != want {
		return d
	}
	d.WantFile = x.req.keep(ctx, fmt.Sprintf("picture-%d-want.png", i), before)
	if marked, count := marks(before, got); marked != nil {
		d.Message = fmt.Sprintf("%d pixels of the panel are different", count)
		d.DiffFile = x.req.keep(ctx, fmt.Sprintf("picture-%d-diff.png", i), marked)
	}
	return d
}

// marks returns the recorded picture, dimmed, with differing pixels in red; nil if the two pictures differ in size.
func marks(want, got []byte) (picture []byte, count int) {
	w, errW := png.Decode(bytes.NewReader(want))
	g, errG := png.Decode(bytes.NewReader(got))
	if errW != nil || errG != nil || w.Bounds() != g.Bounds() {
		return nil, 0
	}
	out := image.NewNRGBA(w.Bounds())
	draw.Draw(out, out.Bounds(), w, w.Bounds().Min, draw.Src)
	for y := out.Rect.Min.Y; y < out.Rect.Max.Y; y++ {
		for x := out.Rect.Min.X; x < out.Rect.Max.X; x++ {
			c := out.NRGBAAt(x, y)
			if color.NRGBAModel.Convert(w.At(x, y)) != color.NRGBAModel.Convert(g.At(x, y)) {
				count++
				out.SetNRGBA(x, y, color.NRGBA{R: 255, A: 255})
				continue
			}
			out.SetNRGBA(x, y, color.NRGBA{c.R / 3, c.G / 3, c.B / 3, 255})
		}
	}
	var b bytes.Buffer
	if png.Encode(&b, out) != nil {
		return nil, 0
	}
	return b.Bytes(), count
}
