package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// entry is a file of an archive or a package.
type entry struct {
	name   string // with slashes, relative
	from   string // the file with its content
	mode   int64
	link   string // what a symbolic link points to; then from and mode are unused
	config bool   // an operator changes it, and upgrades keep it
}

// programEntries returns the programs in dir, and their manifest, as files of the folder.
func programEntries(dir, folder string) ([]entry, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, f := range files {
		mode := int64(0o755)
		if f.Name() == manifest {
			mode = 0o644
		}
		entries = append(entries, entry{name: path.Join(folder, f.Name()), from: filepath.Join(dir, f.Name()), mode: mode})
	}
	return entries, nil
}

// archive is the artefact with every program for a target, in one folder: tar.gz, and zip for Windows.
func archive(r *release, t target) artefact {
	folder := "service-" + r.version + "-" + t.String()
	return artefact{folder + ".tar.gz", func(ctx context.Context, r *release, file string) error {
		dir, err := r.programs(ctx, t)
		if err != nil {
			return err
		}
		entries, err := programEntries(dir, folder+"/bin")
		if err != nil {
			return err
		}
		return r.writeTarGz(file, entries)
	}}
}

// writeTarGz writes entries in the order of their names, owned by root, with the time of the commit.
func (r *release) writeTarGz(file string, entries []entry) (err error) {
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
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(packed)
	for _, e := range entries {
		if err := r.addTar(w, e); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return packed.Close()
}

func (r *release) addTar(w *tar.Writer, e entry) error {
	f, err := os.Open(e.from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: e.name, Size: info.Size(), Mode: e.mode, ModTime: r.time,
		Uname: "root", Gname: "root", Format: tar.FormatUSTAR,
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
