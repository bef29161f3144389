package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// simulatorPage is the package of the simulator page's program, which is embedded in the backend.
const simulatorPage = "./backend/simulator"

// linkedModule is a module that contributes packages to programs.
type linkedModule struct {
	Path, Version, Dir string
	packages           []string // the directories of the packages that are linked
}

// linkedModules returns the modules that packages of this repository link for a target, except this module and the
// standard library.
func (r *release) linkedModules(ctx context.Context, t target, packages ...string) ([]linkedModule, error) {
	args := append([]string{"list", "-tags", buildTags, "-deps", "-json=Dir,Module"}, packages...)
	cmd := command(ctx, r.root, "go", args...)
	cmd.Env = append(buildEnv(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %v: %w", packages, err)
	}
	found := map[string]*linkedModule{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{ Path string }
			}
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		if p.Module.Replace != nil {
			return nil, fmt.Errorf("%s is replaced, so its licence is unknown", p.Module.Path)
		}
		m := cmp.Or(found[p.Module.Path], &linkedModule{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir})
		m.packages, found[m.Path] = append(m.packages, p.Dir), m
	}
	var all []linkedModule
	for _, m := range found {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b linkedModule) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([-_.].*)?$`)

// licenceFiles returns the files with licences and notices in a module's root and in the directories of its linked
// packages.
func (m linkedModule) licenceFiles() ([]string, error) {
	dirs := map[string]bool{m.Dir: true}
	for _, dir := range m.packages {
		for ; strings.HasPrefix(dir, m.Dir); dir = filepath.Dir(dir) {
			dirs[dir] = true
		}
	}
	var all []string
	for dir := range dirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if f.Type().IsRegular() && licenceFile.MatchString(f.Name()) && filepath.Ext(f.Name()) != ".go" {
				all = append(all, filepath.Join(dir, f.Name()))
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("module %s has no licence", m.Path)
	}
	slices.Sort(all)
	return all, nil
}

// notices collects licence texts. A text shared by several modules is printed once.
type notices struct {
	text strings.Builder
	of   map[string]string // the module and file under which each text was printed
}

func (n *notices) add(title, note string, files ...string) error {
	fmt.Fprintf(&n.text, "%s\n%s\n%s\n", strings.Repeat("=", 100), title, note)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(data), "\r\n", "\n"))
		if earlier := n.of[text]; earlier != "" {
			fmt.Fprintf(&n.text, "\nThe text of %s is that of %s.\n", filepath.Base(file), earlier)
			continue
		}
		n.of[text] = filepath.Base(file) + " of " + title
		fmt.Fprintf(&n.text, "\n%s\n", text)
	}
	return nil
}

// thirdParty returns an entry with the licences of all third-party code in packages when built for a target.
func (r *release) thirdParty(ctx context.Context, t target, name string, packages ...string) (entry, error) {
	modules, err := r.linkedModules(ctx, t, packages...)
	if err != nil {
		return entry{}, err
	}
	page, err := r.linkedModules(ctx, target{"js", "wasm"}, simulatorPage)
	if err != nil {
		return entry{}, err
	}
	for _, m := range page {
		if !slices.ContainsFunc(modules, func(o linkedModule) bool { return o.Path == m.Path }) {
			modules = append(modules, m)
		}
	}
	slices.SortFunc(modules, func(a, b linkedModule) int { return cmp.Compare(a.Path, b.Path) })
	goroot, err := command(ctx, r.root, "go", "env", "GOROOT").Output()
	if err != nil {
		return entry{}, err
	}
	n := notices{of: map[string]string{}}
	n.text.WriteString("These programs contain the following works of others.\n")
	err = errors.Join(
		n.add("Go, its standard library and its fonts", "https://go.dev",
			filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE")),
		n.add("Noto fonts", "https://github.com/notofonts",
			filepath.Join(r.root, "glasses/render/fonts/packs/OFL.txt")),
		n.add("Tables of Google's liblc3",
			"https://github.com/google/liblc3\nCopyright 2022 Google LLC, under the Apache License:",
			filepath.Join(r.root, "LICENSE")),
	)
	for _, m := range modules {
		files, ferr := m.licenceFiles()
		err = errors.Join(err, ferr, n.add(m.Path+" "+m.Version, m.note(files), files...))
	}
	if err != nil {
		return entry{}, err
	}
	return r.generated(name, n.text.String())
}

// note returns the address of a module's source, as the Mozilla Public License requires.
func (m linkedModule) note(files []string) string {
	where := "https://" + m.Path
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && bytes.Contains(data[:min(len(data), 300)], []byte("Mozilla Public License")) {
			return where + "\nUnder the Mozilla Public License 2.0; unchanged. Its source code: https://proxy.golang.org/" +
				escapeModule(m.Path) + "/@v/" + escapeModule(m.Version) + ".zip"
		}
	}
	return where
}

// escapeModule escapes capital letters as the Go module proxy protocol does.
func escapeModule(s string) string {
	return regexp.MustCompile(`[A-Z]`).ReplaceAllStringFunc(s, func(c string) string { return "!" + strings.ToLower(c) })
}
