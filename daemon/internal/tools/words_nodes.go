package tools

import (
	"fmt"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
)

// wordNode is a node type of a display tree.
type wordNode struct {
	Type   string  `json:"type"`
	About  string  `json:"about"`
	Fields []field `json:"fields"`
}

const wordNodeSchema = `{"type":"object","properties":{"type":{"type":"string"},"about":{"type":"string"},"fields":{"type":"array","items":` + fieldSchema + `}}}`

// wordNodes tells of every node type with the fields of its own, and of those that any node may have under "any".
func wordNodes() []wordNode {
	pixels := func(name, about string) field { return number(name, about, 0, glasses.MaxLength) }
	colour := text("colour", "#rrggbb; white when left out")
	align := choice("align", "", glasses.AlignStart, glasses.AlignCenter, glasses.AlignEnd).or(glasses.AlignStart)
	children := other("children", "array", fmt.Sprintf("nodes; at most %d in a tree, %d deep", glasses.MaxNodes, glasses.MaxTreeDepth))
	box := fields(children, pixels("gap", "between children"), pixels("padding", "around them"), align,
		choice("overflow", "what happens to children that do not fit", glasses.OverflowClip, glasses.OverflowScroll, glasses.OverflowPaginate).or(glasses.OverflowClip))
	return []wordNode{
		{glasses.NodeColumn, "children below each other", box},
		{glasses.NodeRow, "children beside each other", box},
		{glasses.NodeList, "a column whose children take the focus, each by its id", box},
		{glasses.NodeText, "text, wrapped at words", fields(text("text", "").must(), choice("style", "", glasses.StyleTitle, glasses.StyleBody, glasses.StyleCaption).or(glasses.StyleBody), align, colour)},
		{glasses.NodeButton, "takes the focus; its id is the target of inputs", fields(text("text", "").must(), text("id", "").must())},
		{glasses.NodeImage, "a picture", fields(text("data", "base64 of a PNG or JPEG, up to 4 megapixels; the whole frame is at most 64 KB").must(), pixels("width", "0 or left out: its own"), pixels("height", "the same"))},
		{glasses.NodeIcon, "a drawn sign", fields(choice("icon", "its name", render.Icons()...).must(), pixels("width", "0 or left out: its own"), colour)},
		{glasses.NodeProgress, "a bar", fields(number("value", "percent", 0, 100).must(), pixels("width", "0 or left out: its own"), colour)},
		{"any", "fields that every node may have", fields(text("id", fmt.Sprintf("1 to %d printable ASCII characters without spaces; the target of inputs", glasses.MaxID)), number("grow", "share of the space that is left", 0, glasses.MaxGrow))},
	}
}
