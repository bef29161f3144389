package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestBundles_AreValid checks that the bundles and manifests are valid for the tools that read them.
func TestBundles_AreValid(t *testing.T) {
	r := bundleRelease(t)
	for name, test := range map[string]func(*testing.T, *release){
		"mcpb": mcpbBundles, "mcpb-runs": mcpbRuns, "plugin": pluginFolder, "server.json": serverJSON, "scoop": scoopManifest,
		"winget": wingetManifests, "formula": formulaBuilds,
	} {
		t.Run(name, func(t *testing.T) { test(t, r) })
	}
}

// bundleRelease makes the bundles and manifests of a release with programs that do nothing, so that it takes only
// seconds.
func bundleRelease(t *testing.T) *release {
	t.Helper()
	commit, seconds, err := headOf(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	r := &release{
		options: options{
			root: must(filepath.Abs("../..")), out: t.TempDir(), version: "1.4.0-rc.1",
			releaseURL: "https://releases.example.org/x/",
		},
		commit: commit, time: time.Unix(seconds, 0).UTC(), work: t.TempDir(), built: map[target]string{}, chosen: targets,
	}
	for _, to := range []target{{"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}} {
		r.built[to] = emptyPrograms(t, to)
	}
	for _, name := range []string{"service-1.4.0-rc.1-windows-amd64.zip", "service-1.4.0-rc.1-windows-arm64.zip"} {
		if err := writeFile(filepath.Join(r.out, name), name); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range bundles(r) {
		if strings.HasSuffix(a.name, "-oci.tar") {
			continue // see image_test.go
		}
		if err := a.make(t.Context(), r, filepath.Join(r.out, a.name)); err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
	}
	return r
}

// emptyPrograms returns a directory with a do-nothing program under the names of the real ones.
func emptyPrograms(t *testing.T, to target) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	first := filepath.Join(programs, to.program("serviced"))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", first, source)
	cmd.Env = append(os.Environ(), "GOOS="+to.os, "GOARCH="+to.arch, "CGO_ENABLED=0", "GO111MODULE=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build for %s: %v\n%s", to, err, out)
	}
	for _, name := range []string{"servicectl", "service-mcp", "service-backend"} {
		if err := os.Link(first, filepath.Join(programs, to.program(name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeManifest(programs, to.program("serviced")); err != nil {
		t.Fatal(err)
	}
	return programs
}

// unzip unpacks a zip with the modes of its files.
func unzip(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		to := filepath.Join(dir, filepath.FromSlash(f.Name))
		in := must(f.Open())
		data := must(io.ReadAll(in))
		_ = in.Close()
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, f.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readJSON parses a file, which must have no fields other than those of value.
func readJSON(t *testing.T, file string, value any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		t.Fatalf("%s: %v", filepath.Base(file), err)
	}
}

// npmProgram returns the path of a program of an npm package.
func npmProgram(t *testing.T, folder, name, how string) string {
	t.Helper()
	file := must(filepath.Abs(filepath.Join(folder, "node_modules", name)))
	if _, err := os.Stat(file); err != nil {
		skip(t, name+" is missing: "+how)
	}
	return file
}

// judge runs a program that checks a file, with its own home directory, and returns the output.
func judge(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "SERVICE_CONFIG_DIR="+filepath.Join(home, "state"),
		"SERVICE_NO_AUTO_OPEN=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err
}

// linuxPrograms unpacks the programs of this machine's archive.
func linuxPrograms(t *testing.T) string {
	t.Helper()
	return unpackBin(t, artefactOf(t, "service-[0-9]*-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz"))
}

// unpackBin unpacks an archive and returns the directory of its programs.
func unpackBin(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	output(t, "tar", "-xzf", file, "-C", dir)
	bins, err := filepath.Glob(filepath.Join(dir, "*", "bin"))
	if err != nil || len(bins) != 1 {
		t.Fatalf("the archive has the folders %q, %v", bins, err)
	}
	return bins[0]
}

// writeFile writes a file.
func writeFile(file, text string) error { return os.WriteFile(file, []byte(text), 0o644) }
