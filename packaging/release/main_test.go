package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"aead.dev/minisign"

	"github.com/service-dev/service/test/reaper"
)

// The release that the tests check.
const (
	testVersion = "0.9.0"
	testURL     = "https://download.example.org/service"
)

// scratch is a directory that every user can read. It exists until the tests end.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "release-test-")
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		scratch = dir
		return reaper.Run(m.Run)
	}())
}

// testKey creates the key that signs the release of these tests, on the first call, and returns its public key and
// its file.
var testKey = sync.OnceValues(func() (public, file string) {
	pub, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	text, err := private.MarshalText()
	if err != nil {
		panic(err)
	}
	file = filepath.Join(scratch, "release.key")
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		panic(err)
	}
	return pub.String(), file
})

// checkedTargets returns the targets whose artefacts the tests check.
func checkedTargets() string {
	if isFull() {
		return ""
	}
	return "linux-amd64"
}

// distOnce makes the artefacts on the first call.
var distOnce = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("RELEASE_DIST"); dir != "" {
		return filepath.Abs(dir)
	}
	dir := filepath.Join(scratch, "dist")
	public, key := testKey()
	r, err := newRelease(context.Background(), options{
		root: "../..", out: dir, version: testVersion, releaseURL: testURL, targets: checkedTargets(), releaseKey: public,
		secretKey: key, dirty: true,
	})
	if err != nil {
		return "", err
	}
	defer r.close()
	return dir, r.makeAll(context.Background())
})

// dist returns a directory with the artefacts for at least Linux on amd64. It is RELEASE_DIST or, if that is not set,
// a directory of artefacts made from this working tree for the first test that needs them.
func dist(t *testing.T) string {
	t.Helper()
	dir, err := distOnce()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// artefactOf returns the only artefact whose name matches a pattern.
func artefactOf(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist(t), pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("got artefacts %v, %v for %s, want one", found, err, pattern)
	}
	return found[0]
}

// isFull reports whether all repetitions are requested.
func isFull() bool { return os.Getenv("SERVICE_TEST_FULL") != "" }

// require skips the test if a program is missing, or fails it in CI.
func require(t *testing.T, programs map[string]string) {
	t.Helper()
	for program, debian := range programs {
		if _, err := exec.LookPath(program); err != nil {
			skip(t, program+" is missing: apt-get install "+debian)
		}
	}
}

// requireRoot skips the test without root, or fails it in CI.
func requireRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		skip(t, "root is needed for namespaces and packages")
	}
}

func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip("SKIPPED, " + reason)
}

// output runs a program and returns its output. The test fails if the program fails.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
