//go:build unix

package app

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/service-dev/service/internal/rendezvous"
)

// short returns a directory whose path is short enough for sockets, and removes it when the test ends.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func paths(t *testing.T, dir string) rendezvous.Paths {
	t.Helper()
	p, err := rendezvous.PathsOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// A directory is refused with a reason if it is a symbolic link, is owned by another user or is writable by others.
// Mode 0755 is restricted.
func TestDirectories(t *testing.T) {
	cases := map[string]struct {
		make func(t *testing.T, dir string)
		want string // part of the error; empty if the directory is accepted
	}{
		"missing": {func(*testing.T, string) {}, ""},
		"0755":    {func(_ *testing.T, d string) { os.Mkdir(d, 0o755) }, ""},
		"0777":    {func(_ *testing.T, d string) { os.Mkdir(d, 0o700); os.Chmod(d, 0o777) }, "other users can write"},
		"0770":    {func(_ *testing.T, d string) { os.Mkdir(d, 0o700); os.Chmod(d, 0o770) }, "other users can write"},
		"a link":  {func(t *testing.T, d string) { os.Symlink(t.TempDir(), d) }, "symbolic link"},
		"a file":  {func(_ *testing.T, d string) { os.WriteFile(d, nil, 0o600) }, " is a file"},
		"run 0777": {func(_ *testing.T, d string) { os.MkdirAll(d+"/run", 0o700); os.Chmod(d+"/run", 0o777) },
			"other users can write"},
		"run a link": {func(t *testing.T, d string) { os.Mkdir(d, 0o700); os.Symlink(t.TempDir(), d+"/run") },
			"symbolic link"},
		"in 0777":   {func(_ *testing.T, d string) { os.Chmod(filepath.Dir(d), 0o777) }, "run chmod o-w"},
		"another's": {func(_ *testing.T, d string) { os.Mkdir(d, 0o700); os.Chown(d, 12345, 12345) }, "another user"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if name == "another's" && os.Getuid() != 0 {
				t.Skip("SKIPPED: changing a directory's owner needs root")
			}
			dir := filepath.Join(short(t), "state")
			c.make(t, dir)
			err := prepareDirs(paths(t, dir))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{dir, dir + "/run", dir + "/log"} {
				if got := mode(t, d); got != 0o700 {
					t.Errorf("%s has mode %o, want 700", d, got)
				}
			}
		})
	}
}

