package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/programpath"
)

// TestArchive_RunsAdaptersThroughLinks runs every adapter of this machine's archive through its link, and lets the
// daemon start one.
func TestArchive_RunsAdaptersThroughLinks(t *testing.T) {
	bin := linuxPrograms(t)
	checkAdapterLinks(t, bin)
	for _, name := range adapterNames(t) {
		if out := output(t, filepath.Join(bin, name), "version"); !strings.HasPrefix(out, name+" ") {
			t.Errorf("%s version printed %q", name, out)
		}
	}
	t.Setenv("SERVICE_CONFIG_DIR", filepath.Join(t.TempDir(), "state"))
	servicectl := filepath.Join(bin, "servicectl")
	defer output(t, servicectl, "daemon", "stop")
	output(t, servicectl, "tool", "call", "startLocalSimulation")
	var list struct {
		Plugins []struct{ Name, Path, State string }
	}
	if err := json.Unmarshal([]byte(output(t, servicectl, "plugin", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Plugins {
		if want := filepath.Join(bin, programpath.AdapterPrefix+p.Name); p.Path != want {
			t.Errorf("the daemon runs adapter %s from %s, want %s", p.Name, p.Path, want)
		}
		if p.Name == "localsim" && p.State != "running" {
			t.Errorf("adapter localsim is %s, want running", p.State)
		}
	}
	if len(list.Plugins) != len(adapterNames(t)) {
		t.Errorf("the daemon lists %+v, want one for each link", list.Plugins)
	}
}

// adapterNames returns the program names of the adapters.
func adapterNames(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("../../plugins/" + programpath.AdapterPrefix + "*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("found adapters %q, %v", dirs, err)
	}
	for i, dir := range dirs {
		dirs[i] = filepath.Base(dir)
	}
	return dirs
}

// checkAdapterLinks checks that a directory of installed programs has a relative link for each adapter, and that the
// manifest lists exactly these and serviced.
func checkAdapterLinks(t *testing.T, dir string) {
	t.Helper()
	for _, name := range adapterNames(t) {
		if to, err := os.Readlink(filepath.Join(dir, name)); err != nil || to != "serviced" {
			t.Errorf("%s is a link to %q, %v; want one to serviced", name, to, err)
		}
	}
	checkManifest(t, dir, "serviced", adapterNames(t)...)
}

// checkManifest checks that the manifest of a directory lists exactly a program, and links to it.
func checkManifest(t *testing.T, dir, program string, links ...string) {
	t.Helper()
	sum := sha256.Sum256(must(os.ReadFile(filepath.Join(dir, program))))
	want := ""
	for _, name := range append([]string{program}, links...) {
		want += fmt.Sprintf("%x  %s\n", sum, name)
	}
	if got := must(os.ReadFile(filepath.Join(dir, manifest))); string(got) != want {
		t.Errorf("%s contains\n%swant\n%s", manifest, got, want)
	}
}

// checkAdaptersOf checks an archive for another system: a tar.gz has links, and a zip neither links nor copies.
func checkAdaptersOf(t *testing.T, file string) {
	t.Helper()
	if !strings.HasSuffix(file, ".zip") {
		checkAdapterLinks(t, unpackBin(t, file))
		return
	}
	bin := filepath.Join(unzip(t, file), strings.TrimSuffix(filepath.Base(file), ".zip"), "bin")
	if found, err := filepath.Glob(filepath.Join(bin, programpath.AdapterPrefix+"*")); err != nil || len(found) > 0 {
		t.Errorf("%s has the adapters %q, %v; want none", filepath.Base(file), found, err)
	}
	checkManifest(t, bin, "serviced.exe")
}

// TestArchive_IsReachedThroughLinks runs the tests in test/e2e that install programs behind links and in versioned
// folders, with the programs of this machine's archive.
func TestArchive_IsReachedThroughLinks(t *testing.T) {
	tests := []string{
		"TestPrograms_ReachedThroughLinks", "TestUpgrade_OfVersionFoldersKeepsRegistrations", "TestAgentList_NamesStalePath",
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-C", "../..", "-count=1", "-v",
		"-run", "^("+strings.Join(tests, "|")+")$", "./test/e2e")
	cmd.Env = append(os.Environ(), "SERVICE_E2E_BIN="+linuxPrograms(t))
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	for _, test := range tests {
		if !strings.Contains(string(printed), "--- PASS: "+test) {
			t.Errorf("%s did not run:\n%s", test, printed)
		}
	}
}
