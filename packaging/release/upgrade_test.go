package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// nextVersion is the version that the tests in test/e2e upgrade to.
const nextVersion = "9.0.0"

// TestPackage_UpgradesUnderWork runs the tests in test/e2e that use, upgrade, remove and partly install a package, as
// root of an overlay of this machine's root, with the packages of two versions.
func TestPackage_UpgradesUnderWork(t *testing.T) {
	requireRoot(t)
	require(t, map[string]string{"gcc": "gcc"})
	dir := copyFiles(t, map[string]string{"old.deb": artefactOf(t, "service-toolkit_*_amd64.deb"), "new.deb": nextDeb(t)})
	output(t, "go", "build", "-C", "../..", "-o", dir+"/", "./examples/apps/desk-go")
	runPackageTests(t, dir, "TestPackage_UpgradesUnderWork", "TestPackage_IsRemovedUnderWork",
		"TestPackage_SurvivesAKilledInstallation", "TestPackage_IsUsedByReadmeAlone")
}

// TestGRPCPackage_UpgradesUnderWork upgrades the package of lastGRPC to the present one, and back.
func TestGRPCPackage_UpgradesUnderWork(t *testing.T) {
	requireRoot(t)
	source := lastGRPCSource(t)
	out := filepath.Join(t.TempDir(), "old")
	// The commit's own program makes its package.
	output(t, "go", "run", "-C", filepath.Join(source, "packaging", "release"), ".", "-root", source, "-out", out,
		"-version", "0.8.0", "-targets", "linux-amd64", "-only", "service-toolkit_*.deb")
	// The adapter of its documentation.
	page, err := os.ReadFile(filepath.Join(source, "proto", "docs", "pages", "adapters.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```go adapter\n")
	code, _, _ = strings.Cut(code, "\n```")
	if err := os.Mkdir(filepath.Join(source, "my-glasses"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(source, "my-glasses", "main.go"), code); err != nil {
		t.Fatal(err)
	}
	adapter := filepath.Join(out, "my-glasses")
	output(t, "go", "build", "-C", source, "-o", adapter, "./my-glasses")
	runPackageTests(t, copyFiles(t, map[string]string{
		"old.deb": filepath.Join(out, "service-toolkit_0.8.0-1_amd64.deb"),
		"new.deb": artefactOf(t, "service-toolkit_*_amd64.deb"), "my-glasses": adapter,
	}), "TestGRPCPackage_UpgradesUnderWork")
}

// TestBackend_UpgradesAndDowngrades runs the test in test/e2e of the same name, with the server of lastGRPC and
// that of the server's package.
func TestBackend_UpgradesAndDowngrades(t *testing.T) {
	old := filepath.Join(t.TempDir(), "service-backend")
	output(t, "go", "build", "-C", lastGRPCSource(t), "-o", old, "./backend/service-backend")
	program, err := packageTests()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	output(t, "dpkg-deb", "-x", artefactOf(t, "service-backend_*_amd64.deb"), root)
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run", "^"+t.Name()+"$")
	cmd.Dir = filepath.Join("..", "..", "test", "e2e")
	cmd.Env = append(os.Environ(), "SERVICE_E2E_BIN="+filepath.Join(root, "usr", "bin"), "SERVICE_E2E_OLD_BACKEND="+old)
	if printed, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(printed), "--- PASS: "+t.Name()+" ") {
		t.Errorf("%v\n%s", err, printed)
	}
}

// lastGRPC is a commit whose control API is gRPC.
const lastGRPC = "6ad08dd2ddacd6afa76606cf31d0ff72ba82c8a0"

// lastGRPCSource returns a clone of this repository with the files of lastGRPC. Without the history, as in a shallow
// clone, it skips the test.
func lastGRPCSource(t *testing.T) string {
	t.Helper()
	if exec.CommandContext(t.Context(), "git", "cat-file", "-e", lastGRPC+"^{commit}").Run() != nil {
		if strings.TrimSpace(output(t, "git", "rev-parse", "--is-shallow-repository")) == "true" {
			t.Skipf("SKIPPED, this shallow clone lacks the commit %s: git fetch --unshallow", lastGRPC)
		}
		t.Fatalf("this repository has its history, but lacks the commit %s", lastGRPC)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "source")
	output(t, "git", "clone", "--quiet", "--shared", "--no-checkout", root, dir)
	output(t, "git", "-C", dir, "checkout", "--quiet", "--detach", lastGRPC)
	return dir
}

// runPackageTests runs tests of test/e2e as root of an overlay of this machine's root, with the files of dir.
func runPackageTests(t *testing.T, dir string, tests ...string) {
	t.Helper()
	program, err := packageTests()
	if err != nil {
		t.Fatal(err)
	}
	output(t, "cp", program, filepath.Join(dir, "e2e.test"))
	printed, _ := inRoot(t, "upgrade.sh", dir, "^("+strings.Join(tests, "|")+")$")
	for _, test := range tests {
		if !strings.Contains(printed, "--- PASS: "+test+" ") {
			t.Errorf("%s did not run", test)
		}
	}
}

// packageTests builds the tests of test/e2e with the tag release on the first call.
var packageTests = sync.OnceValues(func() (string, error) {
	program := filepath.Join(scratch, "e2e.test")
	out, err := exec.CommandContext(context.Background(), "go", "test", "-C", "../..", "-c", "-tags", "release", "-o", program,
		"./test/e2e").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build the tests of packages: %w\n%s", err, out)
	}
	return program, err
})

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
