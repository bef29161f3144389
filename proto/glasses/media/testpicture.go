package media

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
)

// TestPictures is how many test pictures there are until they come again.
const TestPictures = 20

// TestPicture is picture n of a camera without a scene, as a JPEG: colour bars, a grey wedge below them and a white line
// that wanders from left to right.
func TestPicture(width, height, n int) []byte {
	bars := []color.RGBA{{192, 192, 192, 255}, {192, 192, 0, 255}, {0, 192, 192, 255}, {0, 192, 0, 255}, {192, 0, 192, 255}, {192, 0, 0, 255}, {0, 0, 192, 255}}
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	line, thick := n%TestPictures*width/TestPictures, max(1, width/80)
	for y := range height {
		for x := range width {
			c := bars[x*len(bars)/width]
			if y >= height*3/4 {
				grey := byte(x * 255 / width)
				c = color.RGBA{grey, grey, grey, 255}
			}
			if x >= line && x < line+thick {
				c = color.RGBA{255, 255, 255, 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	var out bytes.Buffer
	_ = jpeg.Encode(&out, img, &jpeg.Options{Quality: 90}) // only a writer that fails makes it fail
	return out.Bytes()
}
