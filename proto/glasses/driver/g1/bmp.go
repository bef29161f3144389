package g1

import (
	"encoding/binary"
	"image"
)

// bmpHeader is the length of the header of a file with one bit a pixel, palette included.
const bmpHeader = 14 + 40 + 8

// PanelOptions say how one pair of glasses shows a picture. The vendor's own documents disagree about both, so a person
// answers two questions about a test picture.
type PanelOptions struct {
	// Inverted is set if a pixel of colour 0 is lit. The palette of the vendor's pictures says that 1 is.
	Inverted bool
	// Rows is the height of the picture, 136 or 135; 0 means 136. EvenDemoApp says 136; one of its two pictures has 135.
	Rows int
}

// encodeBMP returns a picture as the BMP file that the glasses expect: one bit a pixel, bottom row first, palette black
// and white. Every pixel that is not black is lit.
func encodeBMP(img *image.NRGBA, o PanelOptions) []byte {
	width, rows := img.Rect.Dx(), img.Rect.Dy()
	if o.Rows > 0 {
		rows = min(rows, o.Rows)
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
			if lit != o.Inverted {
				to[x/8] |= 0x80 >> (x % 8)
			}
		}
	}
	return file
}
