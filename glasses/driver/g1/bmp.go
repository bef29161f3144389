package g1

import (
	"encoding/binary"
	"image"

	"github.com/service-dev/service/glasses/driver"
)

// bmpHeader is the length of the header of a file with one bit per pixel, including the palette, in bytes.
const bmpHeader = 14 + 40 + 8

// encodeBMP returns a picture as the BMP file that the glasses expect: one bit per pixel, bottom row first, with a
// black and white palette. Every pixel that is not black is lit. The vendor's documents disagree about the panel.
// According to the palette of their pictures, pixels of colour 1 are lit. EvenDemoApp specifies 136 rows, but one of
// its two pictures has 135.
func encodeBMP(img *image.NRGBA, p driver.Panel) []byte {
	width, rows := img.Rect.Dx(), img.Rect.Dy()
	if p.Rows > 0 {
		rows = min(rows, p.Rows)
	}
	stride := (width + 31) / 32 * 4
	file := make([]byte, bmpHeader+stride*rows)
	copy(file, "BM")
	le := binary.LittleEndian
	le.PutUint32(file[2:], uint32(len(file)))
	le.PutUint32(file[10:], bmpHeader)
	le.PutUint32(file[14:], 40)
	le.PutUint32(file[18:], uint32(width))
	le.PutUint32(file[22:], uint32(rows))
	le.PutUint16(file[26:], 1) // planes
	le.PutUint16(file[28:], 1) // bits
	le.PutUint32(file[34:], uint32(stride*rows))
	copy(file[58:], []byte{0xFF, 0xFF, 0xFF, 0})
	for y := range rows {
		from := img.Pix[img.PixOffset(img.Rect.Min.X, img.Rect.Min.Y+y):]
		to := file[bmpHeader+stride*(rows-1-y):]
		for x := range width {
			lit := from[4*x]|from[4*x+1]|from[4*x+2] != 0
			if lit != p.Inverted {
				to[x/8] |= 0x80 >> (x % 8)
			}
		}
	}
	return file
}
