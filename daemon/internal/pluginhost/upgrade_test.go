package pluginhost

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/programpath"
)

// While an upgrade replaces the files one after the other, a call gets a retryable error. If the files are still from
// different versions after a minute, the user must act. The package's files have old modification times.
func TestMismatchOfYoungFilesIsRetryable(t *testing.T) {
	t.Parallel()
	built := time.Now().AddDate(-1, 0, 0)
	next := []byte("#!/bin/sh\nexit 1\n")
	half := map[string]func(t *testing.T, dir string){
		"the adapter is new, the manifest old": func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, program), next, 0o755, built)
		},
		"the manifest is new, the adapter old": func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, Manifest), []byte(strings.Repeat("0", 64)+"  "+program+"\n"), 0o644, built)
		},
		"the adapter is not there yet": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, program)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, spoil := range half {
		t.Run(name, func(t *testing.T) {
			dir := install(t)
			spoil(t, dir)
			var late atomic.Int64 // how far the clock is ahead
			h, _ := serveAt(t, dir, func() time.Time { return time.Now().Add(time.Duration(late.Load())) })
			srv := httptest.NewServer(http.HandlerFunc(healthy))
			defer srv.Close()
			target := backend.Target{BaseURL: srv.URL, InstallID: "i"}
			ask := func() *problem.Error {
				_, err := h.Health(t.Context(), target)
				return code(t, err)
			}
			if p := ask(); !p.Retryable || p.Code != problem.CodeAdapterUnavailable || p.RetryAfter <= 0 ||
				!strings.Contains(p.Message, "an upgrade is being installed") || !strings.Contains(p.FixHint, "Try again") {
				t.Errorf("in the middle of the upgrade: %+v, want a retryable error", p)
			}
			if err := h.Check()[HTTP]; !IsUpgrading(err) {
				t.Errorf("Check: %v, want an upgrade in progress", err)
			}
			late.Store(int64(upgradeWindow))
			if p := ask(); p.Retryable || p.FixHint != reinstall {
				t.Errorf("a minute later: %+v, want the refusal", p)
			}
			if err := h.Check()[HTTP]; err == nil || IsUpgrading(err) {
				t.Errorf("Check: %v, want the refusal", err)
			}
			late.Store(-int64(upgradeWindow) * 2)
			if p := ask(); p.Retryable {
				t.Errorf("with a clock that was set back: %+v, want the refusal", p)
			}
			whole := install(t)
			for _, file := range []string{program, Manifest} {
				if err := os.Rename(filepath.Join(whole, file), filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := h.Health(t.Context(), target); err != nil {
				t.Errorf("after the upgrade: %v", err)
			}
		})
	}
}

// An upgrade may remove the running version. The daemon hands over to the next one unless an app is attached; then the
// user decides.
func TestRemovedFolder_SaysHowToSwitch(t *testing.T) {
	t.Parallel()
	dir := install(t)
	h, _ := serveAt(t, dir, time.Now)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, err := h.Health(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
	if p := code(t, err); !p.Retryable || !strings.Contains(p.FixHint, "servicectl daemon restart") {
		t.Errorf("%+v, want a retryable error that names the restart", p)
	}
}

// A file that any user could replace is refused even while it is recent.
func TestUnsafeYoungFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := install(t)
	if err := os.Chmod(filepath.Join(dir, program), 0o757); err != nil {
		t.Fatal(err)
	}
	h, _ := serveAt(t, dir, time.Now)
	_, err := h.Health(t.Context(), backend.Target{BaseURL: "http://127.0.0.1:1", InstallID: "i"})
	if p := code(t, err); p.Retryable {
		t.Errorf("%+v, want the refusal", p)
	}
}

// put replaces a file as package managers do: by renaming a new file whose modification time is its build time.
func put(t *testing.T, path string, data []byte, mode os.FileMode, built time.Time) {
	t.Helper()
	write(t, path+".new", data, mode)
	if err := os.Chtimes(path+".new", built, built); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// Versions differ in which adapters have their own files. A running daemon follows an upgrade from one layout to the
// other, and ignores files that the other version left behind.
func TestUpgrade_ChangesTheFileOfAnAdapter(t *testing.T) {
	t.Parallel()
	dir := install(t)
	own := filepath.Join(dir, "service-plugin-"+HTTP)
	write(t, own, []byte("#!/bin/sh\nexit 1\n"), 0o755)
	h, _ := serve(t, dir)
	path := func() string { return h.Plugins()[0].Path }
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()

	list(t, dir, filepath.Base(own))
	if path() != own {
		t.Errorf("%s is the adapter's file, want the one that the manifest lists", path())
	}
	list(t, dir, program)
	if want := filepath.Join(dir, program); path() != want {
		t.Errorf("%s is the adapter's file, want %s", path(), want)
	}
	if err := h.Check()[HTTP]; err != nil {
		t.Errorf("a file that was left behind: %v", err)
	}
	if _, err := h.Health(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "i"}); err != nil {
		t.Errorf("a file that was left behind: %v", err)
	}
}

// Shipped adapters are links to serviced. Adapters that are built as separate programs also run if the manifest lists
// them.
func TestShipped_RunAsLinksAndAlone(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	var names []string
	for _, name := range shipped() {
		names = append(names, programpath.AdapterPrefix+name)
	}
	links := install(t)
	for _, name := range names {
		if err := os.Symlink(program, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	alone := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", alone, "../../../plugins/...")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the adapters: %v\n%s", err, out)
	}
	for _, dir := range []string{links, alone} {
		list(t, dir, names...)
		h, _ := serve(t, dir)
		for i, p := range h.Plugins() {
			if want := filepath.Join(dir, names[i]); p.Path != want {
				t.Errorf("adapter %s runs from %s, want %s", p.Name, p.Path, want)
			}
		}
		for name, err := range h.Check() {
			if err != nil {
				t.Errorf("adapter %s in %s is refused: %v", name, dir, err)
			}
		}
		if _, err := h.Health(t.Context(), backend.Target{BaseURL: srv.URL, InstallID: "i"}); err != nil {
			t.Errorf("call through %s in %s: %v", names[0], dir, err)
		}
		for _, name := range names {
			out, err := exec.Command(filepath.Join(dir, name), "version").Output()
			if err != nil || !strings.HasPrefix(string(out), name+" ") {
				t.Errorf("%s version printed %q: %v", filepath.Join(dir, name), out, err)
			}
		}
	}
}

// The daemon lists the adapter of each program plugins/service-plugin-<name>, and describes those that are transports.
func TestShipped_AreThePrograms(t *testing.T) {
	programs, err := filepath.Glob("../../../plugins/" + programpath.AdapterPrefix + "*")
	if err != nil {
		t.Fatal(err)
	}
	h := Unavailable(errors.New("no adapter runs"))
	var listed []string
	for _, p := range h.Plugins() {
		listed = append(listed, p.Name)
	}
	if len(listed) != len(programs) {
		t.Errorf("the daemon lists %v, want one adapter for each of %v", listed, programs)
	}
	for _, program := range programs {
		name := strings.TrimPrefix(filepath.Base(program), programpath.AdapterPrefix)
		if !slices.Contains(listed, name) {
			t.Errorf("the daemon does not list %s", name)
		}
		isTransport := slices.ContainsFunc(h.Transports(), func(d backend.Transport) bool { return d.Name == name })
		if isBackend := name == HTTP || name == Local; isTransport == isBackend {
			t.Errorf("%s: is a backend %t, is a transport %t, want one of them", name, isBackend, isTransport)
		}
	}
}
