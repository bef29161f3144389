//go:build unix

package fileowner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckAncestors(t *testing.T) {
	base := t.TempDir()
	private, open, sticky := filepath.Join(base, "private"), filepath.Join(base, "open"), filepath.Join(base, "sticky")
	for dir, mode := range map[string]os.FileMode{private: 0o755, open: 0o777, sticky: 0o777 | os.ModeSticky} {
		for _, d := range []string{dir, filepath.Join(dir, "own"), filepath.Join(dir, "own", "state")} {
			if err := os.Mkdir(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(private, "link")
	if err := os.Symlink("../open/own", link); err != nil {
		t.Fatal(err)
	}
	for path, unsafe := range map[string]bool{
		filepath.Join(private, "own", "state"):     false,
		filepath.Join(private, "missing", "state"): false,
		filepath.Join(sticky, "own", "state"):      false,
		filepath.Join(sticky, "missing"):           false,
		filepath.Join(open, "own", "state"):        true,
		filepath.Join(open, "own"):                 true,
		filepath.Join(open, "missing", "state"):    true,
		filepath.Join(link, "state"):               true,
		link + "/../own/state":                     true,
		open:                                       false, // the directory itself is not checked
	} {
		for _, uid := range []int{os.Getuid(), 1000} { // root has its own rules
			err := checkAncestors(path, uid)
			var found *Error
			if unsafe && (!errors.As(err, &found) || !strings.Contains(found.Reason, open+" (mode 0777)") || found.Fix != "chmod o-w "+open) {
				t.Errorf("%s as user %d: %#v, want a refusal of %s", path, uid, err, open)
			}
			if !unsafe && err != nil {
				t.Errorf("%s as user %d: %v, want nil", path, uid, err)
			}
		}
	}
}

func TestCheckAncestors_OtherOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: changing a directory's owner needs root")
	}
	dir := filepath.Join(t.TempDir(), "other")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	for uid, want := range map[int]bool{0: true, 1000: false} {
		if err := checkAncestors(state, uid); (err == nil) != want {
			t.Errorf("as user %d: %v", uid, err)
		}
	}
}
