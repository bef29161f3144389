package media

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
)

// TestPictures is the number of different pictures. TestPicture repeats after that.
const TestPictures = 20

// TestPicture returns the JPEG with number n of a camera that has no scene. It shows colour bars, a grey wedge below
// them and a white line that moves from left to right.
func TestPicture(width, height, n int) []byte {
	bars := []color.RGBA{{192, 192, 192, 255}, {192, 192, 0, 255}, {0, 192, 192, 255}, {0, 192, 0, 255},
		{192, 0, 192, 255}, {192, 0, 0, 255}, {0, 0, 192, 255}}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	line, thick := n%TestPictures*width/TestPictures, max(1, width/80)
	for x := range width {
		above, below := bars[x*len(bars)/width], byte(x*255/width)
		grey := color.RGBA{below, below, below, 255}
		if x >= line && x < line+thick {
			above, grey = color.RGBA{255, 255, 255, 255}, color.RGBA{255, 255, 255, 255}
		}
		img.SetRGBA(x, 0, above)
		img.SetRGBA(x, height-1, grey)
	}
	// Every row equals either the first or the last row.
	for y := 1; y < height-1; y++ {
		from := 0
		if y >= height*3/4 {
			from = height - 1
		}
		copy(img.Pix[y*img.Stride:(y+1)*img.Stride], img.Pix[from*img.Stride:])
	}
	var out bytes.Buffer
	_ = jpeg.Encode(&out, img, &jpeg.Options{Quality: 90}) // fails only if the writer fails
	return out.Bytes()
}
