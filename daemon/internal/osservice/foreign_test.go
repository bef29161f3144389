package osservice

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForeignFilesStay: what the person wrote themselves under our names is neither changed nor removed, nor taken for
// our service, and nothing of theirs is stopped.
func TestForeignFilesStay(t *testing.T) {
	const theirs = "[Service]\nExecStart=/usr/bin/mine\n"
	managers := map[string]func(daemon, runner) (m manager, paths []string){
		"systemd": func(d daemon, run runner) (manager, []string) {
			s := newSystemd(d, "", run)
			return s, []string{s.files()[0].path, s.files()[1].path}
		},
		"launchd": func(d daemon, run runner) (manager, []string) {
			l := newLaunchd(d, 501, run)
			return l, []string{l.path}
		},
	}
	for name, make := range managers {
		d := here(t)
		f := &fake{}
		m, paths := make(d, f.run)
		for _, path := range paths {
			t.Run(name+" "+filepath.Base(path), func(t *testing.T) {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(theirs), 0o600); err != nil {
					t.Fatal(err)
				}
				f.asked = nil
				for action, do := range actions(m) {
					_, err := do(t.Context())
					refusedWith(t, err, CodeFile, path)
					if data, err := os.ReadFile(path); err != nil || string(data) != theirs {
						t.Errorf("%s: the file is %q, %v", action, data, err)
					}
				}
				if got := strings.Join(f.asked, "\n"); strings.Contains(got, "stop") || strings.Contains(got, "enable") || strings.Contains(got, "bootout") {
					t.Errorf("asked: %s", got)
				}
				entries, err := os.ReadDir(filepath.Dir(path))
				if err != nil || len(entries) != 1 {
					t.Errorf("beside it: %v, %v", entries, err)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestForeignLinkStays: a link that another program made for its own socket of our name is not ours to remove.
func TestForeignLinkStays(t *testing.T) {
	s := newSystemd(here(t), "", (&fake{}).run)
	wants := filepath.Join(s.dir, "sockets.target.wants")
	if err := os.MkdirAll(wants, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(wants, s.socket())
	if err := os.Symlink("/usr/lib/systemd/user/serviced.socket", link); err != nil {
		t.Fatal(err)
	}
	_, err := s.uninstall(t.Context())
	refusedWith(t, err, CodeNotInstalled, "not installed")
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
}

func TestForeignTaskStays(t *testing.T) {
	d := here(t)
	theirs := strings.Replace(taskXML(d, "x"), taskSign, "Mine", 1)
	f := &fake{answers: map[string]outcome{"schtasks /Query": {out: theirs}}}
	for action, do := range actions(newScheduler(d, "x", f.run)) {
		_, err := do(t.Context())
		refusedWith(t, err, CodeFile, "serviced")
		if got := strings.Join(f.asked, "\n"); strings.Contains(got, "/Create") || strings.Contains(got, "/Delete") || strings.Contains(got, "/End") {
			t.Errorf("%s: asked %s", action, got)
		}
	}
}
