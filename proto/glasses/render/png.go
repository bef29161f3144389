package render

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"sync"
)

// encoders keep their buffers: making those anew costs as much as a small panel.
var encoders = &pool{}

type pool struct{ sync.Pool }

// Get implements png.EncoderBufferPool.
func (p *pool) Get() *png.EncoderBuffer {
	b, _ := p.Pool.Get().(*png.EncoderBuffer)
	return b
}

// Put implements png.EncoderBufferPool.
func (p *pool) Put(b *png.EncoderBuffer) { p.Pool.Put(b) }

// PNG encodes a picture that Draw gave; nil for nil. The bytes are the same on every platform. They have a palette where
// the picture has no more than 256 colours.
func PNG(img *image.NRGBA) []byte {
	if img == nil {
		return nil
	}
	var out bytes.Buffer
	var err error
	// Panels are mostly black: the best compression takes twice as long for little.
	encoder := png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: encoders}
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

// paletted is img with a palette in the order of first sight, or nil. Most rows of a panel repeat the one above, so
// those are copied.
func paletted(img *image.NRGBA) *image.Paletted {
	out := image.NewPaletted(img.Rect, nil)
	index := map[uint32]uint8{}
	var above []byte
	for y := range img.Rect.Dy() {
		row := img.Pix[y*img.Stride:][:4*img.Rect.Dx()]
		to := out.Pix[y*out.Stride:][:img.Rect.Dx()]
		if above != nil && bytes.Equal(row, above) {
			copy(to, out.Pix[(y-1)*out.Stride:])
		} else if !translate(to, row, out, index) {
			return nil
		}
		above = row
	}
	return out
}

// translate puts one row's colours as indexes into to, adding new ones to the palette; false when that is full.
func translate(to, row []byte, out *image.Paletted, index map[uint32]uint8) bool {
	var last uint32
	var at uint8
	for i := range to {
		px := row[4*i : 4*i+4 : 4*i+4]
		c := binary.LittleEndian.Uint32(px)
		if c != last || i == 0 {
			known, ok := index[c]
			if !ok {
				if len(out.Palette) == 256 {
					return false
				}
				known = uint8(len(out.Palette))
				index[c] = known
				out.Palette = append(out.Palette, color.NRGBA{px[0], px[1], px[2], px[3]})
			}
			last, at = c, known
		}
		to[i] = at
	}
	return true
}
