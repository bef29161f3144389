package render

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
)

// PNG encodes a picture that Draw gave; nil for nil. The bytes are the same on every platform. They have a palette where
// the picture has no more than 256 colours.
func PNG(img *image.NRGBA) []byte {
	if img == nil {
		return nil
	}
	var out bytes.Buffer
	var err error
	encoder := png.Encoder{CompressionLevel: png.BestSpeed} // panels are mostly black: the best takes twice as long for little
	if p := paletted(img); p != nil {
		err = encoder.Encode(&out, p)
	} else {
		err = encoder.Encode(&out, img)
	}
	if err != nil {
		return nil // the buffer takes everything, and no panel has sides that a PNG cannot have
	}
	return out.Bytes()
}

// paletted is img with a palette in the order of first sight, or nil.
func paletted(img *image.NRGBA) *image.Paletted {
	out := image.NewPaletted(img.Rect, nil)
	index := map[uint32]uint8{}
	var last uint32
	var at uint8
	for i := range out.Pix {
		px := img.Pix[4*i : 4*i+4 : 4*i+4]
		c := binary.LittleEndian.Uint32(px)
		if c != last || i == 0 {
			known, ok := index[c]
			if !ok {
				if len(out.Palette) == 256 {
					return nil
				}
				known = uint8(len(out.Palette))
				index[c] = known
				out.Palette = append(out.Palette, color.NRGBA{px[0], px[1], px[2], px[3]})
			}
			last, at = c, known
		}
		out.Pix[i] = at
	}
	return out
}
