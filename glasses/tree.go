package glasses

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
)

// Types of nodes in a display tree. Nodes of an unknown type are kept and drawn as empty boxes.
const (
	NodeColumn   = "column"   // children from top to bottom
	NodeRow      = "row"      // children side by side
	NodeText     = "text"     // text, wrapped between words
	NodeImage    = "image"    // data: base64 of a PNG or JPEG
	NodeIcon     = "icon"     // icon: one of render.Icons
	NodeButton   = "button"   // text and id; focusable
	NodeList     = "list"     // a column whose children are focusable, each by its id
	NodeProgress = "progress" // value: 0 to 100
)

// Overflow modes of a column, row or list whose children do not fit.
const (
	OverflowClip     = "clip" // the default: content that does not fit is hidden
	OverflowScroll   = "scroll"
	OverflowPaginate = "paginate"
)

// Text styles and alignments. The default style is body, and the default alignment is start.
const (
	StyleLarge   = "large" // for a number or a word that must be readable at a glance
	StyleTitle   = "title"
	StyleBody    = "body"
	StyleCaption = "caption"

	AlignStart  = "start"
	AlignCenter = "center"
	AlignEnd    = "end"
)

// Directions of text. The default, auto, is the direction of the text's first letter.
const (
	DirectionAuto = "auto"
	DirectionLTR  = "ltr"
	DirectionRTL  = "rtl"
)

// Styles returns the text styles from the largest to the smallest.
func Styles() []string { return []string{StyleLarge, StyleTitle, StyleBody, StyleCaption} }

// Node is one node of a display tree. Lengths are in panel pixels. All fields except Type are optional. Fields that a
// type does not use are ignored.
type Node struct {
	Type string `json:"type"`
	// ID identifies the node as the target of input events. Every button and list entry should have one.
	ID       string `json:"id,omitempty"`
	Children []Node `json:"children,omitempty"`
	Text     string `json:"text,omitempty"`
	Style    string `json:"style,omitempty"`
	Align    string `json:"align,omitempty"` // of text, and of children across the axis of their column or row
	// Language is a BCP 47 tag for the texts of the node and its descendants. It matters for Han characters, whose
	// forms differ between Chinese, Japanese and Korean.
	Language string `json:"language,omitempty"`
	// Direction is the direction of the text. On other nodes it applies to rows, lists, alignment and progress, also in
	// descendants.
	Direction string `json:"direction,omitempty"`
	// Colour is #rrggbb; the default is white. Panels with fewer colours show the nearest one. Green panels show the
	// brightness.
	Colour   string `json:"colour,omitempty"`
	Gap      int    `json:"gap,omitempty"`     // between children
	Padding  int    `json:"padding,omitempty"` // around children
	Grow     int    `json:"grow,omitempty"`    // share of the free space of a column or row
	Overflow string `json:"overflow,omitempty"`
	Width    int    `json:"width,omitempty"`  // of image, icon, progress; 0 means the natural size
	Height   int    `json:"height,omitempty"` // like Width
	Data     string `json:"data,omitempty"`   // of image
	// Alt describes an image in words, for tests and for people who cannot see it. It is not drawn.
	Alt   string `json:"alt,omitempty"`
	Icon  string `json:"icon,omitempty"`
	Value int    `json:"value,omitempty"` // of progress
	// Focus is the ID of the target that is focused when the tree is shown. Only the root of a tree may have this
	// field.
	Focus string `json:"focus,omitempty"`
}

// Targets returns the nodes of a tree that can have the focus, in drawing order: buttons, and the children of lists.
func (n *Node) Targets() []*Node { return n.appendTargets(nil, false, 1) }

func (n *Node) appendTargets(list []*Node, inList bool, depth int) []*Node {
	if inList || n.Type == NodeButton {
		list = append(list, n)
	}
	if depth == MaxTreeDepth || n.Type != NodeColumn && n.Type != NodeRow && n.Type != NodeList {
		return list
	}
	for i := range n.Children {
		list = n.Children[i].appendTargets(list, n.Type == NodeList, depth+1)
	}
	return list
}

