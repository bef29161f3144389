package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestK03_Lintian requires that lintian finds neither errors nor warnings. What is overridden is in files/lintian, with
// reasons.
func TestK03_Lintian(t *testing.T) {
	require(t, map[string]string{"lintian": "lintian"})
	for _, name := range []string{"service-toolkit", "service-backend"} {
		cmd := exec.CommandContext(t.Context(), "lintian", "--fail-on", "error,warning", artefactOf(t, name+"_*_amd64.deb"))
		if out, err := cmd.Output(); err != nil || len(out) > 0 {
			t.Errorf("lintian: %v\n%s", err, out)
		}
	}
}

func TestK03_RPMLint(t *testing.T) {
	require(t, map[string]string{"rpmlint": "rpmlint"})
	for _, name := range []string{"service-toolkit", "service-backend"} {
		out, err := exec.CommandContext(t.Context(), "rpmlint", "--config", "testdata/rpmlint.toml",
			artefactOf(t, name+"-*.x86_64.rpm")).CombinedOutput()
		if err != nil || !strings.Contains(string(out), " 0 errors") {
			t.Errorf("rpmlint: %v\n%s", err, out)
		}
	}
}

// TestK03_ManPages requires that groff understands every page of the archive, and that each names itself.
func TestK03_ManPages(t *testing.T) {
	require(t, map[string]string{"man": "man-db"})
	dir := t.TempDir()
	output(t, "tar", "-xzf", artefactOf(t, "service-*-linux-amd64.tar.gz"), "-C", dir, "--strip-components=1")
	pages, err := filepath.Glob(filepath.Join(dir, "man", "*.1"))
	if err != nil || len(pages) < 50 {
		t.Fatalf("found %d man pages, %v", len(pages), err)
	}
	for _, page := range pages {
		cmd := exec.CommandContext(t.Context(), "man", "--warnings", "-P", "cat", "-l", page)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "MANWIDTH=80")
		var warnings strings.Builder
		cmd.Stderr = &warnings
		text, err := cmd.Output()
		if name := strings.TrimSuffix(filepath.Base(page), ".1"); err != nil || warnings.Len() > 0 || !strings.Contains(string(text), name) {
			t.Errorf("%s: %v %s", name, err, warnings.String())
		}
	}
}

// TestK03_Units verifies every packaged unit as systemd reads it, with the programs where the packages put them.
func TestK03_Units(t *testing.T) {
	require(t, map[string]string{"systemd-analyze": "systemd", "dpkg-deb": "dpkg"})
	requireRoot(t)
	root := t.TempDir()
	for _, name := range []string{"service-toolkit", "service-backend"} {
		output(t, "dpkg-deb", "-x", artefactOf(t, name+"_*_amd64.deb"), root)
	}
	// verify wants the programs: the packages' /usr lies over the machine's in a namespace of its own.
	const script = `set -eu
mount -t tmpfs tmpfs /media
mkdir /media/upper /media/work
mount -t overlay overlay -o "lowerdir=$1/usr:/usr,upperdir=/media/upper,workdir=/media/work" /usr
export XDG_RUNTIME_DIR=/media
systemd-analyze --man=no verify /usr/lib/systemd/system/service-backend.service
systemd-analyze --man=no --user verify /usr/lib/systemd/user/serviced.service /usr/lib/systemd/user/serviced.socket
`
	if out := output(t, "unshare", "--mount", "sh", "-c", script, "sh", root); strings.TrimSpace(out) != "" {
		t.Errorf("systemd-analyze verify prints:\n%s", out)
	}
	output(t, "systemd-analyze", "--no-pager", "security", "--offline=yes", "--threshold=30",
		filepath.Join(root, "usr/lib/systemd/system/service-backend.service"))
}

// TestK03_UnitsAreThoseOfServiceInstall requires that the packaged units say what the templates of `service install` do,
// and that no placeholder is left.
func TestK03_UnitsAreThoseOfServiceInstall(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"service-toolkit", "service-backend"} {
		output(t, "dpkg-deb", "-x", artefactOf(t, name+"_*_amd64.deb"), root)
	}
	for unit, template := range map[string]string{
		"usr/lib/systemd/user/serviced.service":          "daemon/internal/osservice/templates/serviced.service",
		"usr/lib/systemd/user/serviced.socket":           "daemon/internal/osservice/templates/serviced.socket",
		"usr/lib/systemd/system/service-backend.service": "backend/internal/osservice/templates/systemd.service",
	} {
		want, err := os.ReadFile(filepath.Join("../..", template))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(root, unit))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(got), "{{") || strings.Contains(string(got), "Written by") {
			t.Errorf("%s is not adapted:\n%s", unit, got)
		}
		for line := range strings.Lines(string(want)) {
			if !strings.Contains(line, "{{") && !strings.HasPrefix(line, "#") && !strings.Contains(string(got), line) {
				t.Errorf("%s lacks %s", unit, line)
			}
		}
	}
}
