package statefile

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// If another process holds the lock, the error names the file and is not a timeout.
func TestLockOfAnotherIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	inner := false
	err := NewLock(path).Do(func() error {
		err := NewLock(path).Do(func() error { inner = true; return nil })
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
			t.Error(err)
		}
		return nil
	})
	if err != nil || inner {
		t.Error(err, inner)
	}
	if err := NewLock(path).Do(func() error { inner = true; return nil }); err != nil || !inner {
		t.Error("afterwards:", err)
	}
}
