package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Metadata that is the same in every package.
const (
	homepage   = "https://github.com/service-dev/service"
	vendor     = "The service's developers"
	maintainer = vendor + " <service-dev@users.noreply.github.com>"
)

// packageDocs returns the documents of a package at the paths of its format. These are the man pages and completions
// of its programs, the licences, and for Debian the changelog.
func (r *release) packageDocs(ctx context.Context, p osPackage, t target, format string) ([]entry, error) {
	var all entries
	all.add(r.manPages(ctx, p.programs))
	all.add(r.completions(ctx, p.programs, format))
	third, err := r.thirdParty(ctx, t, path.Join(p.name, "THIRD_PARTY"), p.packages...)
	all.add(nil, err)
	all.add(r.legalTexts(p.name, format, third.from))
	return all.list, all.err
}

// manPages returns the compressed man pages of programs.
func (r *release) manPages(ctx context.Context, programs []string) ([]entry, error) {
	dir, err := r.docs(ctx)
	if err != nil {
		return nil, err
	}
	pages, err := os.ReadDir(filepath.Join(dir, "man"))
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, page := range pages {
		if !isOfAny(page.Name(), programs) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "man", page.Name()))
		if err != nil {
			return nil, err
		}
		e, err := r.compressed("usr/share/man/man1/"+page.Name()+".gz", string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func isOfAny(file string, programs []string) bool {
	for _, p := range programs {
		if isOf(file, p) {
			return true
		}
	}
	return false
}

// completions returns the completions of programs at the paths where the shells of a distribution look for them.
func (r *release) completions(ctx context.Context, programs []string, format string) ([]entry, error) {
	dir, err := r.docs(ctx)
	if err != nil {
		return nil, err
	}
	zsh := "usr/share/zsh/site-functions/"
	if format == "deb" {
		zsh = "usr/share/zsh/vendor-completions/"
	}
	var all []entry
	for _, p := range programs {
		from := filepath.Join(dir, "completions")
		if _, err := os.Stat(filepath.Join(from, "_"+p)); err != nil {
			continue // the program has no commands
		}
		all = append(all,
			entry{name: "usr/share/bash-completion/completions/" + p, from: filepath.Join(from, p+".bash"), mode: 0o644},
			entry{name: zsh + "_" + p, from: filepath.Join(from, "_"+p), mode: 0o644},
			entry{name: "usr/share/fish/vendor_completions.d/" + p + ".fish", from: filepath.Join(from, p+".fish"), mode: 0o644})
	}
	return all, nil
}

// legalTexts returns the licences of a package, third being the third-party licences, and for Debian the changelog.
func (r *release) legalTexts(name, format, third string) ([]entry, error) {
	if format != "deb" {
		folder := "usr/share/licenses/" + name + "/"
		return []entry{
			{name: folder + "LICENSE", from: filepath.Join(r.root, "LICENSE"), mode: 0o644},
			{name: folder + "THIRD_PARTY", from: third, mode: 0o644},
		}, nil
	}
	folder := "usr/share/doc/" + name + "/"
	text, err := os.ReadFile(third)
	if err != nil {
		return nil, err
	}
	var all entries
	all.addOne(r.compressed(folder+"THIRD_PARTY.gz", string(text)))
	all.addOne(r.templated(folder+"copyright", "copyright", map[string]string{
		"HOMEPAGE": homepage, "VENDOR": vendor, "YEAR": strconv.Itoa(r.time.Year()), "PACKAGE": name,
	}))
	all.addOne(r.templated("usr/share/lintian/overrides/"+name, "lintian/"+name, nil))
	all.addOne(r.compressed(folder+"changelog.Debian.gz", fmt.Sprintf(
		"%s (%s-1) stable; urgency=medium\n\n  * Release %s.\n\n -- %s  %s\n", name,
		strings.Replace(r.version, "-", "~", 1), r.version, maintainer, r.time.Format(time.RFC1123Z))))
	return all.list, all.err
}

// rpmChangelog writes the changelog in the format that nfpm reads for an rpm.
func (r *release) rpmChangelog(name string) (string, error) {
	return r.write(name+"-changelog.yaml", fmt.Sprintf(
		"- semver: %s-1\n  date: %s\n  packager: %q\n  changes:\n    - note: Release %s.\n",
		r.version, r.time.Format(time.RFC3339), maintainer, r.version))
}

// compressed returns an entry whose content is text, compressed as by gzip -9n.
func (r *release) compressed(name, text string) (entry, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return entry{}, err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return entry{}, err
	}
	if err := w.Close(); err != nil {
		return entry{}, err
	}
	return r.generated(name, b.String())
}
