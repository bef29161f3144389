package glassesapp

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"

	"github.com/service-dev/service/glasses"
)

// Picture returns the payload of a display.show that fills the panel with a picture. alt describes the picture.
func Picture(img image.Image, alt string) (glasses.Show, error) {
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		return glasses.Show{}, fmt.Errorf("encode a picture: %w", err)
	}
	return glasses.Show{Tree: glasses.Node{
		Type: glasses.NodeImage, Data: base64.StdEncoding.EncodeToString(file.Bytes()), Alt: alt,
	}}, nil
}
