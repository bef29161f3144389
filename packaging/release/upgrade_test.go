package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nextVersion is the version that the tests in test/e2e upgrade to.
const nextVersion = "9.0.0"

// TestPackage_UpgradesUnderWork runs the tests in test/e2e that use, upgrade, remove and partly install a package, as
// root of an overlay of this machine's root, with the packages of two versions.
func TestPackage_UpgradesUnderWork(t *testing.T) {
	require(t, map[string]string{"gcc": "gcc"})
	dir := copyFiles(t, map[string]string{"old.deb": artefactOf(t, "service-toolkit_*_amd64.deb"), "new.deb": nextDeb(t)})
	output(t, "go", "build", "-C", "../..", "-o", dir+"/", "./examples/apps/desk-go")
	program := filepath.Join(dir, "e2e.test")
	output(t, "go", "test", "-C", "../..", "-c", "-tags", "release", "-o", program, "./test/e2e")
	printed, _ := inRoot(t, "upgrade.sh", dir)
	for _, test := range []string{
		"UpgradesUnderWork", "IsRemovedUnderWork", "SurvivesAKilledInstallation", "IsUsedByReadmeAlone",
	} {
		if !strings.Contains(printed, "--- PASS: TestPackage_"+test) {
			t.Errorf("TestPackage_%s did not run", test)
		}
	}
}

// nextDeb builds the toolkit package again as nextVersion.
func nextDeb(t *testing.T) string {
	t.Helper()
	r, err := newRelease(context.Background(), options{
		root: "../..", out: filepath.Join(t.TempDir(), "next"), version: nextVersion, targets: "linux-amd64",
		only: "service-toolkit_*.deb", dirty: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.makeAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(r.out, "*.deb"))
	if err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	if _, err := os.Stat(made[0]); err != nil {
		t.Fatal(err)
	}
	return made[0]
}
