// Package chart draws numbers as small SVG charts for inclusion in a page. Each chart has a title and a description
// for screen readers, takes its colours from classes and currentColor, and contains neither script nor style. The
// package does not interpret the numbers.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Point is one value of a series. Label is its time or name.
type Point struct {
	Label string
	N     int64 // negative values are drawn as 0
}

// Chart describes a chart to draw. ID is unique within its page and consists of letters, digits and -.
type Chart struct {
	ID, Title, Desc string
	Points          []Point
	Format          func(n int64) string // formats the numbers; nil for plain counts
	Unfinished      bool                 // the period of the last point is not over, so it is drawn hatched
}

// short formats a number for labels with little space.
func (c Chart) short(n int64) string {
	if c.Format != nil {
		return c.Format(n)
	}
	return Short(n)
}

// tip returns the hover text of a point.
func (c Chart) tip(p Point) string {
	n := strconv.FormatInt(p.N, 10)
	if c.Format != nil {
		n = c.Format(p.N)
	}
	return html.EscapeString(clean(p.Label)) + ": " + html.EscapeString(n)
}

// Size of a line or bar chart in SVG units; the page scales it. It is about as wide as a card, so that text stays
// readable on a phone.
const (
	width, height = 440, 180
	left, right   = 48, 8
	top, bottom   = 10, 24
	labels        = 5 // maximum number of labels below a series
)

// Line draws a series as a line with a filled area below it.
func (c Chart) Line() string {
	s := c.scale()
	if len(c.Points) == 0 {
		return c.svg(s.axis())
	}
	last := len(c.Points) - 1
	finished := last
	if c.Unfinished {
		finished = max(0, last-1)
	}
	drawn := c.hatch() + s.axis() + s.area(0, finished, "chart-area", "") +
		`<polyline class="chart-line" fill="none" points="` + s.line(0, finished) + `"/>`
	if finished < last {
		drawn += s.area(finished, last, "chart-open", c.hatched()) +
			`<polyline class="chart-line chart-dashed" fill="none" stroke-dasharray="5 4" points="` +
			s.line(finished, last) + `"/>`
	}
	return c.svg(drawn + s.dots() + s.times())
}

// line returns the coordinates of the points from first to last.
func (s scale) line(first, last int) string {
	var line []string
	for i := first; i <= last; i++ {
		line = append(line, num(s.middle(i))+","+num(s.y(s.points[i].N)))
	}
	return strings.Join(line, " ")
}

// area draws the area below the points from first to last.
func (s scale) area(first, last int, class, fill string) string {
	floor := num(s.y(0))
	return fmt.Sprintf(`<path class="%s"%s d="M%s,%s L%s L%s,%s Z"/>`, class, fill, num(s.middle(first)), floor,
		s.line(first, last), num(s.middle(last)), floor)
}

// hatch returns a pattern definition for unfinished periods. hatched is the fill that refers to it.
func (c Chart) hatch() string {
	if !c.Unfinished {
		return ""
	}
	return `<defs><pattern id="` + c.ID + `-hatch" width="6" height="6" patternUnits="userSpaceOnUse" ` +
		`patternTransform="rotate(45)"><path class="chart-hatch" d="M1.5,0 V6"/></pattern></defs>`
}

func (c Chart) hatched() string { return ` fill="url(#` + c.ID + `-hatch)"` }

// Bars draws a series as vertical bars.
func (c Chart) Bars() string {
	s := c.scale()
	var b strings.Builder
	b.WriteString(c.hatch() + s.axis())
	for i, p := range c.Points {
		y, class, fill := s.y(p.N), "chart-bar", ""
		if c.Unfinished && i == len(c.Points)-1 {
			class, fill = "chart-open", c.hatched()
		}
		fmt.Fprintf(&b, `<rect class="%s"%s x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`, class, fill,
			num(s.middle(i)-s.step*.36), num(y), num(s.step*.72), num(s.y(0)-y), c.tip(p))
	}
	b.WriteString(s.times())
	return c.svg(b.String())
}

