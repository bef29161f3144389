// Command contactsheet combines screenshots of the backend's pages into one picture: either one screenshot of every
// page, alternating between light and dark, for README, or the light, dark and phone versions of the named pages.
//
//	contactsheet DIR OUT.png [NAME...]    DIR contains page-<name>.png, page-<name>-dark.png and page-<name>-phone.png
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/image/draw"
)

// Dimensions of a sheet in pixels.
const (
	columns = 6
	width   = 300
	height  = 380
	gap     = 12
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: contactsheet DIR OUT.png [NAME...]")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "contactsheet:", err)
		os.Exit(1)
	}
}

func run(dir, out string, names []string) error {
	files, err := picturesOf(dir, names)
	if err != nil {
		return err
	}
	rows := (len(files) + columns - 1) / columns
	sheet := image.NewRGBA(image.Rect(0, 0, columns*(width+gap)+gap, rows*(height+gap)+gap))
	draw.Draw(sheet, sheet.Bounds(), image.NewUniform(color.Gray{Y: 0x90}), image.Point{}, draw.Src)
	for i, file := range files {
		if err := place(sheet, file, i); err != nil {
			return err
		}
	}
	return write(out, sheet)
}

// picturesOf lists the screenshots of the named pages, or one screenshot of every page.
func picturesOf(dir string, names []string) (files []string, err error) {
	for _, name := range names {
		for _, look := range []string{"", "-dark", "-phone"} {
			files = append(files, filepath.Join(dir, "page-"+name+look+".png"))
		}
	}
	if len(names) > 0 {
		return files, nil
	}
	files, err = filepath.Glob(filepath.Join(dir, "page-*-dark.png"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no page-*-dark.png in %s: %w", dir, err)
	}
	slices.Sort(files)
	for i, file := range files {
		if (i+i/columns)%2 == 0 {
			files[i] = strings.TrimSuffix(file, "-dark.png") + ".png"
		}
	}
	return files, nil
}

// place draws the upper part of a page into its tile.
func place(sheet *image.RGBA, file string, i int) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	page, err := png.Decode(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	b := page.Bounds()
	b.Max.Y = min(b.Max.Y, b.Min.Y+b.Dx()*height/width)
	x, y := gap+i%columns*(width+gap), gap+i/columns*(height+gap)
	tile := image.Rect(x, y, x+width, y+height)
	draw.Draw(sheet, tile, image.NewUniform(page.At(b.Min.X+1, b.Max.Y-1)), image.Point{}, draw.Src)
	tile.Max.Y = y + b.Dy()*width/b.Dx()
	draw.CatmullRom.Scale(sheet, tile, page, b, draw.Src, nil)
	return nil
}

// write reduces the picture to 256 colours, which are enough for pages and keep the file small.
func write(out string, sheet *image.RGBA) error {
	small := image.NewPaletted(sheet.Bounds(), colours())
	draw.FloydSteinberg.Draw(small, small.Bounds(), sheet, image.Point{})
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(f, small); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// colours returns greys, which make up text and surfaces, and a colour cube for everything else.
func colours() color.Palette {
	var all color.Palette
	for i := range 40 {
		all = append(all, color.Gray{Y: uint8(i * 255 / 39)})
	}
	return append(all, palette.WebSafe...)
}
