package web

import (
	"bytes"
	"embed"
	"fmt"
	"image/png"
	"strings"
)

// panelFiles are pictures of the display trees in the documentation, by the hash of the code block. The renderer draws
// them when the documentation changes (docs_panels_test.go), so that reading it costs no drawing.
//
//go:embed panels/*.png
var panelFiles embed.FS

const (
	panelsPath = "/docs/panels/"
	pngType    = "image/png"
)

// panelOf returns the name of the picture of a code block, and the picture; nil if the block shows no tree.
func panelOf(code string) (name string, picture []byte) {
	name = hashOf([]byte(code), 6) + ".png"
	picture, err := panelFiles.ReadFile("panels/" + name)
	if err != nil {
		return "", nil
	}
	return name, picture
}

// everyModel after the language of a code block asks for a picture of all device models.
const everyModel = "every-model"

// beside puts the picture of a code block beside the block; a block without one stays as it is. kind is what follows
// the language of the block.
func beside(block, kind, code string) string {
	name, picture := panelOf(code)
	size, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil {
		return block
	}
	class, alt := "shown", "This tree on Ray-Ban Display"
	if strings.Contains(kind, everyModel) {
		class, alt = "shown sheet", "This tree on every device model"
	}
	const figure = "<div class=\"%s\">%s<img src=\"%s\" width=\"%d\" height=\"%d\" loading=\"lazy\" alt=\"%s\"></div>\n"
	return fmt.Sprintf(figure, class, block, panelsPath+name, size.Width, size.Height, alt)
}
