package main

import (
	"context"
	"io"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"  // registers a format
	_ "github.com/goreleaser/nfpm/v2/arch" // registers a format
	_ "github.com/goreleaser/nfpm/v2/deb"  // registers a format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers a format
)

// formats lists the package formats, by their names in nfpm.
var formats = []string{"deb", "rpm", "apk", "archlinux"}

// osPackage is a package of an operating system.
type osPackage struct {
	name        string
	section     string   // Debian section
	group       string   // rpm group
	description string   // one line, then paragraphs
	programs    []string // programs with man pages
	archive     string   // prefix of the names of archives with the same programs
	packages    []string // the main packages of this repository that it contains
	// contents returns the files except the documents.
	contents func(ctx context.Context, r *release, t target, format string) ([]entry, error)
	// scripts maps each event (postinstall, preremove, postremove) to the name of its maintainer script in files.
	scripts map[string]string
}

// packages returns the artefacts of p for Linux: all formats for all processors.
func packages(r *release, p osPackage) []artefact {
	var all []artefact
	for _, t := range r.chosen {
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
				return p.write(ctx, r, t, format, file)
			}})
		}
	}
	return all
}

// write writes the package in this format to file.
func (p osPackage) write(ctx context.Context, r *release, t target, format, file string) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	info := p.info(r, t, format)
	entries, err := p.contents(ctx, r, t, format)
	if err != nil {
		return err
	}
	docs, err := r.packageDocs(ctx, p, t, format)
	if err != nil {
		return err
	}
	for _, e := range append(entries, docs...) {
		info.Contents = append(info.Contents, r.content(e, format))
	}
	if format == "rpm" {
		if info.Changelog, err = r.rpmChangelog(p.name); err != nil {
			return err
		}
	}
	if info.Scripts, err = p.maintainerScripts(r, format); err != nil {
		return err
	}
	return create(file, func(out io.Writer) error { return packager.Package(info, out) })
}

// info returns the metadata of the package for a format.
func (p osPackage) info(r *release, t target, format string) *nfpm.Info {
	version, pre, isPre := strings.Cut(r.version, "-")
	info := &nfpm.Info{
		Name: p.name, Arch: t.arch, Platform: t.os, Version: version, Prerelease: pre, VersionSchema: "none", Release: "1",
		Section: p.section, Priority: "optional", Maintainer: maintainer, Description: p.description, Vendor: vendor,
		Homepage: homepage, License: "Apache-2.0", MTime: r.time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{Umask: 0o022},
	}
	summary, _, _ := strings.Cut(p.description, "\n")
	info.RPM = nfpm.RPM{
		BuildHost: "localhost", Compression: "zstd", Packager: maintainer, Group: p.group,
		Summary: strings.ToUpper(summary[:1]) + summary[1:],
	}
	joined := strings.NewReplacer("-", "", ".", "").Replace(pre)
	switch format {
	case "apk":
		info.Prerelease = joined // rc1: apk allows no dots there
	case "deb":
		info.License = "" // Debian has no such field
		info.Deb.Compression = "zstd"
	case "archlinux":
		info.ArchLinux.Packager = maintainer
		if isPre { // nfpm omits pre-releases there; 1.4.0rc1 sorts before 1.4.0
			info.Version, info.Prerelease = version+joined, ""
		}
	}
	return info
}

// content converts an entry for nfpm. It sets every property so that nfpm reads none from the file system.
func (r *release) content(e entry, format string) *files.Content {
	c := &files.Content{
		Source: e.from, Destination: "/" + e.name, Type: files.TypeFile,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: e.mode, MTime: r.time},
	}
	switch {
	case e.link != "":
		c.Source, c.Type, c.FileInfo.Mode = e.link, files.TypeSymlink, 0o777
	case e.config:
		c.Type = files.TypeConfigNoReplace
	case format == "rpm" && strings.HasPrefix(e.name, "usr/share/man/"):
		c.Type = files.TypeRPMDoc
	case format == "rpm" && strings.HasPrefix(e.name, "usr/share/licenses/"):
		c.Type = files.TypeRPMLicense
	}
	return c
}

// maintainerScripts writes the scripts of a package. Alpine packages have none, because the scripts only call
// systemd.
func (p osPackage) maintainerScripts(r *release, format string) (nfpm.Scripts, error) {
	var scripts nfpm.Scripts
	if format == "apk" {
		return scripts, nil
	}
	for when, field := range map[string]*string{
		"postinstall": &scripts.PostInstall, "preremove": &scripts.PreRemove, "postremove": &scripts.PostRemove,
	} {
		if p.scripts[when] == "" {
			continue
		}
		text, err := r.template(p.scripts[when], nil)
		if err != nil {
			return scripts, err
		}
		if *field, err = r.write(p.scripts[when], text); err != nil {
			return scripts, err
		}
	}
	return scripts, nil
}
