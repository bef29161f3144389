package render

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"sync"
)

// encoders pools buffers, because allocating one costs as much as encoding a small panel.
var encoders = &pool{}

type pool struct{ sync.Pool }

// Get implements png.EncoderBufferPool.
func (p *pool) Get() *png.EncoderBuffer {
	b, _ := p.Pool.Get().(*png.EncoderBuffer)
	return b
}

// Put implements png.EncoderBufferPool.
func (p *pool) Put(b *png.EncoderBuffer) { p.Pool.Put(b) }

// PNG encodes a picture returned by Draw, or returns nil for nil. The bytes are the same on every platform. Pictures
// with at most 256 colours have a palette.
func PNG(img *image.NRGBA) []byte {
	if img == nil {
		return nil
	}
	var out bytes.Buffer
	var err error
	// Panels are mostly black, for which the best compression takes twice as long and saves little.
	encoder := png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: encoders}
	if p := paletted(img); p != nil {
		err = encoder.Encode(&out, p)
	} else {
		err = encoder.Encode(&out, img)
	}
	if err != nil {
		return nil // impossible: the buffer never fails, and every panel fits a PNG
	}
	return out.Bytes()
}

// paletted returns img with a palette in order of first occurrence, or nil if img has too many colours. It copies rows
// that equal the row above, because most rows of a panel do.
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

// translate writes one row as palette indexes and adds new colours to the palette. It returns false if the palette is
// full.
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
