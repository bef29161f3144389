package statefile

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// A second holder gets an error that names the file, and not one about time.
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
