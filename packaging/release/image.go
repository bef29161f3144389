package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Paths in the image. Only imageData is writable; it belongs to imageUser.
const (
	imageUser    = 65532
	imageProgram = "service-backend"
	imageConfig  = "etc/service-backend/config.yaml"
	imageRoots   = "etc/ssl/certs/ca-certificates.crt"
	imageData    = "var/lib/service-backend"
)

//go:embed files/image-config.yaml
var imageSettings []byte

const rootsNotice = "Mozilla's list of CA certificates, under the Mozilla Public License 2.0, from\n" +
	"https://pkg.go.dev/golang.org/x/crypto/x509roots/fallback\n"

// image returns the artefact that contains the server for container runtimes: an OCI layout with one index of all
// platforms.
func image(r *release) artefact {
	return artefact{"service-backend-" + r.version + "-oci.tar", func(ctx context.Context, r *release, file string) error {
		index, err := r.imageIndex(ctx)
		if err != nil {
			return err
		}
		// The layout's index lists a single image, so that users need not tell tools which one to use.
		top := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
			MediaType: types.OCIImageIndex, Annotations: map[string]string{"org.opencontainers.image.ref.name": r.version},
		}})
		dir := filepath.Join(r.work, "oci")
		if _, err := layout.Write(dir, top); err != nil {
			return err
		}
		return r.writeTarOf(dir, file)
	}}
}

func (r *release) imageIndex(ctx context.Context) (v1.ImageIndex, error) {
	common, err := layerOf(func(w *tar.Writer) error { return r.addImageFiles(w) })
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range r.chosen {
		if t.os != "linux" {
			continue
		}
		one, err := r.platformImage(ctx, t, common)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: t.os, Architecture: t.arch},
		}})
	}
	return mutate.Annotations(index, r.imageLabels()).(v1.ImageIndex), nil
}

// platformImage returns the image of one platform: the common layer and the program.
func (r *release) platformImage(ctx context.Context, t target, common v1.Layer) (v1.Image, error) {
	dir, err := r.programs(ctx, t)
	if err != nil {
		return nil, err
	}
	third, err := r.thirdParty(ctx, t, "image-"+t.String()+"/THIRD_PARTY", serverPackages...)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf(func(w *tar.Writer) error {
		return eachEntry([]entry{
			{name: "THIRD_PARTY", from: third.from, mode: 0o444},
			{name: imageProgram, from: filepath.Join(dir, imageProgram), mode: 0o555},
		}, r.tarEntry(w))
	})
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: common, History: r.history("CA roots, settings and the directory for data")},
		mutate.Addendum{Layer: layer, History: r.history("service-backend " + r.version)})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = t.os, t.arch
	config.Created = v1.Time{Time: r.time}
	config.Config = v1.Config{
		User:         "65532:65532",
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Entrypoint:   []string{"/" + imageProgram},
		Cmd:          []string{"--config", "/" + imageConfig},
		Volumes:      map[string]struct{}{"/" + imageData: {}},
		WorkingDir:   "/" + imageData,
		Labels:       r.imageLabels(),
		StopSignal:   "SIGTERM",
	}
	return mutate.ConfigFile(img, config)
}

func (r *release) history(what string) v1.History {
	return v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "packaging/release", Comment: what}
}

func (r *release) imageLabels() map[string]string {
	const info = "org.opencontainers.image."
	return map[string]string{
		info + "title":         "service-backend",
		info + "description":   "Server of the service: accounts, links, simulator sessions, projects",
		info + "version":       r.version,
		info + "revision":      r.commit,
		info + "created":       r.time.Format("2006-01-02T15:04:05Z07:00"),
		info + "source":        homepage,
		info + "documentation": homepage + "/blob/main/docs/pages/operating.md",
		info + "licenses":      "Apache-2.0",
	}
}

// addImageFiles adds the files of the image except the program.
func (r *release) addImageFiles(w *tar.Writer) error {
	folders := []string{"etc", "etc/service-backend", "etc/ssl", "etc/ssl/certs", "var", "var/lib"}
	for _, name := range folders {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o555, ModTime: r.time}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
	}
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	files := []struct {
		name string
		data []byte
	}{
		{imageConfig, imageSettings}, {imageRoots, caRoots()}, {imageRoots + ".licence", []byte(rootsNotice)},
		{"LICENSE", license},
	}
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o444, Size: int64(len(f.data)), ModTime: r.time}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeDir, Name: imageData + "/", Mode: 0o700, Uid: imageUser, Gid: imageUser, ModTime: r.time,
	})
}

// caRoots returns Mozilla's roots as PEM, from a pinned module, so that they depend only on the commit. Roots that
// are trusted only until a date are omitted, because PEM cannot express that.
func caRoots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// layerOf returns a layer with the files that add writes.
func layerOf(add func(*tar.Writer) error) (v1.Layer, error) {
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	if err := add(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9))
}

// writeTarOf packs the files of a directory without compression, ordered by name.
func (r *release) writeTarOf(dir, file string) error {
	var entries []entry
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name := strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(dir)+"/")
			entries = append(entries, entry{name: name, from: path, mode: 0o644})
		}
		return err
	})
	if err != nil {
		return err
	}
	return create(file, func(out io.Writer) error {
		w := tar.NewWriter(out)
		return cmp.Or(eachEntry(entries, r.tarEntry(w)), w.Close())
	})
}

// tarEntry returns a function for eachEntry that adds entries to a tar file.
func (r *release) tarEntry(w *tar.Writer) func(entry, int64) (io.Writer, error) {
	return func(e entry, size int64) (io.Writer, error) {
		return w, w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: size, ModTime: r.time, Format: tar.FormatUSTAR,
		})
	}
}
