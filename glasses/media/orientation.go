package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/draw"
	_ "image/jpeg" // decoders for the two formats of the protocol
	_ "image/png"
	"slices"
)

// Size returns the width and height of a JPEG or PNG in upright orientation. It reads only the headers, so the picture
// may still be damaged.
func Size(data []byte) (image.Point, error) {
	c, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || format != "jpeg" && format != "png" {
		return image.Point{}, errors.New("the picture is neither JPEG nor PNG")
	}
	if orientation(data) >= transposed {
		return image.Pt(c.Height, c.Width), nil
	}
	return image.Pt(c.Width, c.Height), nil
}

// Decode returns a JPEG or PNG as an upright premultiplied picture whose top left corner is at 0, 0. The caller must
// check the size of the picture first.
func Decode(data []byte) (*image.RGBA, error) {
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, errDamaged
	}
	return Turn(img, orientation(data)), nil
}

// EXIF orientations (CIPA DC-008, tag 0x0112), which are 1 to 8.
const (
	upright    = 1
	transposed = 5 // from 5 on, the stored rows are columns of the upright picture
	// TurnLeft is the orientation of a picture that becomes upright when rotated to the left by 90 degrees.
	TurnLeft = 8
)

// Turn returns the upright version of img, which is stored with an EXIF orientation.
func Turn(img image.Image, orientation int) *image.RGBA {
	from := img.Bounds()
	w, h := from.Dx(), from.Dy()
	size := image.Pt(w, h)
	if orientation >= transposed {
		size = image.Pt(h, w)
	}
	out := image.NewRGBA(image.Rectangle{Max: size})
	if orientation == upright {
		draw.Draw(out, out.Rect, img, from.Min, draw.Src)
		return out
	}
	isMirrored := slices.Contains([]int{2, 3, 7, 8}, orientation)
	isUpsideDown := slices.Contains([]int{3, 4, 6, 7}, orientation)
	row := image.NewRGBA(image.Rect(0, 0, w, 1))
	for y := range h {
		draw.Draw(row, row.Rect, img, from.Min.Add(image.Pt(0, y)), draw.Src)
		for x := range w {
			toX, toY := x, y
			if isMirrored {
				toX = w - 1 - x
			}
			if isUpsideDown {
				toY = h - 1 - y
			}
			if orientation >= transposed {
				toX, toY = toY, toX
			}
			copy(out.Pix[out.PixOffset(toX, toY):], row.Pix[4*x:4*x+4])
		}
	}
	return out
}

// orientation returns the EXIF orientation of a JPEG or PNG, from 1 to 8. If there is none, it returns 1, as browsers
// do. It allocates no memory.
func orientation(data []byte) int {
	block := exif(data)
	if len(block) < 8 {
		return upright
	}
	var order binary.ByteOrder
	switch string(block[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return upright
	}
	const tag, short, entrySize = 0x0112, 3, 12
	directory := order.Uint32(block[4:])
	if int64(directory)+2 > int64(len(block)) {
		return upright
	}
	entries := block[directory+2:]
	for range order.Uint16(block[directory:]) {
		if len(entries) < entrySize {
			break
		}
		if order.Uint16(entries) == tag {
			value := int(order.Uint16(entries[8:]))
			if order.Uint16(entries[2:]) != short || order.Uint32(entries[4:]) != 1 || value < 1 || value > 8 {
				break
			}
			return value
		}
		entries = entries[entrySize:]
	}
	return upright
}

// exif returns the first EXIF metadata before the pixels of a JPEG or PNG, in the form of a TIFF file without pictures.
// It returns nil if there is none.
func exif(data []byte) []byte {
	const signature, header = 8, 8 // of a PNG, of a chunk
	if bytes.HasPrefix(data, []byte("\x89PNG")) {
		for rest := data[min(signature, len(data)):]; len(rest) >= header; {
			size := int64(binary.BigEndian.Uint32(rest))
			if kind := string(rest[4:header]); kind == "IDAT" || size+header+4 > int64(len(rest)) {
				break
			} else if kind == "eXIf" {
				return rest[header : header+size]
			}
			rest = rest[size+header+4:]
		}
		return nil
	}
	for marker, part := range jpegParts(data) {
		if marker == sos {
			return nil
		}
		if marker != app1 {
			continue
		}
		if block, found := bytes.CutPrefix(content(app1, part), []byte("Exif\x00")); found {
			return block[min(1, len(block)):]
		}
	}
	return nil
}
