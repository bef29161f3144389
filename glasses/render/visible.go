package render

import (
	"image"
	"strings"
	"sync"

	"github.com/service-dev/service/glasses"
)

// Values of Visible, which describes how much of a node the wearer sees.
const (
	VisibleFull    = "full"
	VisiblePartial = "partial"
	VisibleNone    = "none"
)

// Inspection describes what a tree shows on a panel, in drawing order.
type Inspection struct {
	Texts    []Text
	Targets  []Target
	Graphics []Graphic
}

// Text is the text of a text node or a button.
type Text struct {
	// ID is the ID of the node, if it has one. Path is the path of the node in the tree, e.g. tree.children[0].
	ID, Path string
	Text     string
	// Visible is VisibleFull if every pixel of the text is visible in the picture of the panel, and VisibleNone if no
	// pixel is. A text without pixels, such as a black text, is not visible. A text that consists of missing characters
	// is not visible either.
	Visible string
	// Whole is the part of Text whose lines are visible in full. Seen is the part whose lines have at least one visible
	// pixel. Lines that are not adjacent are separated by a line feed.
	Whole, Seen string
	// Missing lists the characters that no font contains, e.g. "你 U+4F60"; empty if there are none. They are drawn as
	// boxes, and a line that contains one is not in Whole.
	Missing string
}

// Inspect returns the texts, targets and graphics in a view, and how much of each is visible in the picture that Draw
// returns.
func Inspect(m glasses.DeviceModel, v glasses.View) Inspection {
	s, ok := laidOut(m, v)
	if !ok {
		return Inspection{}
	}
	return s.inspect()
}

func (s *scene) inspect() Inspection {
	var found Inspection
	var painted, graphics []paintedBox
	s.walk(func(b *box, r, clip image.Rectangle) {
		if b.target >= 0 {
			found.Targets = append(found.Targets, targetOf(b, r, clip))
		}
		switch {
		case isGraphic(b.n):
			graphics = append(graphics, paintedBox{b, r, clip})
		case b.text != nil && b.n.Text != "":
			painted = append(painted, paintedBox{b, r, clip})
		}
	})
	places, traces := s.paintedPlaces(), sync.OnceValue(s.trace)
	for _, p := range painted {
		found.Texts = append(found.Texts, s.textOf(p, places, traces))
	}
	owners := sync.OnceValue(s.paintOwners)
	for _, p := range graphics {
		found.Graphics = append(found.Graphics, s.graphicOf(p, places, owners))
	}
	return found
}

// Hide marks everything as not visible, for glasses whose panel is dark.
func (i *Inspection) Hide() {
	for k := range i.Texts {
		t := &i.Texts[k]
		t.Visible, t.Whole, t.Seen = VisibleNone, "", ""
	}
	for k := range i.Targets {
		i.Targets[k].Visible = VisibleNone
	}
	for k := range i.Graphics {
		i.Graphics[k].Visible, i.Graphics[k].Whole = VisibleNone, false
	}
}

// visiblePart returns how much of r lies within clip.
func visiblePart(r, clip image.Rectangle) string {
	switch {
	case !r.Overlaps(clip):
		return VisibleNone
	case r.In(clip):
		return VisibleFull
	}
	return VisiblePartial
}

func targetOf(b *box, r, clip image.Rectangle) Target {
	return Target{ID: b.n.ID, Path: b.path(), Rect: r, Visible: visiblePart(r, clip)}
}

// paintedBox is a box with its position and the part of the panel that it may paint.
type paintedBox struct {
	*box
	r, clip image.Rectangle
}

// inks returns the colours of b's text and of the ground below it.
func (s *scene) inks(b *box) (ink, ground rgb) {
	ink = s.ink(b.n.Colour)
	if b.n.Type == glasses.NodeButton && b.target == s.focus {
		return rgb{}, ink
	}
	return ink, rgb{}
}

// lineView describes how much of a line is in the picture.
type lineView struct{ some, all bool }

// textOf returns how much of a text is visible in the picture. places are the areas that other boxes paint.
// traces is a function because tracing is expensive.
func (s *scene) textOf(p paintedBox, places []paintedPlace, traces func() *traces) Text {
	t := Text{ID: p.n.ID, Path: p.path(), Text: p.n.Text, Visible: VisibleNone, Missing: p.text.missing()}
	views := s.linesOf(p, places, traces)
	some, all := false, true
	for i, v := range views {
		line := p.text.lines[i]
		v = p.text.legible(line, v)
		views[i] = v
		blank := line.from == line.to
		some = some || v.some
		all = all && (v.all || blank)
		whole, seen := v.all, v.some
		if blank { // between two readable lines
			whole, seen = i > 0 && views[i-1].all, i > 0 && views[i-1].some
		}
		t.Whole = p.text.appendLine(t.Whole, i, whole)
		t.Seen = p.text.appendLine(t.Seen, i, seen)
	}
	switch {
	case some && all:
		t.Visible, t.Whole, t.Seen = VisibleFull, t.Text, t.Text
	case some:
		t.Visible, t.Whole, t.Seen = VisiblePartial, strings.TrimSpace(t.Whole), strings.TrimSpace(t.Seen)
	default:
		t.Whole, t.Seen = "", ""
	}
	return t
}

