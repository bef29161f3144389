//go:build unix

package programpath

import (
	"os"
	"path/filepath"
	"testing"
)

// A link that another user created or could redirect is not registered with other software.
func TestStable_RefusesLinksOfOthers(t *testing.T) {
	const nobody = 65534
	for _, c := range []struct {
		name, path string // path gets the wrong owner or mode
		owner      int
		mode       os.FileMode // 0: unchanged
		want       string
	}{
		{name: "as installed", path: "bin", want: "bin/service-mcp"},
		{name: "a folder that all may write", path: "bin", mode: 0o777, want: "svc/service-mcp"},
		{name: "such a folder with the sticky bit", path: "bin", mode: 0o777 | os.ModeSticky, want: "svc/service-mcp"},
		{name: "a folder above that all may write", path: ".", mode: 0o777, want: "svc/service-mcp"},
		{name: "a sticky folder above", path: ".", mode: 0o777 | os.ModeSticky, want: "bin/service-mcp"},
		{name: "another's folder", path: "bin", owner: nobody, want: "svc/service-mcp"},
		{name: "another's link", path: "bin/service-mcp", owner: nobody, want: "svc/service-mcp"},
		{name: "another's link on the way", path: "links/service-mcp", owner: nobody, want: "svc/service-mcp"},
		{name: "a folder on the way that all may write", path: "links", mode: 0o777, want: "svc/service-mcp"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.owner != 0 && os.Getuid() != 0 {
				t.Skip("SKIPPED: changing a file's owner needs root")
			}
			root := folder(t, "x", `
				svc/service-mcp
				links/service-mcp -> ../svc/service-mcp
				bin/service-mcp -> ../links/service-mcp`)
			path := filepath.Join(root, c.path)
			if c.owner != 0 {
				if err := os.Lchown(path, c.owner, c.owner); err != nil {
					t.Fatal(err)
				}
			}
			if c.mode != 0 {
				if err := os.Chmod(path, c.mode); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(root, "svc/service-mcp")
			if got, want := newInstallation(file, file, nil).stable("service-mcp"), filepath.Join(root, c.want); got != want {
				t.Errorf("register %s, want %s", got, want)
			}
		})
	}
}

// Links of the program's owner are accepted, because that user could replace the program anyway, e.g. if another user
// installed Homebrew.
func TestStable_AcceptsLinksOfTheProgramsOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: changing a file's owner needs root")
	}
	root := folder(t, "x", "svc/service-mcp\nbin/service-mcp -> ../svc/service-mcp")
	for _, path := range []string{"svc", "svc/service-mcp", "bin", "bin/service-mcp"} {
		if err := os.Lchown(filepath.Join(root, path), 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(root, "svc/service-mcp")
	want := filepath.Join(root, "bin/service-mcp")
	if got := newInstallation(file, file, nil).stable("service-mcp"); got != want {
		t.Errorf("register %s, want %s", got, want)
	}
}
