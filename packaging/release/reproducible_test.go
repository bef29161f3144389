package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRelease_IsReproducible makes a release of the commit again later: in a clone in another folder, as another user
// with a different home, umask, time zone and locale. With FULL it also compiles everything again, for every target.
func TestRelease_IsReproducible(t *testing.T) {
	requireRoot(t)
	require(t, map[string]string{"unshare": "util-linux", "diffoscope": "diffoscope-minimal"})
	if os.Getenv("RELEASE_DIST") != "" {
		t.Skip("the artefacts of RELEASE_DIST may be those of another commit")
	}
	args := []string{"-targets", checkedTargets()}
	first := filepath.Join(t.TempDir(), "first")
	if isClean(t) {
		first = dist(t)
	} else {
		makeClone(t, filepath.Join(t.TempDir(), "clone"), first, args, nil, "go")
	}
	second := filepath.Join(t.TempDir(), "second")
	home := t.TempDir()
	env := []string{
		"HOME=" + home, "USER=nobody", "LOGNAME=nobody", "TZ=Pacific/Kiritimati", "LC_ALL=tr_TR.UTF-8", "LANG=tr_TR.UTF-8",
		"SOURCE_DATE_EPOCH=86400", "GOMODCACHE=" + goEnv(t, "GOMODCACHE"), "GOCACHE=" + goEnv(t, "GOCACHE"),
		"GOEXPERIMENT=", "GOAMD64=v3", "GOFLAGS=-tags=other",
	}
	if isFull() {
		env = append(env, "GOCACHE="+filepath.Join(home, "cache"))
	}
	// The namespace maps root to nobody, who may therefore use root's caches.
	makeClone(t, filepath.Join(t.TempDir(), "another folder ü"), second, args, env,
		"unshare", "--user", "--map-user=65534", "--map-group=65534", "sh", "-c", `umask 077; exec "$@"`, "sh", "go")
	compareDirs(t, first, second)
}

// TestRelease_ReadsNoClock finds the calls that read the clock. Only the measurement of how long an artefact took may
// do so.
func TestRelease_ReadsNoClock(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	clock := regexp.MustCompile(`time\.(Now|Since|Until)\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasSuffix(file, "_test.go") && clock.MatchString(line) && !strings.Contains(line, "began") {
				t.Errorf("%s reads the clock: %s", file, line)
			}
		}
	}
}

// isClean reports whether the working tree matches the commit.
func isClean(t *testing.T) bool {
	return strings.TrimSpace(output(t, "git", "-C", "../..", "status", "--porcelain")) == ""
}

func goEnv(t *testing.T, name string) string { return strings.TrimSpace(output(t, "go", "env", name)) }

// makeClone clones the commit and makes its release with a command that runs go.
func makeClone(t *testing.T, clone, out string, args, env []string, goCommand ...string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	output(t, "git", "clone", "--quiet", root, clone)
	public, key := testKey()
	command := slices.Concat(goCommand, []string{
		"run", "-C", filepath.Join(clone, "packaging/release"), ".", "-root", clone, "-out", out,
		"-version", testVersion, "-url", testURL, "-public-key", public, "-key", key,
	})
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], args...)...)
	cmd.Env = append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make a release in %s: %v\n%s", clone, err, text)
	}
}

// compareDirs checks that two directories contain the same files with the same bytes.
func compareDirs(t *testing.T, first, second string) {
	t.Helper()
	a, b := checksumsOf(t, first), checksumsOf(t, second)
	for name := range a {
		if a[name] == b[name] {
			continue
		}
		if b[name] == "" {
			t.Errorf("%s was made only once", name)
			continue
		}
		out, _ := exec.CommandContext(context.Background(), "diffoscope", "--max-report-size", "4000",
			filepath.Join(first, name), filepath.Join(second, name)).CombinedOutput()
		t.Errorf("%s differs:\n%s", name, out)
	}
	if len(a) != len(b) || len(a) < 10 {
		t.Errorf("got %d and %d files", len(a), len(b))
	}
}

func checksumsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sums[f.Name()] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return sums
}
