package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnits_PassSystemdAnalyze verifies every packaged unit with systemd-analyze, with the programs at their
// installed paths.
func TestUnits_PassSystemdAnalyze(t *testing.T) {
	require(t, map[string]string{"systemd-analyze": "systemd", "dpkg-deb": "dpkg"})
	requireRoot(t)
	root := t.TempDir()
	for _, name := range []string{"service-toolkit", "service-backend"} {
		output(t, "dpkg-deb", "-x", artefactOf(t, name+"_*_amd64.deb"), root)
	}
	// verify needs the programs, so the packages' /usr is mounted over the machine's in a private namespace.
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

// TestUnits_MatchTemplates checks that the packaged units match the templates of `service install`, and that no
// placeholder is left.
func TestUnits_MatchTemplates(t *testing.T) {
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
