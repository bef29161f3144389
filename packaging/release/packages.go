package main

import (
	"context"
	"os"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"  // registers a format
	_ "github.com/goreleaser/nfpm/v2/arch" // registers a format
	_ "github.com/goreleaser/nfpm/v2/deb"  // registers a format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers a format
)

// formats are the package formats, by their names in nfpm.
var formats = []string{"deb", "rpm", "apk", "archlinux"}

// osPackage is a package of an operating system.
type osPackage struct {
	name        string
	section     string // of Debian
	description string // a line, and paragraphs
	contents    func(ctx context.Context, r *release, t target) ([]entry, error)
	scripts     nfpm.Scripts
}

// packages returns the artefacts of p for Linux: every format for every processor.
func packages(r *release, p osPackage) []artefact {
	var all []artefact
	for _, t := range targets {
		if t.os != "linux" {
			continue
		}
		for _, format := range formats {
			packager, err := nfpm.Get(format)
			if err != nil {
				panic(err) // the format is not imported
			}
			name := packager.ConventionalFileName(p.info(r, t, format))
			all = append(all, artefact{name, func(ctx context.Context, r *release, file string) error {
				info := p.info(r, t, format)
				entries, err := p.contents(ctx, r, t)
				if err != nil {
					return err
				}
				for _, e := range entries {
					info.Contents = append(info.Contents, r.content(e))
				}
				return writePackage(packager, info, file)
			}})
		}
	}
	return all
}

// info returns what is the same in every package, and what differs by format.
func (p osPackage) info(r *release, t target, format string) *nfpm.Info {
	version, pre, isPre := strings.Cut(r.version, "-")
	info := &nfpm.Info{
		Name: p.name, Arch: t.arch, Platform: t.os, Version: version, Prerelease: pre, VersionSchema: "none", Release: "1",
		Section: p.section, Priority: "optional", Maintainer: maintainer, Description: p.description, Vendor: vendor,
		Homepage: homepage, License: "Apache-2.0", MTime: r.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Scripts: p.scripts, Umask: 0o022},
	}
	info.RPM = nfpm.RPM{BuildHost: "localhost", Compression: "zstd", Packager: maintainer}
	switch format {
	case "deb":
		info.License = "" // Debian has no such field
		info.Deb.Compression = "zstd"
	case "archlinux":
		info.ArchLinux.Packager = maintainer
		if isPre { // nfpm leaves pre-releases out there; 1.4.0rc1 sorts before 1.4.0
			info.Version, info.Prerelease = version+strings.NewReplacer("-", "", ".", "").Replace(pre), ""
		}
	}
	return info
}

// content returns an entry as nfpm describes it, with every property set, so that nfpm reads none from the file system.
func (r *release) content(e entry) *files.Content {
	c := &files.Content{
		Source: e.from, Destination: "/" + e.name, Type: files.TypeFile,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(e.mode), MTime: r.time},
	}
	switch {
	case e.link != "":
		c.Source, c.Type, c.FileInfo.Mode = e.link, files.TypeSymlink, 0o777
	case e.config:
		c.Type = files.TypeConfigNoReplace
	}
	return c
}

func writePackage(packager nfpm.Packager, info *nfpm.Info, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := packager.Package(info, out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
