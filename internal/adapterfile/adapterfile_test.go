package adapterfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestInspect_ResolvesLinksAndReadsTheFile(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(dir, "program"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("abc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	got, err := Inspect(link)
	if err != nil || got.Path != file || got.Owner == "" ||
		got.SHA256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := Inspect(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Inspect(%s): %v", path, err)
		}
	}
}

func TestApprove_IsPrivateAndIsWithdrawn(t *testing.T) {
	dir := t.TempDir()
	f := File{Path: "/opt/glasses", SHA256: strings.Repeat("ab", 32)}
	withdraw, err := Approve(dir, f)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ApprovalName)
	data, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(data) != string(f.Approval()) || info.Mode().Perm() != 0o600 {
		t.Fatalf("%q, mode %v, %v, %v", data, info.Mode(), err, statErr)
	}
	withdraw()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := Approve(filepath.Join(dir, "missing"), f); err == nil {
		t.Error("approved in a folder that does not exist")
	}
}
