package scenario

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"path/filepath"

	"github.com/service-dev/service/glasses/scenario"
)

// comparePictures compares the pictures separately from the frames.
func (x *run) comparePictures(ctx context.Context, got []panel) {
	want, sums := x.s.Recorded.Pictures, make([]string, len(got))
	for i, p := range got {
		sums[i] = sum(p.png())
	}
	cost := func(i, j int) int {
		if want[i].SHA256 == sums[j] {
			return 0
		}
		return gapCost
	}
	for _, p := range align(len(want), len(got), cost) {
		switch {
		case p.got < 0:
			w := want[p.want]
			if !x.differ(ctx, Diff{Kind: DiffPicture, Step: x.stepAt(w.At), AtMs: w.At, Message: "a picture is missing"},
				w.SHA256, w.SHA256, nil) {
				x.merged.addPicture(w, nil)
			}
			continue
		case p.want >= 0 && want[p.want].SHA256 == sums[p.got]:
			x.merged.addPicture(want[p.want], nil)
			continue
		}
		g, was := got[p.got], scenario.Picture{}
		d := Diff{Kind: DiffPicture, Step: x.stepOf(g.request), AtMs: g.at, Message: "a picture is extra"}
		same := sums[p.got]
		if p.want >= 0 {
			was, d.Message = want[p.want], "the panel looks different"
			same = was.SHA256 + " " + same
		}
		switch accepted := x.differ(ctx, d, same, was.SHA256, g.png); {
		case accepted:
			x.merged.addPicture(scenario.Picture{At: g.at, SHA256: sums[p.got]}, g.png)
		case p.want >= 0:
			x.merged.addPicture(was, nil)
		}
	}
}

// maxPicture is the maximum size of a recorded picture, in bytes.
const maxPicture = 4 << 20

// keepPictures stores the pictures of a difference and counts the differing pixels. The files are named after the step.
func (x *run) keepPictures(ctx context.Context, d *Diff, want string, got []byte) {
	if got != nil && sum(got) == want {
		return // e.g. a field that is not drawn
	}
	x.artifacts[d.Step]++
	name := fmt.Sprintf("step-%d", d.Step)
	if n := x.artifacts[d.Step]; n > 1 {
		name += fmt.Sprintf("-%d", n)
	}
	keep := func(what string, data []byte) string {
		file, err := x.req.keep(ctx, name+"-"+what+".png", data)
		if file != "" || err != nil {
			p := Picture{Name: name + "-" + what, AtMs: d.AtMs, File: file}
			p.notStored(err)
			x.drawn.Lock()
			defer x.drawn.Unlock()
			x.report.Pictures = append(x.report.Pictures, p)
		}
		return file
	}
	var before []byte
	if want != "" {
		data, err := x.req.Files.Read(ctx, filepath.Join(x.dir, "pictures", want+".png"), maxPicture)
		if err == nil && sum(data) == want {
			before = data
		}
	}
	d.WantFile, d.GotFile = keep("want", before), keep("got", got)
	if before == nil || got == nil {
		return
	}
	if marked, count := marks(before, got); marked != nil {
		d.Message += fmt.Sprintf(" (%d pixels)", count)
		d.DiffFile = keep("diff", marked)
	}
}

// marks returns the recorded picture, dimmed, with differing pixels in red. It returns nil if the pictures differ in
// size.
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
