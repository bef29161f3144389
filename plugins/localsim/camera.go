package main

import (
	"fmt"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/media"
)

// photo is the next photo, at most width wide: the photos take turns.
func (f *fixtures) photo(m glasses.DeviceModel, width int) ([]byte, error) {
	if len(f.photos) == 0 {
		return f.frame(m, 0, width)
	}
	name := f.photos[f.taken%len(f.photos)]
	f.taken++
	return f.file(name, width)
}

// frame is picture n of what the camera sees, at most width wide: the frames or the clip again and again, else the
// photo, else a test picture that moves.
func (f *fixtures) frame(m glasses.DeviceModel, n, width int) ([]byte, error) {
	switch {
	case len(f.frames) > 0:
		return f.file(f.frames[n%len(f.frames)], width)
	case len(f.clip) > 0:
		i := n % len(f.clip)
		return f.keep(fmt.Sprintf("clip %d %d", i, width), "", func() ([]byte, error) { return f.clip[i], nil }, width)
	case len(f.photos) > 0:
		return f.file(f.photos[max(0, f.taken-1)%len(f.photos)], width)
	}
	if m.Camera == nil {
		return nil, fmt.Errorf("%s has no camera", m.ID)
	}
	w := min(width, m.Camera.Width)
	h := max(1, w*m.Camera.Height/m.Camera.Width)
	n %= media.TestPictures
	return f.keep(fmt.Sprintf("test %d %d %d", n, w, h), "", func() ([]byte, error) { return media.TestPicture(w, h, n), nil }, w)
}

// file is the picture of a file; it is read again when it changed.
func (f *fixtures) file(name string, width int) ([]byte, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading fixture %s: %w", name, err)
	}
	of := fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	p, err := f.keep(fmt.Sprintf("file %s %d", name, width), of, func() ([]byte, error) { return f.read(name) }, width)
	if err != nil {
		return nil, fmt.Errorf("fixture %s: %w", name, err)
	}
	return p, nil
}

// keep makes a picture of that width once.
func (f *fixtures) keep(key, of string, source func() ([]byte, error), width int) ([]byte, error) {
	if m, ok := f.made[key]; ok && m.of == of {
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
		clear(f.made)
		f.kept = len(p.Bytes)
	}
	f.made[key] = made{of, p.Bytes}
	return p.Bytes, nil
}
