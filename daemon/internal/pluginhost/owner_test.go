//go:build unix

package pluginhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
)

// An adapter that another user could replace is not run. The refusal names the path, its mode and the command that
// fixes it.
func TestAnAdapterThatOthersCouldReplaceIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		path string // the path with the wrong owner or mode, relative to the parent of the adapters' folder
		mode os.FileMode
		own  bool // whether the owner or group is wrong
		uid  int
		gid  int
		fix  string // empty if the adapter runs
		said string
	}{
		{name: "as it was installed", path: ".", mode: 0o755},
		{name: "a sticky folder above", path: ".", mode: 0o777 | os.ModeSticky},
		{name: "another's sticky folder above", path: ".", mode: 0o777 | os.ModeSticky, own: true, uid: unusedUID,
			fix: "sudo chown", said: "belongs to user 65534"},
		{name: "a folder above that all may write", path: ".", mode: 0o777, fix: "chmod o-w", said: "mode 0777"},
		{name: "the folder", path: "bin", mode: 0o757, fix: "chmod o-w", said: "mode 0757"},
		{name: "the folder, sticky", path: "bin", mode: 0o777 | os.ModeSticky, fix: "chmod o-w", said: "mode 0777"},
		{name: "the binary", path: "bin/" + program, mode: 0o757, fix: "chmod o-w", said: "mode 0757"},
		{name: "the manifest", path: "bin/" + Manifest, mode: 0o646, fix: "chmod o-w", said: "mode 0646"},
		{name: "another's folder above", path: ".", mode: 0o755, own: true, uid: unusedUID, fix: "sudo chown",
			said: "belongs to user 65534"},
		{name: "another's folder", path: "bin", mode: 0o755, own: true, uid: unusedUID, fix: "sudo chown",
			said: "belongs to user 65534"},
		{name: "another's binary", path: "bin/" + program, mode: 0o755, own: true, uid: unusedUID, fix: "sudo chown",
			said: "belongs to user 65534"},
		{name: "another's manifest", path: "bin/" + Manifest, mode: 0o644, own: true, uid: unusedUID, fix: "sudo chown",
			said: "belongs to user 65534"},
		{name: "a group of others", path: "bin/" + program, mode: 0o775, own: true, gid: unusedUID, fix: "chmod g-w",
			said: "group 65534"},
		{name: "a folder of others' group", path: "bin", mode: 0o775, own: true, gid: unusedUID, fix: "chmod g-w",
			said: "group 65534"},
		{name: "a group of others that may only read", path: "bin/" + program, mode: 0o755, own: true, gid: unusedUID},
		{name: "one's own group", path: "bin/" + program, mode: 0o775},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.own && os.Getuid() != 0 {
				if os.Getenv("CI") == "true" {
					t.Fatal("changing a file's owner needs root")
				}
				t.Skip("SKIPPED: changing a file's owner needs root")
			}
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(root, "bin")
			if err := os.Rename(install(t), dir); err != nil {
				t.Fatal(err)
			}
			h, _ := serve(t, dir)
			path := filepath.Join(root, c.path)
			if c.own {
				if err := os.Chown(path, c.uid, c.gid); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			_, err = h.Health(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
			p := code(t, err)
			wrong := h.Check()[HTTP]
			if c.fix == "" {
				if p.Code == problem.CodeAdapterUnavailable || wrong != nil {
					t.Errorf("%+v, %v", p, wrong)
				}
				return
			}
			if p.Code != problem.CodeAdapterUnavailable || !strings.Contains(p.Message, path+" (mode") ||
				!strings.Contains(p.Message, c.said) ||
				!strings.Contains(p.FixHint, c.fix) || !strings.Contains(p.FixHint, path) {
				t.Errorf("%+v", p)
			}
			if wrong == nil || FixHint(wrong) != p.FixHint {
				t.Errorf("Check: %v, %s", wrong, FixHint(wrong))
			}
			if got := h.Plugins()[0]; got.State != Refused {
				t.Errorf("%+v", got)
			}
		})
	}
}
