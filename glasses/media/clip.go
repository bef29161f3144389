package media

import (
	"bytes"
	"errors"
)

// MaxFrames is the maximum number of frames in a clip: 30 s at 30 frames per second.
const MaxFrames = 900

// pixelsPerByte is the compression of a JPEG of medium quality that ClipWidth assumes.
const pixelsPerByte = 6

// ClipWidth returns the largest width, not above the argument width, at which a clip of medium quality with this number
// of frames fits in a binary frame. cameraWidth and cameraHeight determine the proportions.
func ClipWidth(width, frames, cameraWidth, cameraHeight int) int {
	pixels := MaxBytes / max(1, frames) * pixelsPerByte
	for width > 16 && width*(width*cameraHeight/max(1, cameraWidth)) > pixels {
		width = width * 9 / 10
	}
	return width
}

// Clip converts concatenated JPEGs to a clip of at most frames frames and MaxBytes in total, width pixels wide. It does
// not change frames if they fit. Otherwise it reduces first their quality, then their size. The result has the width
// and height of the first frame.
func Clip(data []byte, frames, width int) (Picture, error) {
	all := SplitJPEGs(data, frames)
	if len(all) == 0 {
		return Picture{}, errors.New("the clip contains no JPEG")
	}
	limit := MaxBytes / len(all)
	for w := width; w >= 16; w /= 2 {
		for _, q := range [][]int{{60}, {30}} {
			clip, err := assemble(all, w, limit, q)
			if err != nil {
				return Picture{}, err
			}
			if len(clip.Bytes) <= MaxBytes {
				return clip, nil
			}
		}
	}
	return Picture{}, errors.New("the clip does not fit in a binary frame")
}

// assemble builds the clip with this width and quality. It stops when the clip exceeds limit.
func assemble(all [][]byte, width, limit int, quality []int) (clip Picture, err error) {
	var out bytes.Buffer
	var last []byte
	var made Picture
	for i, frame := range all {
		if i == 0 || !bytes.Equal(frame, last) {
			if made, err = fit(frame, width, limit, quality); err != nil {
				return Picture{}, err
			}
			last = frame
		}
		if i == 0 {
			clip.Width, clip.Height = made.Width, made.Height
		}
		out.Write(made.Bytes)
		if out.Len() > MaxBytes {
			break
		}
	}
	clip.Bytes = out.Bytes()
	return clip, nil
}

// SplitJPEGs splits concatenated JPEGs into at most limit pictures. It stops at the first bytes that are not a JPEG.
func SplitJPEGs(data []byte, limit int) [][]byte {
	var all [][]byte
	for len(all) < min(limit, MaxFrames) {
		n := jpegLength(data)
		if n == 0 {
			break
		}
		all = append(all, data[:n:n])
		data = data[n:]
	}
	return all
}
