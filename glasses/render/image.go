package render

import (
	"encoding/base64"
	"fmt"
	"image"
	"strconv"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
)

// maxPixels is the maximum total size of the pictures in a tree. It is checked before they are decoded, because a few
// hundred bytes of PNG can declare any size.
const maxPixels = 4 << 20

// CheckImages decodes the pictures in a tree. It returns a bad_payload error if a picture is not a readable PNG or
// JPEG, naming the node by its path, or if all pictures together exceed 4 megapixels (4 194 304).
func CheckImages(tree glasses.Node) *glasses.Error {
	left := maxPixels
	return checkImages(&tree, "tree", 1, &left)
}

func checkImages(n *glasses.Node, path string, depth int, left *int) *glasses.Error {
	if n.Type == glasses.NodeImage {
		size, err := pictureSize(n.Data)
		if err == nil {
			if *left -= size.X * size.Y; *left < 0 {
				return &glasses.Error{Code: glasses.CodeBadPayload, Message: fmt.Sprintf(
					"%s.data: the pictures of the tree exceed the limit of %d pixels in total", path, maxPixels)}
			}
			_, err = decode(n.Data)
		}
		if err != nil {
			return &glasses.Error{Code: glasses.CodeBadPayload,
				Message: path + ".data must be a readable PNG or JPEG"}
		}
	}
	if !isContainer(n) || depth == glasses.MaxTreeDepth {
		return nil
	}
	for i := range n.Children {
		if err := checkImages(&n.Children[i], path+".children["+strconv.Itoa(i)+"]", depth+1, left); err != nil {
			return err
		}
	}
	return nil
}

// pictureSize returns the declared size of an upright picture without decoding it. The size is limited so that the
// product of its sides does not overflow.
func pictureSize(data string) (image.Point, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return image.Point{}, err
	}
	size, err := media.Size(raw)
	if err != nil {
		return image.Point{}, err
	}
	if size.X <= 0 || size.Y <= 0 {
		return image.Point{}, fmt.Errorf("picture has no pixels")
	}
	if size.X > maxPixels || size.Y > maxPixels { // the caller's product must not overflow
		return image.Point{X: maxPixels, Y: 2}, nil
	}
	return size, nil
}

// decode returns an upright picture. The caller must check the size of the picture first.
func decode(data string) (*image.RGBA, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, err
	}
	return media.Decode(raw)
}

// pictureBounds returns the size of an image node in a space of width w. It is the natural or requested size with its
// proportions, limited by the panel.
func (s *scene) pictureBounds(b *box, w int) image.Point {
	size := b.own
	if size.X == 0 {
		side := 2 * s.body.line
		return image.Pt(or(b.n.Width, side), or(b.n.Height, side))
	}
	if b.n.Width > 0 || b.n.Height > 0 {
		size = fit(size, image.Pt(or(b.n.Width, glasses.MaxLength), or(b.n.Height, glasses.MaxLength)))
	}
	if size.X > w || size.Y > s.area.Dy() {
		size = fit(b.own, image.Pt(min(w, size.X), min(s.area.Dy(), size.Y)))
	}
	return size
}

// fit returns the largest size with the proportions of own that fits into room, at least one pixel.
func fit(own, room image.Point) image.Point {
	if own.X*room.Y > own.Y*room.X {
		return image.Pt(max(room.X, 1), max(own.Y*room.X/own.X, 1))
	}
	return image.Pt(max(own.X*room.Y/own.Y, 1), max(room.Y, 1))
}

// picture paints an image node. A picture that cannot be decoded is shown as a crossed box.
func (c *canvas) picture(b *box, r, clip image.Rectangle, ink rgb) {
	r = b.inner(r)
	clip = clip.Intersect(r)
	shown := clip.Intersect(c.img.Rect)
	if shown.Empty() {
		return
	}
	var src *image.RGBA
	if need := b.own.X * b.own.Y; need > 0 && need <= c.pixels {
		c.pixels -= need
		src, _ = decode(b.n.Data)
	}
	if src == nil {
		c.frame(r, clip, 1, ink)
		for x := range r.Dx() {
			y := x * r.Dy() / r.Dx()
			c.fill(image.Rect(r.Min.X+x, r.Min.Y+y, r.Min.X+x+1, r.Min.Y+y+1), clip, ink)
			c.fill(image.Rect(r.Max.X-x-1, r.Min.Y+y, r.Max.X-x, r.Min.Y+y+1), clip, ink)
		}
		return
	}
	size := image.Pt(r.Dx(), min(r.Dy(), max(b.own.Y*r.Dx()/b.own.X, 1)))
	for y := shown.Min.Y; y < min(shown.Max.Y, r.Min.Y+size.Y); y++ {
		for x := shown.Min.X; x < shown.Max.X; x++ {
			top := average(src, size, x-r.Min.X, y-r.Min.Y)
			at := c.img.Pix[c.img.PixOffset(x, y):]
			over := func(px []byte) {
				var mixed rgb
				for k := range mixed {
					mixed[k] = uint8(top[k] + (255-top[3])*int(px[k])/255)
				}
				mixed = c.q.picture(mixed, x, y)
				copy(px, mixed[:])
			}
			if c.traces == nil {
				c.painted++
				before := rgb(at)
				over(at)
				if c.owners != nil {
					c.changes(x, y, before, rgb(at))
				}
			} else {
				c.painted += c.traces.mix(x, y, at, nil, over)
			}
		}
	}
}

// average returns the pixel x, y of src scaled to size. This is the area-weighted mean of the source pixels that it
// covers.
func average(src *image.RGBA, size image.Point, x, y int) (px [4]int) {
	w, h := src.Rect.Dx(), src.Rect.Dy()
	x0, x1, y0, y1 := x*w, (x+1)*w, y*h, (y+1)*h // in 1/size.X of a pixel across, and 1/size.Y of a pixel down
	for sy := y0 / size.Y; sy*size.Y < y1; sy++ {
		wy := min(y1, (sy+1)*size.Y) - max(y0, sy*size.Y)
		row := src.Pix[sy*src.Stride:]
		for sx := x0 / size.X; sx*size.X < x1; sx++ {
			weight := wy * (min(x1, (sx+1)*size.X) - max(x0, sx*size.X))
			for k := range px {
				px[k] += weight * int(row[4*sx+k])
			}
		}
	}
	for k := range px {
		px[k] = (px[k] + w*h/2) / (w * h)
	}
	return px
}