func (c Chart) svg(inside string) string {
	return fmt.Sprintf(`<svg class="chart" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d" focusable="false">`+
		`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>`,
		width, height, c.ID, c.ID, c.ID, html.EscapeString(clean(c.Title)), c.ID, html.EscapeString(clean(c.Desc)), inside)
}

// scale converts values and labels to positions.
type scale struct {
	chart  Chart
	points []Point
	ticks  []int64
	step   float64
}

func (c Chart) scale() scale {
	most := int64(0)
	for _, p := range c.Points {
		most = max(most, p.N)
	}
	step := float64(width-left-right) / float64(max(1, len(c.Points)))
	return scale{chart: c, points: c.Points, ticks: Ticks(most), step: step}
}

func (s scale) middle(i int) float64 { return left + (float64(i)+.5)*s.step }

func (s scale) y(n int64) float64 {
	most := s.ticks[len(s.ticks)-1]
	return height - bottom - float64(max(0, n))/float64(most)*(height-top-bottom)
}

func (s scale) axis() string {
	var b strings.Builder
	for _, t := range s.ticks {
		y := s.y(t)
		fmt.Fprintf(&b, `<path class="chart-grid" d="M%d,%s H%d"/>`+
			`<text class="chart-tick" x="%d" y="%s" text-anchor="end">%s</text>`,
			left, num(y), width-right, left-6, num(y+4), html.EscapeString(s.chart.short(t)))
	}
	return b.String()
}

// dots draws points that show their numbers on hover. In long series they are smaller, so that they do not hide the
// line.
func (s scale) dots() string {
	var b strings.Builder
	for i, p := range s.points {
		radius := "3"
		if len(s.points) > 40 {
			radius = "1.5"
		}
		fmt.Fprintf(&b, `<circle class="chart-dot" cx="%s" cy="%s" r="%s"><title>%s</title></circle>`, num(s.middle(i)),
			num(s.y(p.N)), radius, s.chart.tip(p))
	}
	return b.String()
}

func (s scale) times() string {
	var b strings.Builder
	every := (len(s.points) + labels - 1) / labels
	for i := 0; i < len(s.points); i += max(1, every) {
		fmt.Fprintf(&b, `<text class="chart-tick" x="%s" y="%d" text-anchor="middle">%s</text>`,
			num(min(s.middle(i), width-30)), height-6, html.EscapeString(clean(s.points[i].Label)))
	}
	return b.String()
}

// Ticks returns 2 to 6 round numbers for an axis. The first is 0 and the last is at least most. The step is 1, 2 or 5
// times a power of ten.
func Ticks(most int64) []int64 {
	step := int64(1)
	for i := 0; (most-1)/step >= 5 && step < math.MaxInt64/10; i++ {
		if i%3 == 1 { // the steps are 1, 2, 5, 10, 20, ...
			step = step / 2 * 5
		} else {
			step *= 2
		}
	}
	ticks := []int64{0}
	for n := step; ; n += step {
		ticks = append(ticks, n)
		if n >= most || n > math.MaxInt64-step {
			return ticks
		}
	}
}

// Short formats a number in at most five characters, such as 950, 12k or 3.4M. It rounds down.
func Short(n int64) string {
	if n > -1000 && n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	size, unit := int64(1000), 0
	for unit < len("kMGTPE")-1 && n/size/1000 != 0 {
		size *= 1000
		unit++
	}
	whole, tenth := n/size, n%size/(size/10)
	if tenth != 0 && whole > -100 && whole < 100 {
		return fmt.Sprintf("%d.%d%c", whole, max(tenth, -tenth), "kMGTPE"[unit])
	}
	return fmt.Sprintf("%d%c", whole, "kMGTPE"[unit])
}

// num formats a coordinate with at most one decimal.
func num(f float64) string { return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64) }

// clean removes characters that XML does not allow.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0xFFFE || r == 0xFFFF || r == 0xFFFD {
			return ' '
		}
		return r
	}, s)
}
