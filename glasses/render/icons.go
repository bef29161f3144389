package render

import (
	"image"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Icons returns the sorted names of the known icons. Other names are drawn as an empty box.
func Icons() []string {
	return slices.Sorted(maps.Keys(iconShapes))
}

// iconGrid is the side of the square in which icons are defined. iconPen is the width of their lines.
const (
	iconGrid = 48
	iconPen  = 4
	iconFine = 16 // number of units of a shape's coordinates per unit of the grid
)

// shape is one part of an icon. Its coordinates are in 1/iconFine of the grid. An erasing shape removes the parts below
// it.
type shape struct {
	kind  byte // one of the letters of iconShapes
	erase bool
	v     []int
}

// parseIcon parses a line of iconShapes.
func parseIcon(spec string) []shape {
	var shapes []shape
	for _, word := range strings.Fields(spec) {
		s := shape{}
		if word[0] == '-' {
			s.erase, word = true, word[1:]
		}
		s.kind = word[0]
		for _, number := range strings.Split(word[1:], ",") {
			v, err := strconv.Atoi(number)
			if err != nil {
				panic("render: icon shape " + word + " is not numbers")
			}
			s.v = append(s.v, v*iconFine)
		}
		shapes = append(shapes, s)
	}
	return shapes
}

// covers reports whether a point is inside the shape.
func (s *shape) covers(x, y int) bool {
	const half = iconPen * iconFine / 2
	v := s.v
	switch s.kind {
	case 'L':
		for i := 0; i+3 < len(v); i += 2 {
			if nearLine(x, y, v[i], v[i+1], v[i+2], v[i+3], half) {
				return true
			}
		}
	case 'O', 'A':
		if s.kind == 'A' && (x < v[3] || y < v[4] || x > v[5] || y > v[6]) {
			return false
		}
		d := (x-v[0])*(x-v[0]) + (y-v[1])*(y-v[1])
		return d <= (v[2]+half)*(v[2]+half) && d >= (v[2]-half)*(v[2]-half)
	case 'D':
		return (x-v[0])*(x-v[0])+(y-v[1])*(y-v[1]) <= v[2]*v[2]
	case 'R':
		return x >= v[0] && y >= v[1] && x <= v[2] && y <= v[3]
	case 'P':
		return inPolygon(x, y, v)
	}
	return false
}

// nearLine reports whether a point is at most r away from a line segment.
func nearLine(x, y, x0, y0, x1, y1, r int) bool {
	dx, dy := x1-x0, y1-y0
	length := dx*dx + dy*dy
	along := (x-x0)*dx + (y-y0)*dy
	switch {
	case along <= 0:
		return (x-x0)*(x-x0)+(y-y0)*(y-y0) <= r*r
	case along >= length:
		return (x-x1)*(x-x1)+(y-y1)*(y-y1) <= r*r
	}
	across := (x-x0)*dy - (y-y0)*dx
	return across*across <= r*r*length
}

func inPolygon(x, y int, v []int) bool {
	in := false
	for i, j := 0, len(v)-2; i < len(v); i, j = i+2, i {
		x0, y0, x1, y1 := v[j], v[j+1], v[i], v[i+1]
		if (y0 > y) == (y1 > y) {
			continue
		}
		side := (x-x0)*(y1-y0) - (x1-x0)*(y-y0)
		if (side < 0) == (y1 > y0) {
			in = !in
		}
	}
	return in
}

// drawIcon returns the mask of the part of an icon of size by size pixels. It samples each pixel at 16 points, or at 4
// in large icons.
func drawIcon(spec string, size int, part image.Rectangle) mask {
	shapes := parseIcon(spec)
	m := mask{w: part.Dx(), h: part.Dy(), pix: make([]uint8, part.Dx()*part.Dy())}
	side := 4
	if size > maxIconKept {
		side = 2
	}
	for i := range m.pix {
		px, py := part.Min.X+i%m.w, part.Min.Y+i/m.w
		hits := 0
		for sub := range side * side {
			x := (2*side*px + 2*(sub%side) + 1) * iconGrid * iconFine / (2 * side * size)
			y := (2*side*py + 2*(sub/side) + 1) * iconGrid * iconFine / (2 * side * size)
			if iconCovers(shapes, x, y) {
				hits++
			}
		}
		m.pix[i] = uint8(hits * 255 / (side * side))
	}
	return m
}

func iconCovers(shapes []shape, x, y int) bool {
	on := false
	for i := range shapes {
		if s := &shapes[i]; on == s.erase && s.covers(x, y) {
			on = !on
		}
	}
	return on
}

type iconKey struct {
	name string
	size int
}

// iconCache caches masks of icons that are at most maxIconKept pixels wide. The cache is emptied when it is full.
var iconCache struct {
	sync.Mutex
	masks map[iconKey]*mask
}

const (
	maxIcons    = 256
	maxIconKept = 128
)

// iconMask returns the mask of an icon that is at most maxIconKept pixels wide.
func iconMask(name string, size int) *mask {
	key := iconKey{name, size}
	iconCache.Lock()
	defer iconCache.Unlock()
	if m, ok := iconCache.masks[key]; ok {
		return m
	}
	m := drawIcon(iconShapes[name], size, image.Rect(0, 0, size, size))
	if iconCache.masks == nil || len(iconCache.masks) >= maxIcons {
		iconCache.masks = map[iconKey]*mask{}
	}
	iconCache.masks[key] = &m
	return &m
}

// icon paints an icon node. An unknown icon is drawn as an empty box.
func (c *canvas) icon(s *scene, b *box, r, clip image.Rectangle, ink rgb) {
	in := b.inner(r)
	size := s.iconSize(b.n)
	at := image.Rect(in.Min.X, in.Min.Y, in.Min.X+size, in.Min.Y+size)
	clip = clip.Intersect(at)
	spec, known := iconShapes[b.n.Icon]
	switch {
	case !known:
		c.frame(at, clip, s.border, ink)
	case size <= maxIconKept:
		c.stamp(iconMask(b.n.Icon, size), at.Min.X, at.Min.Y, clip, ink)
	case !clip.Empty(): // only the visible part, because a tree may contain hundreds of icons as large as the panel
		m := drawIcon(spec, size, clip.Sub(at.Min))
		c.stamp(&m, clip.Min.X, clip.Min.Y, clip, ink)
	}
}
