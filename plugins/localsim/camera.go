package localsim

import (
	"fmt"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
)

// photo returns the next photo, at most width pixels wide. After the last photo it returns the first one again.
func (f *fixtures) photo(m glasses.DeviceModel, width int) ([]byte, error) {
	if len(f.photos) == 0 {
		return f.frame(m, 0, width)
	}
	name := f.photos[f.taken%len(f.photos)]
	f.taken++
	return f.file(name, width)
}

// frame returns picture n of the camera, at most width pixels wide. It loops over the frames or the clip. Without
// these it uses the photo, and without a photo a moving test picture.
func (f *fixtures) frame(m glasses.DeviceModel, n, width int) ([]byte, error) {
	switch {
	case len(f.frames) > 0:
		return f.file(f.frames[n%len(f.frames)], width)
	case len(f.clip) > 0:
		i := n % len(f.clip)
		return f.cached(fmt.Sprintf("clip %d %d", i, width), "", func() ([]byte, error) { return f.clip[i], nil }, width)
	case len(f.photos) > 0:
		return f.file(f.photos[max(0, f.taken-1)%len(f.photos)], width)
	}
	if m.Camera == nil {
		return nil, fmt.Errorf("%s has no camera", m.ID)
	}
	w := min(width, m.Camera.Width)
	h := max(1, w*m.Camera.Height/m.Camera.Width)
	n %= media.TestPictures
	return f.cached(fmt.Sprintf("test %d %d %d", n, w, h), "",
		func() ([]byte, error) { return media.TestPicture(w, h, n), nil }, w)
}

// file returns the picture in a file. It rereads a file that has changed.
func (f *fixtures) file(name string, width int) ([]byte, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read fixture %s: %w", name, err)
	}
	of := fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	p, err := f.cached(fmt.Sprintf("file %s %d", name, width), of, func() ([]byte, error) { return f.read(name) }, width)
	if err != nil {
		return nil, fmt.Errorf("fixture %s: %w", name, err)
	}
	return p, nil
}

// cached returns a picture scaled to a width. It creates each picture only once.
func (f *fixtures) cached(key, of string, source func() ([]byte, error), width int) ([]byte, error) {
	if m, ok := f.cache[key]; ok && m.of == of {
		return m.picture, nil
	}
	data, err := source()
	if err != nil {
		return nil, err
	}
	p, err := media.JPEG(data, width)
	if err != nil {
		return nil, err
	}
	if f.kept += len(p.Bytes); f.kept > maxKept {
		clear(f.cache)
		f.kept = len(p.Bytes)
	}
	f.cache[key] = cachedPicture{of, p.Bytes}
	return p.Bytes, nil
}
