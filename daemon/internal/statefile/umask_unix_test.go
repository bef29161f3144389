//go:build unix

package statefile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The umask belongs to the process, so this test must not run in parallel with others.
func TestModeUnderAnyUmask(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o777} {
		dir := t.TempDir()
		old := syscall.Umask(mask)
		path := filepath.Join(dir, "auth.json")
		err := Write(path, []byte("x"))
		fresh := filepath.Join(dir, "install.json")
		errFresh := Create(fresh, []byte("x"))
		syscall.Umask(old)
		if err != nil || errFresh != nil {
			t.Fatalf("umask %04o: %v, %v", mask, err, errFresh)
		}
		for _, p := range []string{path, fresh} {
			info, err := os.Stat(p)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("umask %04o: mode %v, error %v; want 0600", mask, info.Mode(), err)
			}
		}
	}
}
