package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// These are the parts of an SPDX 2.3 document that sboms use; see https://spdx.github.io/spdx-spec/v2.3.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Version       string         `json:"versionInfo"`
		Download      string         `json:"downloadLocation"`
		FilesAnalyzed bool           `json:"filesAnalyzed"`
		License       string         `json:"licenseConcluded"`
		Declared      string         `json:"licenseDeclared"`
		Copyright     string         `json:"copyrightText"`
		Purpose       string         `json:"primaryPackagePurpose,omitempty"`
		Checksums     []spdxChecksum `json:"checksums,omitempty"`
		Comment       string         `json:"comment,omitempty"`
		References    []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

// sboms returns the artefacts that list the modules in the programs and packages for a target: one for each program
// and, for Linux, one for each package.
func sboms(r *release, t target) []artefact {
	var list []artefact
	for _, p := range []osPackage{toolkit, serverPackage} {
		for _, pkg := range p.packages {
			list = append(list, r.sbom(path.Base(pkg), t, pkg))
		}
		if t.os == "linux" && len(p.packages) > 1 { // with a single program, the package's SBOM would be the program's
			list = append(list, r.sbom(p.name, t, p.packages...))
		}
	}
	return list
}

// sbom returns the artefact that lists the content of the package or program called name.
func (r *release) sbom(name string, t target, packages ...string) artefact {
	file := fmt.Sprintf("%s-%s-%s.spdx.json", name, r.version, t)
	return artefact{file, func(ctx context.Context, r *release, to string) error {
		dir, err := r.programs(ctx, t)
		if err != nil {
			return err
		}
		var programs []string
		for _, pkg := range packages {
			programs = append(programs, filepath.Join(dir, t.program(path.Base(pkg))))
		}
		text, err := r.describeContents(name, strings.TrimSuffix(file, ".spdx.json"), programs)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o644)
	}}
}

// describeContents returns the SPDX document of programs, based on the build information that the compiler stored in
// them.
func (r *release) describeContents(name, document string, programs []string) ([]byte, error) {
	d := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: document,
		Namespace: homepage + "/spdx/" + r.commit + "/" + document,
		Creation: spdxCreation{Created: r.time.Format(time.RFC3339),
			Creators: []string{"Organization: " + vendor, "Tool: packaging/release"}},
	}
	root := ours("SPDXRef-root-"+name, name, r.version)
	if len(programs) == 1 {
		if err := root.addChecksum(programs[0]); err != nil {
			return nil, err
		}
	} else {
		root.Purpose = "INSTALL"
	}
	d.add(root, spdxRelationship{d.ID, "DESCRIBES", root.ID})
	for _, file := range programs {
		owner := root
		if len(programs) > 1 {
			base := strings.TrimSuffix(filepath.Base(file), ".exe")
			owner = ours("SPDXRef-program-"+base, base, r.version)
			if err := owner.addChecksum(file); err != nil {
				return nil, err
			}
			d.add(owner, spdxRelationship{root.ID, "CONTAINS", owner.ID})
		}
		if err := d.addModules(owner.ID, file); err != nil {
			return nil, err
		}
	}
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// addModules adds the modules of a program, and the standard library.
func (d *spdxDocument) addModules(owner, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	std := module("std", version, "BSD-3-Clause")
	std.References = []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/std@" + version}}
	d.add(std, spdxRelationship{owner, "CONTAINS", std.ID})
	slices.SortFunc(info.Deps, func(a, b *debug.Module) int { return cmp.Compare(a.Path, b.Path) })
	for _, m := range info.Deps {
		if m.Replace != nil {
			return fmt.Errorf("%s: %s is replaced", program, m.Path)
		}
		p := module(m.Path, m.Version, "NOASSERTION")
		p.Download = "https://proxy.golang.org/" + escapeModule(m.Path) + "/@v/" + escapeModule(m.Version) + ".zip"
		p.Comment = "The checksum in go.sum is " + m.Sum
		p.References = []spdxRef{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}}
		d.add(p, spdxRelationship{owner, "CONTAINS", p.ID})
	}
	return nil
}

// add adds a package, unless the document already contains it, and its relationship to another one.
func (d *spdxDocument) add(p spdxPackage, how spdxRelationship) {
	if !slices.ContainsFunc(d.Packages, func(o spdxPackage) bool { return o.ID == p.ID }) {
		d.Packages = append(d.Packages, p)
	}
	d.Relationships = append(d.Relationships, how)
}

func ours(id, name, version string) spdxPackage {
	return spdxPackage{
		ID: id, Name: name, Version: version, Download: homepage, License: "Apache-2.0", Declared: "Apache-2.0",
		Copyright: "NOASSERTION", Purpose: "APPLICATION",
	}
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func module(path, version, license string) spdxPackage {
	return spdxPackage{
		ID: "SPDXRef-module-" + notInID.ReplaceAllString(path+"-"+version, "-"), Name: path, Version: version,
		Download: "NOASSERTION", License: license, Declared: license, Copyright: "NOASSERTION", Purpose: "LIBRARY",
	}
}

func (p *spdxPackage) addChecksum(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	p.Checksums = []spdxChecksum{{"SHA256", hex.EncodeToString(sum.Sum(nil))}}
	return nil
}
