package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// entry is a file of an archive or a package.
type entry struct {
	name   string // relative, with slashes
	from   string // path of the file with the content
	mode   fs.FileMode
	link   string // target of a symbolic link; if set, from and mode are unused
	config bool   // edited by operators and kept by upgrades
}

// entries collects entries. err is the first error that occurred while adding one.
type entries struct {
	list []entry
	err  error
}

func (s *entries) add(more []entry, err error) {
	s.list, s.err = append(s.list, more...), cmp.Or(s.err, err)
}

func (s *entries) addOne(e entry, err error) { s.add([]entry{e}, err) }

// archive returns the artefact with the programs of p for a target in one directory: a zip for Windows, and otherwise
// a tar.gz.
func archive(r *release, p osPackage, t target) artefact {
	folder := archiveFolder(r, p, t)
	name, pack := folder+".tar.gz", r.writeTarGz
	if t.os == "windows" {
		name, pack = folder+".zip", r.writeZip
	}
	return artefact{name, func(ctx context.Context, r *release, file string) error {
		var all entries
		if p.name == toolkit.name {
			all.add(r.toolkitPrograms(ctx, t, folder+"/bin"))
			all.add(r.examples(folder+"/examples"), nil)
		} else {
			all.add(r.programEntries(ctx, t, folder+"/bin", t.programsOf(p.packages)))
		}
		all.add(r.archiveDocs(ctx, folder, p.programs))
		all.addOne(r.thirdParty(ctx, t, folder+"/THIRD_PARTY", p.packages...))
		all.addOne(entry{name: folder + "/LICENSE", from: filepath.Join(r.root, "LICENSE"), mode: 0o644}, nil)
		if all.err != nil {
			return all.err
		}
		return pack(file, all.list)
	}}
}

// archiveFolder returns the directory in an archive, which is also the archive's name without its
// suffix.
func archiveFolder(r *release, p osPackage, t target) string {
	return p.archive + "-" + r.version + "-" + t.String()
}

// programEntries builds the programs for a target and returns them as entries in folder.
func (r *release) programEntries(ctx context.Context, t target, folder string, names []string) ([]entry, error) {
	dir, err := r.programs(ctx, t)
	return programFiles(dir, folder, names), err
}

// programFiles returns the programs names in dir, and the adapters' manifest, as entries in folder.
func programFiles(dir, folder string, names []string) []entry {
	var all []entry
	for _, name := range names {
		e := entry{name: path.Join(folder, name), from: filepath.Join(dir, name), mode: 0o755}
		if name == manifest {
			e.mode = 0o644
		}
		all = append(all, e)
	}
	return all
}

// writeTarGz writes a tar.gz of entries, ordered by name, owned by root, with the time of the
// commit.
func (r *release) writeTarGz(file string, entries []entry) error {
	return create(file, func(out io.Writer) error {
		packed := gzip.NewWriter(out)
		w := tar.NewWriter(packed)
		err := eachEntry(entries, func(e entry, size int64) (io.Writer, error) {
			header := &tar.Header{
				Typeflag: tar.TypeReg, Name: e.name, Size: size, Mode: int64(e.mode), ModTime: r.time,
				Uname: "root", Gname: "root", Format: tar.FormatUSTAR,
			}
			if e.link != "" {
				header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, e.link, 0o777
			}
			return w, w.WriteHeader(header)
		})
		return cmp.Or(err, w.Close(), packed.Close())
	})
}

// writeZip writes a zip of entries, ordered by name, with the time of the commit.
func (r *release) writeZip(file string, entries []entry) error {
	return create(file, func(out io.Writer) error {
		w := zip.NewWriter(out)
		w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
			return flate.NewWriter(out, flate.DefaultCompression)
		})
		err := eachEntry(entries, func(e entry, _ int64) (io.Writer, error) {
			if e.link != "" {
				return nil, fmt.Errorf("%s is a link, which few programs unpack from a zip", e.name)
			}
			header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: r.time}
			header.SetMode(e.mode)
			return w.CreateHeader(header)
		})
		return cmp.Or(err, w.Close())
	})
}

// create creates a file and calls write to write its content.
func create(file string, write func(io.Writer) error) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return cmp.Or(write(out), out.Close())
}

// eachEntry calls open for each entry, ordered by name, and copies the entry's content to the writer that open
// returns.
func eachEntry(entries []entry, open func(e entry, size int64) (io.Writer, error)) error {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	for _, e := range entries {
		if err := copyEntry(e, open); err != nil {
			return err
		}
	}
	return nil
}

func copyEntry(e entry, open func(e entry, size int64) (io.Writer, error)) error {
	if e.link != "" {
		_, err := open(e, 0)
		return err
	}
	f, err := os.Open(e.from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w, err := open(e, info.Size())
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
