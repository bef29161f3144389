package docs

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"image/png"
	"strings"
)

// panelFiles are pictures of the display trees in the documentation, by the hash of the code block. They are rendered
// when the documentation changes (panels_test.go), so that no drawing is needed to serve it.
//
//go:embed panels/*.png
var panelFiles embed.FS

const panelsPath = "/docs/panels/"

// panelOf returns the name of a code block's picture, and the picture. The picture is nil if the block contains no
// tree.
func panelOf(code string) (name string, picture []byte) {
	name = panelName(code)
	picture, err := panelFiles.ReadFile("panels/" + name)
	if err != nil {
		return "", nil
	}
	return name, picture
}

// panelName returns the file name of a code block's picture.
func panelName(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:6]) + ".png"
}

// everyModel, after the language of a code block, requests a picture of all device models.
const everyModel = "every-model"

// beside puts a code block and its picture side by side. It returns a block without a picture unchanged. kind is the
// text after the language of the block.
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
