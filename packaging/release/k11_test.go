package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
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

// testRelease returns a release of this working tree that makes nothing by itself.
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

func TestK11_ListedModulesAreTheLinkedOnes(t *testing.T) {
	r := testRelease(t)
	all, err := r.allPackages()
	if err != nil {
		t.Fatal(err)
	}
	toolkitPackages, err := r.toolkitPackages()
	if err != nil {
		t.Fatal(err)
	}
	contained := map[string][]string{"service-toolkit": toolkitPackages}
	for _, pkg := range all {
		contained[programOf(pkg)] = []string{pkg}
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

// A program that contains one module more is told from its list: the check above is able to fail.
func TestK11_PlantedModuleIsFound(t *testing.T) {
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

// What Go signs, Debian's minisign accepts, and a changed file it refuses.
func TestK11_DebiansMinisignVerifiesTheRelease(t *testing.T) {
	require(t, map[string]string{"minisign": "minisign"})
	if os.Getenv("RELEASE_DIST") != "" {
		t.Skip("another key signed RELEASE_DIST")
	}
	public, _ := testKey()
	file := artefactOf(t, "SHA256SUMS")
	said := output(t, "minisign", "-V", "-P", public, "-m", file)
	if !strings.Contains(said, "Trusted comment: service "+testVersion) {
		t.Errorf("minisign said %s, want the version in the trusted comment", said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "SHA256SUMS")
	text[0] ^= 1
	if err := os.WriteFile(changed, text, 0o644); err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), "minisign", "-V", "-P", public, "-m", changed, "-x", file+".minisig")
	if out, err := check.CombinedOutput(); err == nil {
		t.Errorf("minisign accepts a changed file: %s", out)
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS")
	cmd.Dir = dist(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
}

// A key that Debian's minisign made signs a release, and Go accepts what Debian's minisign signs.
func TestK11_KeysOfDebiansMinisignWork(t *testing.T) {
	require(t, map[string]string{"minisign": "minisign"})
	dir := t.TempDir()
	public, secret := filepath.Join(dir, "key.pub"), filepath.Join(dir, "key")
	output(t, "minisign", "-G", "-W", "-p", public, "-s", secret)
	key, err := minisign.PublicKeyFromFile(public)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, sums)
	if err := os.WriteFile(file, []byte("0000  service\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := testRelease(t)
	r.secretKey, r.releaseKey = secret, key.String()
	if err := writeSignature(context.Background(), r, file+".minisig"); err != nil {
		t.Fatal(err)
	}
	output(t, "minisign", "-V", "-p", public, "-m", file)

	output(t, "minisign", "-S", "-W", "-s", secret, "-m", file, "-x", file+".debian")
	signed, err := os.ReadFile(file + ".debian")
	if err != nil {
		t.Fatal(err)
	}
	hashed := minisign.NewReader(strings.NewReader("0000  service\n"))
	if _, err := io.Copy(io.Discard, hashed); err != nil {
		t.Fatal(err)
	}
	if !hashed.Verify(key, signed) {
		t.Error("Go refuses the signature of Debian's minisign")
	}
	// Debian's minisign reads the key that Go made.
	goPublic, goSecret := testKey()
	output(t, "minisign", "-S", "-W", "-s", goSecret, "-m", file, "-x", file+".go")
	output(t, "minisign", "-V", "-P", goPublic, "-m", file, "-x", file+".go")
	// A release whose programs would refuse its signature is not made.
	r.releaseKey = goPublic
	if err := writeSignature(context.Background(), r, file+".minisig"); err == nil {
		t.Error("a key other than RELEASE_KEY signs")
	}
}
