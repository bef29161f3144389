package telemetry

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A full disk leaves no partial line behind.
func TestFullDiskLeavesWholeLines(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16k"); err != nil {
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
	path := filepath.Join(dir, "x.jsonl")
	text := strings.Repeat("x", 900) + "\n"
	n := 0
	for ; n < 100; n++ {
		if err := appendLine(path, []byte(text)); err != nil {
			break
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || n == 100 || len(data) != n*len(text) {
		t.Errorf("%d bytes with %d lines, error %v; want only complete lines", len(data), n, err)
	}
}
