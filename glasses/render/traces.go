package render

import "image"

// traces records, for each pixel of a picture being painted, the texts that affect its colour. With traces, one pass is
// enough for all texts. Comparing two pictures for each text would take many seconds for a tree with hundreds of large
// overlapping texts.
type traces struct {
	rect  image.Rectangle
	heads []int32 // index of the first trace of each pixel, row by row; 0 for none
	all   []trace // all[0] is unused
	free  int32   // index of the first unused trace; 0 for none
}

// trace records a text that affects a pixel.
type trace struct {
	text    *box
	without rgb   // colour of the pixel without the text
	next    int32 // index of the next trace of the pixel; 0 for none
}

func newTraces(rect image.Rectangle) *traces {
	return &traces{rect: rect, heads: make([]int32, rect.Dx()*rect.Dy()), all: make([]trace, 1)}
}

// at returns a pointer to the head of the list of traces of a pixel.
func (t *traces) at(x, y int) *int32 {
	return &t.heads[(y-t.rect.Min.Y)*t.rect.Dx()+x-t.rect.Min.X]
}

// cover removes the traces within a rectangle that is painted over.
func (t *traces) cover(r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			for link := t.at(x, y); *link != 0; {
				t.remove(link)
			}
		}
	}
}

// mix paints the pixel x, y, whose colour is px, and the colours that it would have without each text. text is the text
// being painted, or nil while other parts are painted. It returns the number of blended colours.
func (t *traces) mix(x, y int, px []byte, text *box, mix func(px []byte)) int {
	before, known, mixed := rgb(px), false, 1
	mix(px)
	after := rgb(px)
	link := t.at(x, y)
	for *link != 0 {
		tr := &t.all[*link]
		if tr.text == text {
			known = true
		} else {
			mix(tr.without[:])
			mixed++
		}
		if tr.without == after { // later painting changes both colours in the same way
			t.remove(link)
		} else {
			link = &tr.next
		}
	}
	if text != nil && !known && before != after {
		t.add(t.at(x, y), trace{text: text, without: before})
	}
	return mixed
}

// remove removes the trace to which link points.
func (t *traces) remove(link *int32) {
	i := *link
	*link = t.all[i].next
	t.all[i].next, t.free = t.free, i
}

// add inserts a trace in the list of a pixel, before the trace to which link points.
func (t *traces) add(link *int32, tr trace) {
	tr.next = *link
	if t.free == 0 {
		t.all = append(t.all, tr)
		*link = int32(len(t.all) - 1)
		return
	}
	*link, t.free = t.free, t.all[t.free].next
	t.all[*link] = tr
}

// finish removes the traces of a text from pixels that the panel would show in the same colour without the text,
// because the panel has few shades.
func (t *traces) finish(c *canvas) {
	for y := t.rect.Min.Y; y < t.rect.Max.Y; y++ {
		for x := t.rect.Min.X; x < t.rect.Max.X; x++ {
			shown := c.q.shown(rgb(c.img.Pix[c.img.PixOffset(x, y):]))
			for link := t.at(x, y); *link != 0; {
				if c.q.shown(t.all[*link].without) == shown {
					t.remove(link)
				} else {
					link = &t.all[*link].next
				}
			}
		}
	}
}

// has reports whether a text affects a pixel.
func (t *traces) has(px image.Point, text *box) bool {
	if !px.In(t.rect) {
		return false
	}
	for i := *t.at(px.X, px.Y); i != 0; i = t.all[i].next {
		if t.all[i].text == text {
			return true
		}
	}
	return false
}
