package statefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// When the disk is full, the old content stays complete and no partial file is left.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		if errors.Is(err, fs.ErrPermission) && os.Getenv("CI") != "true" {
			t.Skip("SKIPPED: mounting a small disk needs root")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "auth.json")
	if err := Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte(strings.Repeat("x", 200<<10))); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing to a full disk: %v, want ENOSPC", err)
	}
	if data, err := Read(path, 100); err != nil || string(data) != "old" {
		t.Errorf("read after the failed write: %q, %v; want the old content", data, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("files were left behind: %v, %v", entries, err)
	}
	if err := Write(path, []byte("new")); err != nil {
		t.Errorf("after freeing space: %v, want no error", err)
	}
}
