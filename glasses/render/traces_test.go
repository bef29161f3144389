package render

import "image"

// paint draws the part of the panel that img covers, without the text of a box if it is not nil.
func (s *scene) paint(img *image.NRGBA, without *box) {
	if without != nil {
		lines := without.text.lines
		without.text.lines = nil
		defer func() { without.text.lines = lines }()
	}
	s.paintOn(&canvas{img: img, q: s.quantiser, pixels: maxPixels})
	s.finish(img)
}
