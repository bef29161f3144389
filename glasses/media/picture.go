// Package media converts pictures, clips and sounds for glasses: JPEGs of limited width, clips that fit in a binary
// frame, and sound in chunks of 100 ms. It uses only integer arithmetic, so that results are identical on every
// platform, and limits how much it reads. It does not depend on the source or the destination of media.
package media

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"

	"github.com/service-dev/service/glasses"
)

const (
	// MaxPixels is the maximum number of pixels of a picture.
	MaxPixels = 16 << 20
	// MaxBytes is the maximum size of media in a binary frame, which also contains the header.
	MaxBytes = glasses.MaxBinary - glasses.MaxHeader - 2
)

// Values of glasses.Media.MIME.
const (
	MIMEJPEG  = "image/jpeg"
	MIMEClip  = "video/x-motion-jpeg"
	MIMESound = "audio/L16"
)

// decoding limits the number of pictures decoded concurrently. A large picture needs 100 MB, and many sessions may
// decode at the same time.
var decoding = make(chan struct{}, 2)

// qualities lists the qualities to try, in this order, until the picture fits.
var qualities = []int{90, 75, 60, 45, 30}

var errDamaged = errors.New("the picture is damaged or truncated")

// Picture is an encoded JPEG.
type Picture struct {
	Bytes         []byte
	Width, Height int // pixels
}

// JPEG converts a JPEG or PNG to an upright JPEG without metadata, at most width pixels wide and MaxBytes long. An
// upright JPEG that fits is not encoded again.
func JPEG(data []byte, width int) (Picture, error) { return fit(data, width, MaxBytes, qualities) }

// Check returns an error if data is not a complete JPEG or PNG.
func Check(data []byte) error {
	if _, err := checkedSize(data); err != nil {
		return err
	}
	decoding <- struct{}{}
	defer func() { <-decoding }()
	if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
		return errDamaged
	}
	return nil
}

// checkedSize is like Size, but returns an error for a picture of more than MaxPixels.
func checkedSize(data []byte) (image.Point, error) {
	size, err := Size(data)
	if err == nil && (size.X <= 0 || size.Y <= 0 || size.X > MaxPixels/size.Y) {
		err = fmt.Errorf("the picture is %d by %d pixels, over the limit of %d in total", size.X, size.Y, MaxPixels)
	}
	return size, err
}

func fit(data []byte, width, limit int, qualities []int) (Picture, error) {
	size, err := checkedSize(data)
	if err != nil {
		return Picture{}, err
	}
	if size.X <= width && orientation(data) == upright {
		if jpeg := withoutMetadata(data); jpeg != nil && len(jpeg) <= limit {
			return Picture{jpeg, size.X, size.Y}, nil
		}
	}
	decoding <- struct{}{}
	defer func() { <-decoding }()
	full, err := Decode(data)
	if err != nil {
		return Picture{}, err
	}
	for w := max(1, min(width, size.X)); ; w = max(1, w/2) {
		small := scale(full, w)
		for _, q := range qualities {
			var out bytes.Buffer
			if err := jpeg.Encode(&out, small, &jpeg.Options{Quality: q}); err != nil {
				return Picture{}, errors.New("the picture cannot be encoded as JPEG")
			}
			if out.Len() <= limit || w == 1 {
				return Picture{out.Bytes(), small.Rect.Dx(), small.Rect.Dy()}, nil
			}
		}
	}
}

// scale reduces the width of a picture. Each pixel is the average of the pixels that it replaces.
func scale(src *image.RGBA, width int) *image.RGBA {
	sw, sh := src.Rect.Dx(), src.Rect.Dy()
	if width >= sw {
		return src
	}
	height := max(1, (sh*width+sw/2)/sw)
	dst := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		y0, y1 := y*sh/height, (y+1)*sh/height
		for x := range width {
			x0, x1 := x*sw/width, (x+1)*sw/width
			average(dst.Pix[dst.PixOffset(x, y):], src, image.Rect(x0, y0, x1, max(y1, y0+1)))
		}
	}
	return dst
}

// average writes the mean of the pixels in box to the first four bytes of to.
func average(to []byte, src *image.RGBA, box image.Rectangle) {
	var sum [4]int
	for y := box.Min.Y; y < box.Max.Y; y++ {
		row := src.Pix[src.PixOffset(box.Min.X, y):src.PixOffset(box.Max.X, y)]
		for i := 0; i+3 < len(row); i += 4 {
			sum[0] += int(row[i])
			sum[1] += int(row[i+1])
			sum[2] += int(row[i+2])
			sum[3] += int(row[i+3])
		}
	}
	n := box.Dx() * box.Dy()
	for i, s := range sum {
		to[i] = byte((s + n/2) / n)
	}
}