// Limits of a display tree.
const (
	MaxNodes     = 500
	MaxTreeDepth = 32
	MaxLength    = 4096 // of gap, padding, width and height, in panel pixels
	MaxGrow      = 100
)

// Show is the payload of display.show.
type Show struct {
	Tree Node `json:"tree"`
}

// ParseShow decodes a display.show payload and checks the limits of the tree. It does not decode images. On failure it
// returns an *Error with code bad_payload that names the node by its path.
func ParseShow(payload []byte) (Show, error) {
	var s Show
	if err := json.Unmarshal(payload, &s); err != nil {
		return Show{}, badPayload("display.show payload must be {tree:{type,...}}: %v", plain(err))
	}
	nodes := 0
	if err := checkNode(s.Tree, "tree", 1, &nodes); err != nil {
		return Show{}, err
	}
	if focus := s.Tree.Focus; focus != "" && !slices.ContainsFunc(s.Tree.Targets(), func(n *Node) bool {
		return n.ID == focus
	}) {
		return Show{}, badPayload("tree.focus is %.100q, but no button or list entry has this id", focus)
	}
	return s, nil
}

func checkNode(n Node, path string, depth int, nodes *int) error {
	*nodes++
	switch {
	case !validWord(n.Type, MaxType):
		return badPayload("%s has no type", path)
	case depth > MaxTreeDepth:
		return badPayload("the tree is more than %d levels deep", MaxTreeDepth)
	case *nodes > MaxNodes:
		return badPayload("the tree has more than %d nodes", MaxNodes)
	case n.ID != "" && !validWord(n.ID, MaxID):
		return badPayload("%s.id must be 1 to %d printable ASCII characters without spaces", path, MaxID)
	case n.Focus != "" && depth > 1:
		return badPayload("%s.focus must be at the root: tree.focus", path)
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
	}{
		{"gap", n.Gap, MaxLength}, {"padding", n.Padding, MaxLength},
		{"width", n.Width, MaxLength}, {"height", n.Height, MaxLength},
		{"grow", n.Grow, MaxGrow}, {"value", n.Value, 100},
	} {
		if f.v < 0 || f.v > f.high {
			return badPayload("%[1]s.%[2]s must be from 0 to %[4]d, not %[3]d", path, f.name, f.v, f.high)
		}
	}
	for _, f := range []enum{
		{path + ".style", n.Style, Styles()},
		{path + ".align", n.Align, []string{AlignStart, AlignCenter, AlignEnd}},
		{path + ".direction", n.Direction, []string{DirectionAuto, DirectionLTR, DirectionRTL}},
		{path + ".overflow", n.Overflow, []string{OverflowClip, OverflowScroll, OverflowPaginate}},
	} {
		if err := f.check(); err != nil {
			return err
		}
	}
	if checkLanguage(n.Language) != nil {
		return badPayload("%s.language must be a BCP 47 tag", path)
	}
	if _, ok := ParseColour(n.Colour); n.Colour != "" && !ok {
		return badPayload("%s.colour must be #rrggbb", path)
	}
	if n.Type == NodeImage {
		if _, err := base64.StdEncoding.DecodeString(n.Data); err != nil || n.Data == "" {
			return badPayload("%s.data must be the base64 of a PNG or JPEG", path)
		}
	}
	return nil
}

// ParseColour parses #rrggbb.
func ParseColour(s string) (rgb [3]byte, ok bool) {
	if len(s) != 7 || s[0] != '#' {
		return rgb, false
	}
	_, err := hex.Decode(rgb[:], []byte(s[1:]))
	return rgb, err == nil
}

// enum is a field that must be empty or have one of the allowed values.
type enum struct {
	name, value string
	allowed     []string
}

func (e enum) check() *Error {
	if e.value != "" && !slices.Contains(e.allowed, e.value) {
		return badPayload("%s must be one of %v", e.name, e.allowed)
	}
	return nil
}
