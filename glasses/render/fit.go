package render

import (
	"image"
	"strings"
	"unicode"

	"github.com/service-dev/service/glasses"
)

// maxFitViews is the maximum number of combinations of focus and scroll position that Fit examines. Content that is
// visible only in further combinations counts as not visible.
const maxFitViews = 2000

// maxFindingText is the maximum length of a finding's text in bytes. The findings of a show are part of its result,
// which must fit in one frame.
const maxFindingText = 120

// Fit returns the parts of a view's tree that the wearer cannot see or reach on this model with any input, in drawing
// order. On a model without navigation, Fit examines only v. The result is empty for a model without a panel and for a
// clear panel.
func Fit(m glasses.DeviceModel, v glasses.View) []glasses.Finding {
	s, ok := laidOut(m, v)
	if !ok || s.root == nil {
		return nil
	}
	f := fitting{scene: s, fits: map[*box]bool{}, whole: map[*box]bool{}, lines: map[*box][]bool{},
		focused: make([]bool, len(s.targets))}
	f.look()
	if m.MoveKind() != "" {
		f.travel("down")
		s.point(v.Focus, v.Scroll)
		f.travel("up")
	}
	return f.findings()
}

// fitting records what was visible in the examined views of a scene.
type fitting struct {
	*scene
	views   int
	fits    map[*box]bool   // targets that have been completely on the panel
	whole   map[*box]bool   // graphics that have been completely on the panel
	lines   map[*box][]bool // lines of each text that have been completely on the panel
	focused []bool          // targets that have had the focus
}

// travel navigates in one direction until the view no longer changes.
func (f *fitting) travel(direction string) {
	for f.views < maxFitViews {
		before := f.view(nil)
		f.move(direction)
		if f.view(nil) == before {
			return
		}
		f.look()
	}
}

// look records the parts that are completely on the panel. It examines only lines on the panel, because a long text may
// have thousands of lines.
func (f *fitting) look() {
	f.views++
	if f.focus >= 0 {
		f.focused[f.focus] = true
	}
	f.walk(func(b *box, r, clip image.Rectangle) {
		if !r.Overlaps(clip) {
			return
		}
		if b.target >= 0 && r.In(clip) {
			f.fits[b] = true
		}
		if isGraphic(b.n) && f.isWhole(paintedBox{b, r, clip}) {
			f.whole[b] = true
		}
		if b.text != nil {
			f.lookAtLines(b, r, f.paintClip(r, clip))
		}
	})
}

func (f *fitting) lookAtLines(b *box, r, clip image.Rectangle) {
	seen := f.lines[b]
	if seen == nil {
		seen = make([]bool, len(b.text.lines))
		f.lines[b] = seen
	}
	least := f.leastCover()
	for i := b.text.firstBelow(clip.Min.Y - r.Min.Y - b.padY); i < len(seen); i++ {
		l := b.text.lines[i]
		if r.Min.Y+b.padY+l.top >= clip.Max.Y {
			return
		}
		if seen[i] {
			continue
		}
		if at, drawn := b.lineAt(l, r, clip, least); drawn {
			seen[i] = b.text.reach(l).Add(at).In(clip) || b.text.inkOf(l, least).Add(at).In(clip)
		}
	}
}

// findings returns the parts that were never visible or reachable. It does not report the content of a cut target
// separately.
func (f *fitting) findings() []glasses.Finding {
	var found []glasses.Finding
	add := func(kind string, b *box) {
		text := graphicName(b.n)
		if b.text != nil {
			text = b.n.Text
		}
		if len(text) > maxFindingText {
			text = strings.ToValidUTF8(text[:maxFindingText], "") + "…"
		}
		one := glasses.Finding{Kind: kind, Path: b.path(), ID: b.n.ID, Text: text}
		if isGraphic(b.n) {
			one.Type = b.n.Type
		}
		found = append(found, one)
	}
	f.walk(func(b *box, _, _ image.Rectangle) {
		if b.target >= 0 && !f.fits[b] {
			add(glasses.FindingCut, b)
		} else if !f.isInCutTarget(b) && f.isClipped(b) {
			add(glasses.FindingClipped, b)
		}
		if _, known := iconShapes[b.n.Icon]; b.n.Type == glasses.NodeIcon && !known {
			add(glasses.FindingUnknownIcon, b)
		}
		if b.n.Type == glasses.NodeButton && b.text.breaksWord() {
			add(glasses.FindingBrokenWord, b)
		}
		if b.target >= 0 && !f.focused[b.target] {
			add(glasses.FindingUnreachable, b)
		}
		if b.text != nil {
			if missing := b.text.missing(); missing != "" {
				add(glasses.FindingMissingGlyph, b)
				found[len(found)-1].Missing = missing
			}
		}
	})
	return found
}

func (f *fitting) isInCutTarget(b *box) bool {
	for ; b != nil; b = b.parent {
		if b.target >= 0 && !f.fits[b] {
			return true
		}
	}
	return false
}

// isClipped reports whether part of a text or a graphic was never on the panel.
func (f *fitting) isClipped(b *box) bool {
	if isGraphic(b.n) {
		return !f.whole[b]
	}
	if b.text == nil {
		return false
	}
	seen := f.lines[b]
	for i, l := range b.text.lines {
		if l.from < l.to && (seen == nil || !seen[i]) {
			return true
		}
	}
	return false
}

// breaksWord reports whether a line ends within a word. In scripts without spaces, lines may end anywhere.
func (p *paragraph) breaksWord() bool {
	for i := 1; i < len(p.lines); i++ {
		at := p.lines[i].from
		if at < len(p.glyphs) && p.mayBegin(at) {
			continue
		}
		if isWordRune(p.glyphs[at-1].r) && at < len(p.glyphs) && isWordRune(p.glyphs[at].r) {
			return true
		}
	}
	return false
}

func isWordRune(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsDigit(r)) &&
		!unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer)
}
