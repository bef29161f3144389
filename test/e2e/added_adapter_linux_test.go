package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/service-dev/service/test/ownadapter"
)

// An agent that can write to the folder of an added adapter replaces the program right after the daemon has checked
// it. The daemon never runs the replacement.
func TestAddedAdapter_CannotBeExchangedAfterItsCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	source, err := ownadapter.Source()
	if err != nil {
		t.Fatal(err)
	}
	program, err := ownadapter.Build(filepath.Join("..", ".."), t.TempDir(), source, nil)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, code := w.ctl("plugin", "add", "--yes", program); code != 0 {
		t.Fatalf("plugin add: %s%s", out, errs)
	}
	name := filepath.Base(program)
	marker := filepath.Join(t.TempDir(), "ran")
	for what, event := range map[string]uint32{"opened": unix.IN_OPEN, "closed": unix.IN_CLOSE_NOWRITE} {
		for range 3 {
			w.ctl("daemon", "stop") // so that the next session starts the adapter again
			replaceFile(t, program, good)
			swapped := exchangeWhen(t, program, event, "#!/bin/sh\ntouch '"+marker+"'\n")
			w.ctl("tool", "call", "startLocalSimulation", "--arg", "transport="+name)
			select {
			case <-swapped:
			case <-time.After(15 * time.Second):
				t.Fatalf("the daemon has not %s the program", what)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Fatalf("the daemon ran a program that was exchanged when the approved one was %s", what)
			}
		}
	}
	w.ctl("daemon", "stop")
	replaceFile(t, program, []byte("#!/bin/sh\ntouch '"+marker+"'\n"))
	out, errs, _ := w.ctl("tool", "call", "startLocalSimulation", "--arg", "transport="+name)
	if !strings.Contains(out+errs, "is not the file that was added") {
		t.Errorf("a changed program is not reported: %s%s", out, errs)
	}
	w.ctl("daemon", "stop")
	replaceFile(t, program, good)
	if out, errs, code := w.ctl("tool", "call", "startLocalSimulation", "--arg", "transport="+name); code != 0 {
		t.Errorf("the approved program does not run: %s%s", out, errs)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the daemon ran the changed program")
	}
	if entries, _ := os.ReadDir(filepath.Join(w.dir, "adapters")); len(entries) != 1 {
		t.Errorf("%d copies for one adapter", len(entries))
	}
	if out, errs, code := w.ctl("plugin", "remove", "--yes", name); code != 0 {
		t.Errorf("plugin remove: %s%s", out, errs)
	}
	if entries, _ := os.ReadDir(filepath.Join(w.dir, "adapters")); len(entries) != 0 {
		t.Errorf("a copy of a removed adapter is left: %v", entries)
	}
}

// replaceFile atomically replaces an executable file.
func replaceFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o700); err != nil {
		t.Error(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Error(err)
	}
}

// exchangeWhen replaces a file at its first event of the given kind. The returned channel is closed once the file is
// replaced.
func exchangeWhen(t *testing.T, path string, event uint32, text string) <-chan struct{} {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, path, event)
	}
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer unix.Close(fd)
		var buffer [4096]byte
		if _, err := unix.Read(fd, buffer[:]); err == nil {
			_ = os.Rename(path+".new", path)
		}
	}()
	return done
}