// Sockets whose path would exceed the limit are created in a shorter directory.
func TestLongDirectoryHasShortSockets(t *testing.T) {
	dir := filepath.Join(short(t), strings.Repeat("x", 120))
	t.Setenv("XDG_RUNTIME_DIR", short(t))
	p := paths(t, dir)
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	h, err := acquire(t.Context(), p, Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer h.release()
	if len(p.Control) > rendezvous.MaxSocketPath || mode(t, p.Control) != 0o600 || mode(t, p.Sockets) != 0o700 ||
		len(p.Adapters()) > 70 {
		t.Fatalf("%s %s", p.Control, p.Adapters())
	}
}

// A second daemon in a directory is refused with an error that names the first. The first daemon's sockets stay
// untouched.
func TestSecondDaemonTouchesNothing(t *testing.T) {
	p := paths(t, short(t))
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	h, err := acquire(t.Context(), p, Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(p.Control)
	if _, err := acquire(t.Context(), p, Options{}, time.Now()); !errors.Is(err, ErrRunning) ||
		!strings.Contains(err.Error(), p.Dir) {
		t.Fatalf("got %v", err)
	}
	after, err := os.Stat(p.Control)
	if err != nil || !os.SameFile(before, after) {
		t.Fatal("the socket of the running daemon was replaced or removed")
	}
	conn, err := net.Dial("unix", p.Control)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	h.release()
	for _, path := range []string{p.Control, p.MCP, filepath.Join(p.Run, rendezvous.DaemonRecord)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was left behind: %v", path, err)
		}
	}
	again, err := acquire(t.Context(), p, Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	again.release()
}

// Files that a dead daemon left at the socket paths are replaced.
func TestStaleSocketsAreReplaced(t *testing.T) {
	p := paths(t, short(t))
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{p.Control, p.MCP} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := acquire(t.Context(), p, Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	h.release()
}

func TestDeletedDirectoryIsNoticedAndLeftToItsHeir(t *testing.T) {
	dir := short(t)
	p := paths(t, dir)
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	old, err := acquire(t.Context(), p, Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if old.isLost() {
		t.Fatal("isLost = true for an existing directory")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if !old.isLost() {
		t.Fatal("isLost = false for a deleted directory")
	}
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	heir, err := acquire(t.Context(), p, Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer heir.release()
	if !old.isLost() {
		t.Fatal("isLost = false although another daemon holds the directory")
	}
	old.release()
	conn, err := net.Dial("unix", p.Control)
	if err != nil {
		t.Fatalf("the other daemon's socket is gone: %v", err)
	}
	conn.Close()
}

func TestLostSocketsAreNoticed(t *testing.T) {
	isGone := os.Remove
	foreign := func(path string) error {
		_ = os.Remove(path)
		return os.WriteFile(path, nil, 0o600)
	}
	for name, spoil := range map[string]func(string) error{"gone": isGone, "foreign": foreign} {
		for _, of := range []func(rendezvous.Paths) string{
			func(p rendezvous.Paths) string { return p.Control }, func(p rendezvous.Paths) string { return p.MCP },
		} {
			p := paths(t, short(t))
			if err := prepareDirs(p); err != nil {
				t.Fatal(err)
			}
			h, err := acquire(t.Context(), p, Options{}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if h.isLost() {
				t.Fatal("isLost = true for existing sockets")
			}
			if err := spoil(of(p)); err != nil {
				t.Fatal(err)
			}
			if !h.isLost() {
				t.Errorf("isLost = false although %s is %s", of(p), name)
			}
			h.release()
			_, err = os.Stat(of(p))
			if left := err == nil; left != (name == "foreign") {
				t.Errorf("%s was %s; stat after release: %v", of(p), name, err)
			}
			if _, err := os.Stat(filepath.Join(p.Run, rendezvous.DaemonRecord)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("daemon.json was left behind: %v", err)
			}
		}
	}
}

func TestShortSocketDirectoryIsRemoved(t *testing.T) {
	for name, length := range map[string]int{"of all sockets": 120, "of adapters only": 75} {
		root := short(t)
		t.Setenv("XDG_RUNTIME_DIR", root)
		dir := short(t)
		p := paths(t, filepath.Join(dir, strings.Repeat("x", length-len(dir)-1)))
		begin := func() *instance {
			t.Helper()
			if err := prepareDirs(p); err != nil {
				t.Fatal(err)
			}
			h, err := acquire(t.Context(), p, Options{}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		begin().release()
		if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}

		// Files of other programs are kept.
		h := begin()
		other := filepath.Join(filepath.Dir(p.Adapters()), "other")
		if err := os.WriteFile(other, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		h.release()
		if _, err := os.Stat(other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = os.Remove(other)

		h = begin() // with the state directory deleted
		if err := os.RemoveAll(p.Dir); err != nil {
			t.Fatal(err)
		}
		h.release()
		if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
			t.Errorf("%s, directory deleted: left behind: %v, %v", name, left, err)
		}

		// A successor created the directories before the old daemon removed them.
		if err := prepareDirs(p); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Dir(p.Adapters())); err != nil {
			t.Fatal(err)
		}
		if p.Sockets == p.Run {
			// Only the adapters' directory was removed above.
			continue
		}
		heir, err := acquire(t.Context(), p, Options{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		heir.release()
	}
}

func TestIdleness(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	asked := 0
	adapters := func(busy bool) func() bool { return func() bool { asked++; return busy } }
	i := idleTimer{since: start, limit: 100 * time.Second}
	steps := []struct {
		at      int
		calls   int64
		busy    bool
		adapter bool
		want    bool
	}{
		{50, 0, false, false, false}, {99, 0, false, false, false}, {99, 1, false, false, false}, // one call
		{150, 1, true, false, false},                                // an agent is connected
		{200, 1, false, true, false}, {260, 1, false, false, false}, // a page is open
		{299, 1, false, false, false}, {301, 1, false, false, true},
	}
	for _, s := range steps {
		if got := i.over(at(s.at), s.calls, s.busy, adapters(s.adapter)); got != s.want {
			t.Fatalf("at %d s: over = %v, want %v", s.at, got, s.want)
		}
	}
	if asked > 6 {
		t.Errorf("the adapters were asked %d times, want at most 6", asked)
	}
	never := idleTimer{since: start}
	if never.over(at(1e6), 0, false, adapters(false)) {
		t.Error("a limit of 0 must never be reached")
	}
}

func TestOldLogIsSetAside(t *testing.T) {
	p := paths(t, short(t))
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.Dir, rendezvous.LogDir, rendezvous.LogName)
	if err := os.WriteFile(path, make([]byte, maxLogSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	log, file, err := openLog(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("hello", "authToken", "svc_secret", "n", 1)
	file.Close()
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "svc_secret") || !strings.Contains(string(data), `"n":1`) ||
		mode(t, path) != 0o600 {
		t.Fatalf("%q, %v", data, err)
	}
	if _, err := os.Stat(path + ".1"); err != nil {
		t.Fatal(err)
	}
}

// A client takes the lock briefly to check whether it is held. A daemon that starts at that moment must not be
// refused.
func TestTake_LockHeldForAMoment(t *testing.T) {
	p, err := rendezvous.PathsOf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	client := flock.New(filepath.Join(p.Run, rendezvous.DaemonLock))
	if err := client.Lock(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(20*time.Millisecond, func() { _ = client.Unlock() }).Stop()
	h, err := acquire(t.Context(), p, Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	h.release()
}
