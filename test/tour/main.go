// Command tour combines pictures of running programs into README's animated picture: a user approves an agent, the
// app runs on the glasses of the simulator page, and a scenario passes.
//
//	tour DIR OUT.png    DIR contains approve.png, simulator.png and session-run.txt
package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/image/draw"
)

// Dimensions of the picture in pixels.
const (
	width   = 960
	height  = 600
	caption = 56
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: tour DIR OUT.png")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

func run(dir, out string) error {
	approve, err := screenshot(filepath.Join(dir, "approve.png"))
	if err != nil {
		return err
	}
	simulator, err := screenshot(filepath.Join(dir, "simulator.png"))
	if err != nil {
		return err
	}
	output, err := os.ReadFile(filepath.Join(dir, "session-run.txt"))
	if err != nil {
		return fmt.Errorf("read the terminal's output: %w", err)
	}
	first, last := terminalPictures(string(output))
	var data bytes.Buffer
	if err := encode(&data, []frame{
		{scene("1  You approve the agent, once", approve), 3500 * time.Millisecond},
		{scene("2  Your app runs on simulated glasses", simulator), 4 * time.Second},
		{scene("3  A scenario proves that it works", first), 1500 * time.Millisecond},
		{scene("3  A scenario proves that it works", last), 4 * time.Second},
	}); err != nil {
		return err
	}
	return os.WriteFile(out, data.Bytes(), 0o644)
}

// screenshot reads a picture of a page and scales its upper part to the size of a scene.
func screenshot(file string) (image.Image, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	page, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", file, err)
	}
	part := page.Bounds()
	part.Max.Y = min(part.Max.Y, part.Min.Y+part.Dx()*height/width)
	scaled := image.NewRGBA(image.Rect(0, 0, width, part.Dy()*width/part.Dx()))
	draw.CatmullRom.Scale(scaled, scaled.Rect, page, part, draw.Src, nil)
	return scaled, nil
}
