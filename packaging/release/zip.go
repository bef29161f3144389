package main

import (
	"archive/zip"
	"compress/flate"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// writeZip writes entries in the order of their names, with their modes and the time of the commit.
func (r *release) writeZip(file string, entries []entry) (err error) {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	w := zip.NewWriter(out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	for _, e := range entries {
		if err := r.addZip(w, e); err != nil {
			return err
		}
	}
	return w.Close()
}

func (r *release) addZip(w *zip.Writer, e entry) error {
	f, err := os.Open(e.from)
	if err != nil {
		return err
	}
	defer f.Close()
	header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: r.time}
	header.SetMode(fs.FileMode(e.mode))
	out, err := w.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return err
}