// appendLine appends line i and the spaces after it. If included is false, it appends a line feed instead.
func (p *paragraph) appendLine(text string, i int, included bool) string {
	switch {
	case !included && strings.HasSuffix(text, "\n"): // avoid copying the text, because there may be thousands of lines
		return text
	case !included:
		return text + "\n"
	}
	to := len(p.glyphs)
	if i+1 < len(p.lines) {
		to = p.lines[i+1].from
	}
	var b strings.Builder
	b.WriteString(text)
	for _, g := range p.glyphs[p.lines[i].from:to] {
		b.WriteRune(g.r)
		for _, r := range g.more {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// linesOf returns how much of each line of a text is in the picture.
func (s *scene) linesOf(p paintedBox, places []paintedPlace, traces func() *traces) []lineView {
	views := make([]lineView, len(p.text.lines))
	least, ok := s.leastSeen(s.inks(p.box))
	if !ok || !p.r.Overlaps(p.clip) {
		return views
	}
	clip := s.paintClip(p.r, p.clip)
	for i := p.text.firstBelow(clip.Min.Y - p.r.Min.Y - p.padY); i < len(p.text.lines); i++ {
		l := p.text.lines[i]
		if p.r.Min.Y+p.padY+l.top >= clip.Max.Y {
			break
		}
		at, drawn := p.lineAt(l, p.r, clip, s.leastCover())
		ink := p.text.inkOf(l, least).Add(at)
		if !drawn || !ink.Overlaps(clip) {
			continue
		}
		covered := isCovered(p.box, ink.Intersect(clip), places)
		if covered || p.target == s.focus && p.n.Type == glasses.NodeButton && !ink.In(p.r) {
			views[i] = traces().lineOf(p, l, at, least)
			continue
		}
		views[i].all = ink.In(clip)
		views[i].some = views[i].all
		p.text.eachPixel(l, at, least, func(px image.Point) bool {
			views[i].some = views[i].some || px.In(clip)
			return !views[i].some
		})
	}
	return views
}

// eachPixel visits the pixels of a line with a coverage of at least least, until visit returns false.
func (p *paragraph) eachPixel(l textLine, at image.Point, least uint8, visit func(px image.Point) bool) {
	for g, offset := range p.masks(l) {
		for i, a := range g.pix {
			if a >= least && !visit(at.Add(offset).Add(image.Pt(i%g.w, i/g.w))) {
				return
			}
		}
	}
}

// trace paints the scene and returns which texts affect which pixels.
func (s *scene) trace() *traces {
	c := canvas{img: image.NewNRGBA(s.area), q: s.quantiser, pixels: maxPixels, traces: newTraces(s.area)}
	s.paintOn(&c)
	c.traces.finish(&c)
	return c.traces
}

// lineOf returns how much of a line is in the picture.
func (t *traces) lineOf(p paintedBox, l textLine, at image.Point, least uint8) lineView {
	v := lineView{all: true}
	p.text.eachPixel(l, at, least, func(px image.Point) bool {
		seen := px.In(p.clip) && t.has(px, p.box)
		v.some = v.some || seen
		v.all = v.all && seen
		return !v.some || v.all
	})
	return v
}

// paintedPlace is a rectangle that a box paints. It does not include the ground of the box's own text.
type paintedPlace struct {
	b     *box
	place image.Rectangle
}

// isCovered reports whether another box, or the outline of b itself, may paint within r.
func isCovered(b *box, r image.Rectangle, places []paintedPlace) bool {
	for _, p := range places {
		if p.b != b && r.Overlaps(p.place) {
			return true
		}
	}
	return false
}

// paintedPlaces returns the rectangles that all boxes paint.
func (s *scene) paintedPlaces() []paintedPlace {
	var places []paintedPlace
	s.walk(func(b *box, r, clip image.Rectangle) {
		if !r.Overlaps(clip) {
			return
		}
		clip = s.paintClip(r, clip)
		add := func(owner *box, place image.Rectangle) {
			if place = place.Intersect(clip); !place.Empty() {
				places = append(places, paintedPlace{owner, place})
			}
		}
		focused := b.target >= 0 && b.target == s.focus
		switch {
		case b.n.Type == glasses.NodeButton && focused:
			add(b, r)
		case b.n.Type == glasses.NodeButton:
			for _, e := range frameEdges(r, s.border) {
				add(nil, e)
			}
		case isContainer(b.n):
			if in := b.inner(r); b.limit() > 0 { // the indicator of a scroller
				strip := b.indicator(in)
				add(nil, image.Rect(strip.Min.X-s.dot, r.Min.Y, strip.Max.X+s.dot, r.Max.Y).Inset(-s.dot))
			}
		case b.n.Type != glasses.NodeText:
			add(b, s.graphicRect(b, r))
		}
		if b.text != nil {
			for i := b.text.firstBelow(clip.Min.Y - r.Min.Y - b.padY); i < len(b.text.lines); i++ {
				if r.Min.Y+b.padY+b.text.lines[i].top >= clip.Max.Y {
					break
				}
				if at, drawn := b.lineAt(b.text.lines[i], r, clip, s.leastCover()); drawn {
					add(b, b.text.reach(b.text.lines[i]).Add(at))
				}
			}
		}
		if focused && b.n.Type != glasses.NodeButton {
			var outliner *box // a graphic's outline is part of it
			if isGraphic(b.n) {
				outliner = b
			}
			for _, e := range frameEdges(r, s.focusEdge) {
				add(outliner, e)
			}
		}
	})
	return places
}
