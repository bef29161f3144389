package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/internal/clientio"
)

// fakeCommand adds an xdg-open to PATH that records its arguments and environment and then runs script.
func fakeCommand(t *testing.T, script string) (calls func() string) {
	t.Helper()
	dir := t.TempDir()
	noted := filepath.Join(dir, "noted")
	text := "#!/bin/sh\nprintf '%s|%s|%s\\n' \"$#\" \"$1\" \"$DISPLAY$AGENT_API_KEY\" >> " + noted + "\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("DISPLAY", ":7")
	t.Setenv("AGENT_API_KEY", "leaked")
	t.Setenv("SERVICE_NO_AUTO_OPEN", "")
	return func() string { data, _ := os.ReadFile(noted); return string(data) }
}

func TestOpen_StartsNothing(t *testing.T) {
	calls := fakeCommand(t, "exit 0")
	for _, page := range []string{
		"file:///etc/passwd", "javascript:alert(1)", "-a Calc", "https://", "http:///x", "https://a/\nx", "", "https://user@a/",
	} {
		if got := New().open(t.Context(), page); got.opened || got.reason != clientio.ReasonRefused {
			t.Errorf("open(%q): got %+v, want refused", page, got)
		}
	}
	t.Setenv("SERVICE_NO_AUTO_OPEN", "1")
	if got := New().open(t.Context(), "https://a/"); got.reason != clientio.ReasonDisabled {
		t.Errorf("with SERVICE_NO_AUTO_OPEN: got %+v, want disabled", got)
	}
	t.Setenv("SERVICE_NO_AUTO_OPEN", "")
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME", "BROWSER"} {
		t.Setenv(name, "")
	}
	if got := New().open(t.Context(), "https://a/"); got.reason != clientio.ReasonNoDesktop {
		t.Errorf("without a desktop: got %+v, want no_desktop", got)
	}
	if calls() != "" {
		t.Error("a command was started:", calls())
	}
}

func TestOpen_PassesTheURLWhole(t *testing.T) {
	calls := fakeCommand(t, "exit 0")
	const page = "https://a/activate?code=WDJB-MJHT&x=$(touch%20/tmp/x);`id`'|&!*(){}<>^"
	if got := New().open(t.Context(), page); !got.opened {
		t.Errorf("got %+v, want opened", got)
	}
	if calls() != "1|"+page+"|:7\n" {
		t.Error("unexpected call of the command:", calls())
	}
}

func TestOpen_BadCommandsDoNotDisturb(t *testing.T) {
	fakeCommand(t, "exit 3")
	if got := New().open(t.Context(), "https://a/"); got.reason != clientio.ReasonFailed {
		t.Errorf("a failing command: got %+v, want failed", got)
	}
	fakeCommand(t, "exec sleep 10")
	start := time.Now()
	if got := New().open(t.Context(), "https://a/"); !got.opened || time.Since(start) > 5*time.Second {
		t.Errorf("a hanging command: got %+v after %v, want opened within 5 s", got, time.Since(start))
	}
	t.Setenv("PATH", t.TempDir())
	if got := New().open(t.Context(), "https://a/"); got.reason != clientio.ReasonFailed {
		t.Errorf("without a command: got %+v, want failed", got)
	}
}

func FuzzIsPage(f *testing.F) {
	for _, seed := range []string{"https://a/b", "javascript:x", "-a", "http://[::1]:1/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if isPage(page) && !strings.HasPrefix(strings.ToLower(page), "http") {
			t.Errorf("isPage accepted %q", page)
		}
	})
}
