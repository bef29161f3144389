package main

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modulesOf returns the modules that an SPDX document lists, as PATH VERSION.
func modulesOf(t *testing.T, text []byte) []string {
	t.Helper()
	var d spdxDocument
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, p := range d.Packages {
		if p.Purpose == "LIBRARY" && p.Name != "std" {
			all = append(all, p.Name+" "+p.Version)
		}
	}
	slices.Sort(all)
	return all
}

// testRelease returns a release of this working tree that makes no artefacts by itself.
func testRelease(t *testing.T) *release {
	t.Helper()
	r, err := newRelease(t.Context(), options{
		root: "../..", out: t.TempDir(), version: testVersion, targets: "linux-amd64", dirty: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

// linkedNames returns the modules that `go list -deps` finds, as PATH VERSION.
func linkedNames(t *testing.T, r *release, packages ...string) []string {
	t.Helper()
	modules, err := r.linkedModules(t.Context(), target{"linux", "amd64"}, packages...)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range modules {
		all = append(all, m.Path+" "+m.Version)
	}
	return all
}

// TestSBOM_ListsLinkedModules checks that each list contains exactly the modules that `go list -deps` finds.
func TestSBOM_ListsLinkedModules(t *testing.T) {
	r := testRelease(t)
	contained := map[string][]string{toolkit.name: toolkitPackages}
	for _, pkg := range slices.Concat(toolkitPackages, serverPackages) {
		contained[path.Base(pkg)] = []string{pkg}
	}
	for name, packages := range contained {
		text, err := os.ReadFile(artefactOf(t, name+"-*-linux-amd64.spdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		got, want := modulesOf(t, text), linkedNames(t, r, packages...)
		if !slices.Equal(got, want) {
			t.Errorf("%s lists\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestSBOM_FindsPlantedModule builds a program with one additional module, to check that the test above can fail.
func TestSBOM_FindsPlantedModule(t *testing.T) {
	r := testRelease(t)
	dir := t.TempDir()
	overlay := filepath.Join(dir, "overlay.json")
	main := filepath.Join(r.root, "ctl/service-mcp/planted.go")
	planted := filepath.Join(dir, "planted.go")
	if err := os.WriteFile(planted, []byte("package main\n\nimport _ \"github.com/google/uuid\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {main: planted}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "service-mcp")
	output(t, "go", "build", "-C", r.root, "-overlay", overlay, "-o", program, "./ctl/service-mcp")
	text, err := r.describeContents("service-mcp", "service-mcp", []string{program})
	if err != nil {
		t.Fatal(err)
	}
	want := linkedNames(t, r, "./ctl/service-mcp")
	extra := slices.DeleteFunc(modulesOf(t, text), func(m string) bool { return slices.Contains(want, m) })
	if len(extra) != 1 || !strings.HasPrefix(extra[0], "github.com/google/uuid ") {
		t.Errorf("got extra modules %v, want the planted one", extra)
	}
}
