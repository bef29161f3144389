// Package exiftest makes pictures with EXIF metadata, for tests.
package exiftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
)

// Place is a text in the metadata that must not reach any app.
const Place = "taken at home"

// Width and Height are the size of the upright pictures.
const (
	Width  = 64
	Height = 32
)

// corners are the colours of the quarters of the upright picture: top left, top right, bottom left, bottom right.
var corners = [4]color.RGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}}

// sides maps each orientation to the sides of the upright picture that are stored as the first row and the first column
// (CIPA DC-008, tag 0x0112).
var sides = [9][2]string{{}, {"top", "left"}, {"top", "right"}, {"bottom", "right"}, {"bottom", "left"},
	{"left", "top"}, {"right", "top"}, {"right", "bottom"}, {"left", "bottom"}}

// Stored returns the picture as a camera stores it with this orientation, from 1 to 8.
func Stored(orientation int) *image.RGBA {
	rows, columns := Height, Width
	if orientation >= 5 {
		rows, columns = Width, Height
	}
	img := image.NewRGBA(image.Rect(0, 0, columns, rows))
	for row := range rows {
		for column := range columns {
			var x, y int
			for i, n := range []int{row, column} {
				switch sides[orientation][i] {
				case "top":
					y = n
				case "bottom":
					y = Height - 1 - n
				case "left":
					x = n
				case "right":
					x = Width - 1 - n
				}
			}
			img.SetRGBA(column, row, corners[y/(Height/2)*2+x/(Width/2)])
		}
	}
	return img
}

// JPEG returns the picture of Stored as a JPEG with metadata in this byte order.
func JPEG(order binary.AppendByteOrder, orientation int) []byte {
	var file bytes.Buffer
	_ = jpeg.Encode(&file, Stored(orientation), &jpeg.Options{Quality: 95}) // fails only if the writer fails
	return Tag(file.Bytes(), Block(order, uint16(orientation)))
}

// PNG returns the picture of Stored as a PNG with metadata in this byte order.
func PNG(order binary.AppendByteOrder, orientation int) []byte {
	var file bytes.Buffer
	_ = png.Encode(&file, Stored(orientation))
	return Tag(file.Bytes(), Block(order, uint16(orientation)))
}

// Block returns EXIF metadata that contains Place and an orientation.
func Block(order binary.AppendByteOrder, orientation uint16) []byte {
	b := []byte("II*\x00")
	if order.String() == binary.BigEndian.String() {
		b = []byte("MM\x00*")
	}
	const directory, entries = 8, 2
	b = order.AppendUint32(b, directory)
	b = order.AppendUint16(b, entries)
	b = order.AppendUint16(b, 0x010E) // ImageDescription, a text after the directory
	b = order.AppendUint16(b, 2)
	b = order.AppendUint32(b, uint32(len(Place)+1))
	b = order.AppendUint32(b, directory+2+12*entries+4)
	b = order.AppendUint16(b, 0x0112) // Orientation, one SHORT
	b = order.AppendUint16(b, 3)
	b = order.AppendUint32(b, 1)
	b = order.AppendUint16(b, orientation)
	b = order.AppendUint16(b, 0)
	b = order.AppendUint32(b, 0) // no further directory
	return append(b, Place+"\x00"...)
}

// Tag returns a JPEG or PNG with an EXIF block before its pixels. The block is at most 65,527 bytes long.
func Tag(file, block []byte) []byte {
	if bytes.HasPrefix(file, []byte("\x89PNG")) {
		return insert(file, 33, Chunk("eXIf", block)) // after the signature and IHDR
	}
	return insert(file, 2, Segment(0xE1, append([]byte("Exif\x00\x00"), block...)))
}

// Segment returns a segment of a JPEG.
func Segment(marker byte, content []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0xFF, marker}, uint16(2+len(content))), content...)
}

// Chunk returns a chunk of a PNG.
func Chunk(kind string, content []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), kind...)
	b = append(b, content...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func insert(file []byte, at int, part []byte) []byte {
	return bytes.Join([][]byte{file[:at], part, file[at:]}, nil)
}

// CheckUpright returns an error if the picture at r in img is not the upright picture.
func CheckUpright(img image.Image, r image.Rectangle) error {
	if r.Dx() != Width*r.Dy()/Height {
		return fmt.Errorf("picture is %d by %d pixels, want %d to %d", r.Dx(), r.Dy(), Width, Height)
	}
	for i, want := range corners {
		at := r.Min.Add(image.Pt(r.Dx()/4+i%2*r.Dx()/2, r.Dy()/4+i/2*r.Dy()/2))
		got := color.RGBAModel.Convert(img.At(at.X, at.Y)).(color.RGBA)
		if got.R/128 != want.R/128 || got.G/128 != want.G/128 || got.B/128 != want.B/128 {
			return fmt.Errorf("pixel is %v at %v, want %v", got, at, want)
		}
	}
	return nil
}
