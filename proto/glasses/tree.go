package glasses

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
)

// Node types of a display tree. A node of another type is kept and drawn as an empty box.
const (
	NodeColumn   = "column"   // children below each other
	NodeRow      = "row"      // children beside each other
	NodeText     = "text"     // text, wrapped at words
	NodeImage    = "image"    // data: base64 of a PNG or JPEG
	NodeIcon     = "icon"     // icon: a name of render.Icons
	NodeButton   = "button"   // text and id; takes the focus
	NodeList     = "list"     // a column whose children take the focus, each by its id
	NodeProgress = "progress" // value: 0 to 100
)

// Overflow is what a column, row or list does with children that do not fit.
const (
	OverflowClip     = "clip" // the default: what does not fit is not seen
	OverflowScroll   = "scroll"
	OverflowPaginate = "paginate"
)

// Text styles and alignments. The empty style is body, the empty alignment start.
const (
	StyleTitle   = "title"
	StyleBody    = "body"
	StyleCaption = "caption"

	AlignStart  = "start"
	AlignCenter = "center"
	AlignEnd    = "end"
)

// Node is one node of a display tree. Lengths are panel pixels. Every field but Type is optional; a field that a type
// does not use is ignored.
type Node struct {
	Type string `json:"type"`
	// ID names the node in input events (their target). Give one to every button and list entry.
	ID       string `json:"id,omitempty"`
	Children []Node `json:"children,omitempty"`
	Text     string `json:"text,omitempty"`
	Style    string `json:"style,omitempty"`
	Align    string `json:"align,omitempty"` // of text, and of children across their column or row
	// Colour is #rrggbb; panels with fewer colours show the nearest, green ones its brightness. Default white.
	Colour   string `json:"colour,omitempty"`
	Gap      int    `json:"gap,omitempty"`     // between children
	Padding  int    `json:"padding,omitempty"` // around children
	Grow     int    `json:"grow,omitempty"`    // share of the space that is left in a column or row
	Overflow string `json:"overflow,omitempty"`
	Width    int    `json:"width,omitempty"`  // of image, icon, progress; 0 is its own
	Height   int    `json:"height,omitempty"` // the same
	Data     string `json:"data,omitempty"`   // of image
	Icon     string `json:"icon,omitempty"`
	Value    int    `json:"value,omitempty"` // of progress
}

// Limits of a display tree.
const (
	MaxNodes     = 500
	MaxTreeDepth = 32
	MaxLength    = 4096 // of gap, padding, width, height; panel pixels
	MaxGrow      = 100
)

// Show is the payload of display.show.
type Show struct {
	Tree Node `json:"tree"`
}

// ParseShow reads a display.show payload and checks the tree's limits. The error is an *Error with code bad_payload; it
// names the node by its path. Images are not decoded here.
func ParseShow(payload []byte) (Show, error) {
	var s Show
	if err := json.Unmarshal(payload, &s); err != nil {
		return Show{}, badPayload("display.show payload is not {tree:{type,...}}: %v", plain(err))
	}
	nodes := 0
	if err := checkNode(s.Tree, "tree", 1, &nodes); err != nil {
		return Show{}, err
	}
	return s, nil
}

func checkNode(n Node, path string, depth int, nodes *int) error {
	*nodes++
	switch {
	case !validWord(n.Type, MaxType):
		return badPayload("%s has no type", path)
	case depth > MaxTreeDepth:
		return badPayload("the tree is deeper than %d", MaxTreeDepth)
	case *nodes > MaxNodes:
		return badPayload("the tree has more than %d nodes", MaxNodes)
	case n.ID != "" && !validWord(n.ID, MaxID):
		return badPayload("%s.id is not 1 to %d printable ASCII characters without spaces", path, MaxID)
	}
	if err := checkNodeFields(n, path); err != nil {
		return err
	}
	for i, c := range n.Children {
		if err := checkNode(c, path+".children["+strconv.Itoa(i)+"]", depth+1, nodes); err != nil {
			return err
		}
	}
	return nil
}

func checkNodeFields(n Node, path string) error {
	for _, f := range []struct {
		name    string
		v, high int
	}{{"gap", n.Gap, MaxLength}, {"padding", n.Padding, MaxLength}, {"width", n.Width, MaxLength}, {"height", n.Height, MaxLength},
		{"grow", n.Grow, MaxGrow}, {"value", n.Value, 100}} {
		if f.v < 0 || f.v > f.high {
			return badPayload("%s.%s is %d, it goes from 0 to %d", path, f.name, f.v, f.high)
		}
	}
	for _, f := range []struct {
		name, v string
		words   []string
	}{{"style", n.Style, []string{StyleTitle, StyleBody, StyleCaption}}, {"align", n.Align, []string{AlignStart, AlignCenter, AlignEnd}},
		{"overflow", n.Overflow, []string{OverflowClip, OverflowScroll, OverflowPaginate}}} {
		if f.v != "" && !slices.Contains(f.words, f.v) {
			return badPayload("%s.%s is not one of %v", path, f.name, f.words)
		}
	}
	if _, ok := ParseColour(n.Colour); n.Colour != "" && !ok {
		return badPayload("%s.colour is not #rrggbb", path)
	}
	if n.Type == NodeImage {
		if _, err := base64.StdEncoding.DecodeString(n.Data); err != nil || n.Data == "" {
			return badPayload("%s.data is not the base64 of a PNG or JPEG", path)
		}
	}
	return nil
}

// ParseColour reads #rrggbb.
func ParseColour(s string) (rgb [3]byte, ok bool) {
	if len(s) != 7 || s[0] != '#' {
		return rgb, false
	}
	for i := range 3 {
		high, low := hexDigit(s[1+2*i]), hexDigit(s[2+2*i])
		if high < 0 || low < 0 {
			return rgb, false
		}
		rgb[i] = byte(high<<4 | low)
	}
	return rgb, true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
