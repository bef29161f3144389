package render

import "github.com/service-dev/service/glasses"

// flow moves the content of a paginating box so that no page break cuts a line of text, a picture or a target. Such a
// part starts on the next page instead. Content higher than a page is cut.
func (b *box) flow() {
	p := pager{top: b.inner(b.rect()).Min.Y, page: b.page()}
	shift, end := 0, p.top
	for _, k := range b.kids {
		if b.n.Type == glasses.NodeRow {
			shift = 0
		}
		shift = p.flow(k, shift)
		end = max(end, k.y+k.h)
	}
	b.content = end - p.top
}

// pager computes page breaks.
type pager struct{ top, page int }

// over returns how far an element of height h at y must move to fit on one page.
func (p pager) over(y, h int) int {
	at := (y - p.top) % p.page
	if at <= 0 || at+h <= p.page {
		return 0
	}
	return p.page - at
}

// flow moves b by shift and beyond page breaks, and returns the shift for the content after it.
func (p pager) flow(b *box, shift int) int {
	whole := b.n.Type != glasses.NodeText && b.n.Type != glasses.NodeColumn && b.n.Type != glasses.NodeList
	if whole || b.target >= 0 && b.h <= p.page {
		shift += p.over(b.y+shift, b.h)
		b.move(shift)
		return shift
	}
	if b.text != nil {
		return p.flowText(b, shift)
	}
	b.y += shift
	inside := shift
	for _, k := range b.kids {
		inside = p.flow(k, inside)
	}
	b.h += inside - shift
	b.content += inside - shift
	return inside
}

func (p pager) flowText(b *box, shift int) int {
	line := b.text.face.line
	shift += p.over(b.y+shift, b.padY+line)
	b.y += shift
	extra := 0
	for i := range b.text.lines {
		l := &b.text.lines[i]
		l.top += extra
		over := p.over(b.y+b.padY+l.top, line)
		l.top += over
		extra += over
	}
	b.h += extra
	return shift + extra
}

// Pages returns the number of pages of the scrollable content, in heights of its visible part. It returns 1 if there is
// no scrollable content.
func Pages(m glasses.DeviceModel, v glasses.View) int {
	s, ok := laidOut(m, v)
	if !ok || s.primary == nil {
		return 1
	}
	return s.primary.pages()
}
