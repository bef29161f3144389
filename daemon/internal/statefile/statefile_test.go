package statefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/test/reaper"
)

// TestMain also makes this test binary act as the writer that a test kills. It then replaces a file until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("STATEFILE_WRITER"); path != "" {
		for i := 0; ; i++ {
			_ = Write(path, content(i))
		}
	}
	os.Exit(reaper.Run(m.Run))
}

// content returns 64 KB in a form that lets a reader check completeness.
func content(i int) []byte {
	return bytes.Repeat([]byte{byte('a' + i%26)}, 64<<10)
}

func whole(t *testing.T, data []byte) {
	t.Helper()
	if len(data) != 64<<10 || len(bytes.Trim(data, string(data[:1]))) != 0 {
		t.Errorf("read a torn file of %d bytes, want 64 KB from one writer", len(data))
	}
}

func TestWritersReadersAndKills(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "auth.json")
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for j := range 5 {
				if err := Write(path, content(i+j)); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range 5 {
				data, err := Read(path, 1<<20)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					t.Error(err)
					continue
				}
				whole(t, data)
			}
		})
	}
	for range 5 {
		all.Go(func() {
			writer := exec.Command(os.Args[0])
			writer.Env = append(os.Environ(), "STATEFILE_WRITER="+path)
			if err := writer.Start(); err != nil {
				t.Error(err)
				return
			}
			time.AfterFunc(150*time.Millisecond, func() { _ = writer.Process.Kill() })
			_ = writer.Wait()
		})
	}
	all.Wait()
	data, err := Read(path, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, data)
	if err := Sweep(dir, time.Now().Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("files were left in the directory: %v", entries)
	}
}

func TestSweepSparesLivingWriters(t *testing.T) {
	dir := t.TempDir()
	young := filepath.Join(dir, ".auth.json"+tempMark+"1")
	if err := os.WriteFile(young, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("the temporary file of a running writer was deleted")
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip("this file system has no symbolic links:", err)
	}
	if _, err := Read(file, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("above the limit: %v, want ErrTooLarge", err)
	}
	if data, err := Read(file, 5); err != nil || string(data) != "12345" {
		t.Errorf("at the limit: %q %v, want the content", data, err)
	}
	if _, err := Read(link, 100); !errors.Is(err, ErrSymlink) {
		t.Errorf("reading a link: %v, want ErrSymlink", err)
	}
	if err := Write(link, []byte("x")); !errors.Is(err, ErrSymlink) {
		t.Errorf("writing a link: %v, want ErrSymlink", err)
	}
	if data, _ := os.ReadFile(file); string(data) != "12345" {
		t.Errorf("the link's target was changed to %q", data)
	}
	if _, err := Read(dir, 100); err == nil {
		t.Error("Read accepted a directory")
	}
}

func TestCreateHasOneWinner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "install.json")
	var all sync.WaitGroup
	var mu sync.Mutex
	var won []string
	for i := range 20 {
		all.Go(func() {
			text := fmt.Sprint(i)
			err := Create(path, []byte(text))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, text)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	data, err := Read(path, 100)
	if err != nil || len(won) != 1 || won[0] != string(data) {
		t.Errorf("calls that succeeded: %v; the file contains %q, %v; want the content of the only one", won, data, err)
	}
}

func TestEnsureDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes have no effect on this system")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "a", "b")
	if err := EnsureDir(dir); err != nil {
		t.Fatal(err)
	}
	mode := func() fs.FileMode { info, _ := os.Stat(dir); return info.Mode().Perm() }
	if mode() != 0o700 {
		t.Errorf("the directory was created with %04o, want 0700", mode())
	}
	_ = os.Chmod(dir, 0o755)
	if err := EnsureDir(dir); err != nil || mode() != 0o700 {
		t.Errorf("mode 0755 is now %04o, error %v; want 0700", mode(), err)
	}
	_ = os.Chmod(dir, 0o777)
	if err := EnsureDir(dir); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("0777: %v", err)
	}
	link := filepath.Join(root, "link")
	_ = os.Symlink(dir, link)
	if err := EnsureDir(link); !errors.Is(err, ErrSymlink) {
		t.Errorf("EnsureDir on a link: %v, want ErrSymlink", err)
	}
}

