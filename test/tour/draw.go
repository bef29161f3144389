package main

import (
	"image"
	"image/color"
	"strings"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

var (
	ground = color.RGBA{0x10, 0x13, 0x14, 0xFF}
	ink    = color.RGBA{0xE9, 0xEB, 0xEC, 0xFF}
	faint  = color.RGBA{0x8A, 0x94, 0x98, 0xFF}
	good   = color.RGBA{0x7F, 0xD6, 0x97, 0xFF}
	warn   = color.RGBA{0xF0, 0xC3, 0x6D, 0xFF}
)

// Dimensions of terminal text in pixels.
const (
	textSize   = 15
	lineHeight = 22
	margin     = 28
)

func faceOf(file []byte, size float64) font.Face {
	parsed, err := opentype.Parse(file)
	if err == nil {
		var face font.Face
		if face, err = opentype.NewFace(parsed, &opentype.FaceOptions{Size: size, DPI: 72}); err == nil {
			return face
		}
	}
	panic(err) // the font is compiled in
}

// scene returns a picture with a caption above it.
func scene(text string, picture image.Image) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, caption+height))
	draw.Draw(img, img.Rect, image.NewUniform(ground), image.Point{}, draw.Src)
	write(img, faceOf(gobold.TTF, 24), ink, margin, caption-20, text)
	draw.Draw(img, picture.Bounds().Add(image.Pt(0, caption)), picture, image.Point{}, draw.Src)
	return img
}

// terminalPictures returns pictures of the beginning and the end of a program's output in a terminal.
func terminalPictures(output string) (first, last *image.RGBA) {
	lines := append([]string{"$ servicectl session run desk.json -- bin/desk-go"},
		strings.Split(strings.TrimRight(output, "\n"), "\n")...)
	rows := (height - 2*margin) / lineHeight
	end := max(0, len(lines)-rows)
	return terminal(lines[:min(rows, len(lines))]), terminal(lines[end:])
}

func terminal(lines []string) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Rect, image.NewUniform(color.Black), image.Point{}, draw.Src)
	face := faceOf(gomono.TTF, textSize)
	for i, line := range lines {
		write(img, face, colourOf(line), margin, margin+i*lineHeight+textSize, line)
	}
	return img
}

func colourOf(line string) color.Color {
	switch {
	case strings.HasPrefix(line, "PASS"):
		return good
	case strings.HasPrefix(line, "$"):
		return ink
	case strings.Contains(line, "does not fit"):
		return warn
	}
	return faint
}

func write(img *image.RGBA, face font.Face, c color.Color, x, y int, text string) {
	d := font.Drawer{Dst: img, Src: image.NewUniform(c), Face: face, Dot: fixed.P(x, y)}
	d.DrawString(text)
}
