//go:build unix

package fileowner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The id of a user that exists on every system, and the id of a user that exists on none.
const (
	nobody  = 65534
	unknown = 3_000_000_000
)

func TestCheckNew_RefusesRootInAnotherUsersDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may create files in other users' directories")
	}
	t.Setenv("SUDO_UID", "")
	base := t.TempDir()
	dir := func(name string, uid int) string {
		path := filepath.Join(base, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, uid, -1); err != nil {
			t.Fatal(err)
		}
		return path
	}
	theirs, mounted := dir("theirs", nobody), dir("mounted", unknown)
	for path, want := range map[string]bool{
		base + "/new": true, theirs + "/.service": false, theirs + "/a/b/c": false, mounted + "/.service": true,
	} {
		err := CheckNew(path)
		var refused *Error
		if (err == nil) != want || err != nil && (!errors.As(err, &refused) || !strings.Contains(refused.Reason, theirs) ||
			!strings.Contains(refused.Fix, "sudo")) {
			t.Errorf("CheckNew(%s) = %v, want accepted %v", path, err, want)
		}
	}
	t.Setenv("SUDO_UID", "3000000000")
	if CheckNew(mounted+"/.service") == nil {
		t.Error("the directory of the user who called sudo was accepted")
	}
	if got, want := ChownHint(theirs), "sudo chown -R 0 "+theirs; got != want {
		t.Errorf("got hint %q, want %q", got, want)
	}
}