// Each change is reported without polling.
func TestWatchSeesEveryWayToChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	path, aside := filepath.Join(dir, "auth.json"), filepath.Join(dir, "auth.json.swp")
	put := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := EnsureDir(dir); err != nil {
		t.Fatal(err)
	}
	w := NewWatch(dir, slog.New(slog.DiscardHandler))
	w.slowPoll = time.Hour
	changed := w.Changed("auth.json")
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	serving.Go(func() { _ = w.Serve(ctx) })
	steps := []struct {
		name string
		do   func()
	}{
		{"created", func() { put(path, "1") }},
		{"in place", func() { put(path, "2") }},
		{"truncated", func() { _ = os.Truncate(path, 0) }},
		{"renamed over", func() { put(aside, "3"); _ = os.Rename(aside, path) }},
		{"replaced", func() { _ = Write(path, []byte("4")) }},
		{"swapped for a link", func() { put(aside, "5"); _ = os.Remove(path); _ = os.Symlink(aside, path) }},
		{"back", func() { _ = os.Remove(path); put(path, "6") }},
		{"deleted", func() { _ = os.Remove(path) }},
		{"again", func() { put(path, "7") }},
		{"directory deleted", func() { _ = os.RemoveAll(dir) }},
		{"directory made again", func() { _ = EnsureDir(dir); put(path, "8") }},
		{"written in the new directory", func() { put(path, "9") }},
		{"directory swapped", func() { _ = os.Rename(dir, dir+".old"); _ = EnsureDir(dir); put(path, "10") }},
	}
	for _, step := range steps {
		step.do()
		select {
		case <-changed:
		case <-time.After(15 * time.Second):
			t.Errorf("%s: no notification within 15 s", step.name)
		}
	}
	select {
	case <-w.Gone():
	default:
		t.Error("the missing directory was not reported")
	}
}

// The mode of a secret file that others can access is restricted before the file is read. The target of a symbolic
// link stays unchanged.
func TestReadPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes have no effect on Windows")
	}
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	for _, mode := range []os.FileMode{0o600, 0o400, 0o640, 0o644, 0o666, 0o601} {
		_ = os.Remove(file)
		if err := errors.Join(os.WriteFile(file, []byte("secret"), 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
		data, before, err := ReadPrivate(file, 100)
		info, _ := os.Stat(file)
		want, now := mode, os.FileMode(0o600)
		if mode&0o077 == 0 {
			want, now = 0, mode
		}
		if err != nil || string(data) != "secret" || before != want || info.Mode().Perm() != now {
			t.Errorf("mode %04o: read %q, before %04o, now %v, error %v; want 0600", mode, data, before, info.Mode(), err)
		}
	}
	if err := errors.Join(os.Chmod(file, 0o644), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	if _, before, err := ReadPrivate(link, 100); !errors.Is(err, ErrSymlink) || before != 0 {
		t.Errorf("a link: before %04o, error %v; want 0 and ErrSymlink", before, err)
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o644 {
		t.Errorf("the mode of the link's target changed to %v, want 0644", info.Mode())
	}
	if _, before, err := ReadPrivate(filepath.Join(dir, "none"), 100); !errors.Is(err, fs.ErrNotExist) || before != 0 {
		t.Errorf("a missing file: before %04o, error %v; want 0 and ErrNotExist", before, err)
	}
}

// Replace changes only a file that still has the expected content and that its owner may write.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "auth.json")
	put := func(text string, mode fs.FileMode) {
		t.Helper()
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		text string
		mode fs.FileMode
		want string
	}{
		"unchanged": {"before", 0o600, ""},
		"changed":   {"theirs", 0o600, "changed in the meantime"},
		"longer":    {"before and more", 0o600, "changed in the meantime"},
		"read-only": {"before", 0o400, "read-only"},
	} {
		put(test.text, test.mode)
		err := Replace(path, []byte("before"), []byte("after"))
		after, _ := os.ReadFile(path)
		if done := err == nil; done != (test.want == "") || !done && !strings.Contains(err.Error(), test.want) ||
			done != (string(after) == "after") {
			t.Errorf("%s: error %v, content %q", name, err, after)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, nil, []byte("after")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v, want ErrNotExist", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("files were left behind: %v", entries)
	}
}
