package osservice

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// TestForeignFilesStay checks that no action touches files that a user wrote at the paths of the service.
func TestForeignFilesStay(t *testing.T) {
	const theirs = "[Service]\nExecStart=/usr/bin/mine\n"
	managers := map[string]func(daemon, runner) (m manager, paths []string){
		"systemd": func(d daemon, run runner) (manager, []string) {
			s := newSystemd(d, "", run)
			return s, []string{s.files().list[0].path, s.files().list[1].path}
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
					refusedWith(t, err, problem.CodeServiceFile, path)
					if data, err := os.ReadFile(path); err != nil || string(data) != theirs {
						t.Errorf("after %s: %q, %v; want the file unchanged", action, data, err)
					}
				}
				changed(t, f, "stop", "enable", "bootout")
				entries, err := os.ReadDir(filepath.Dir(path))
				if err != nil || len(entries) != 1 {
					t.Errorf("other files were created: %v, %v", entries, err)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// changed fails the test if one of the commands was sent to the service manager.
func changed(t *testing.T, f *fake, commands ...string) {
	t.Helper()
	asked := strings.Join(f.asked, "\n")
	for _, command := range commands {
		if strings.Contains(asked, command) {
			t.Errorf("asked: %s", asked)
		}
	}
}

// TestForeignLinkStays checks that uninstall keeps a socket link to another program.
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
	refusedWith(t, err, problem.CodeServiceNotInstalled, "not installed")
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
		refusedWith(t, err, problem.CodeServiceFile, "serviced")
		t.Log(action)
		changed(t, f, "/Create", "/Delete", "/End")
	}
}
