package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nextVersion is the version that the tests of packaging/e2e upgrade to.
const nextVersion = "9.0.0"

// TestK04_UpgradeRemovalAndKilledInstallation runs K-4, K-5 and K-6: the tests of packaging/e2e with the tag release, as
// root of an overlay of this machine's root, with the packages of two versions.
func TestK04_UpgradeRemovalAndKilledInstallation(t *testing.T) {
	requireRoot(t)
	require(t, map[string]string{"unshare": "util-linux", "dpkg": "dpkg", "gcc": "gcc"})
	goods := t.TempDir()
	output(t, "go", "build", "-C", "../..", "-o", goods+"/", "./packaging/e2e/testdata/apps/desk-go")
	output(t, "go", "test", "-C", "../..", "-c", "-tags", "release", "-o", filepath.Join(goods, "e2e.test"), "./packaging/e2e")
	place := t.TempDir()
	const script = `set -eu
place=$1 goods=$2 old=$3 new=$4 e2e=$5
mount -t tmpfs tmpfs "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$place/root"
mount -t proc proc "$place/root/proc"
mount --rbind /dev "$place/root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$place/root/tmp"
mkdir "$place/root/release-test"
cp "$goods"/* "$place/root/release-test/"
cp "$old" "$place/root/release-test/old.deb"
cp "$new" "$place/root/release-test/new.deb"
export SERVICE_E2E_BIN=/usr/lib/service SERVICE_E2E_OLD_DEB=/release-test/old.deb SERVICE_E2E_NEW_DEB=/release-test/new.deb
chroot "$place/root" sh -c 'cd "$1" && exec /release-test/e2e.test -test.v -test.run "^TestPackage_" -test.timeout 20m' sh "$e2e"
`
	e2e, err := filepath.Abs("../e2e")
	if err != nil {
		t.Fatal(err)
	}
	out := output(t, "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", place, goods,
		artefactOf(t, "service-toolkit_*_amd64.deb"), nextDeb(t), e2e)
	t.Log(out)
	for _, test := range []string{"UpgradesUnderWork", "IsRemovedUnderWork", "SurvivesAKilledInstallation"} {
		if !strings.Contains(out, "--- PASS: TestPackage_"+test) {
			t.Errorf("TestPackage_%s did not run", test)
		}
	}
}

// nextDeb makes the package of the toolkit again, as nextVersion.
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
