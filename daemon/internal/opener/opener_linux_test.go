package opener

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
)

// fake puts an xdg-open of our own into PATH that notes its arguments and environment, then runs script.
func fake(t *testing.T, script string) (o *Opener, calls func() string) {
	t.Helper()
	dir := t.TempDir()
	noted := filepath.Join(dir, "noted")
	text := "#!/bin/sh\nprintf '%s|%s|%s\\n' \"$#\" \"$1\" \"$DISPLAY$SERVICE_TEST_SECRET\" >> '" + noted + "'\n" + script + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("SERVICE_TEST_SECRET", "leaked")
	o = New(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = o.Serve(ctx) })
	t.Cleanup(func() { cancel(); serving.Wait() })
	return o, func() string { data, _ := os.ReadFile(noted); return string(data) }
}

func desktopOf(more ...string) caller.Caller {
	env := map[string]string{"DISPLAY": ":7"}
	for i := 0; i+1 < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return caller.Caller{Env: env}
}

func TestNothingIsStarted(t *testing.T) {
	o, calls := fake(t, "exit 0")
	for page, reason := range map[string]string{
		"file:///etc/passwd": Refused, "javascript:alert(1)": Refused, "-a Calc": Refused, "https://": Refused,
		"http:///x": Refused, "https://a/\nx": Refused, "": Refused, "https://user@a/": Refused,
	} {
		if got := o.Open(t.Context(), desktopOf(), page); got.Opened || got.Reason != reason {
			t.Errorf("%q: %+v", page, got)
		}
	}
	if got := o.Open(t.Context(), desktopOf("SERVICE_NO_AUTO_OPEN", "1"), "https://a/"); got.Reason != Disabled {
		t.Errorf("told not to: %+v", got)
	}
	if got := o.Open(t.Context(), caller.Caller{}, "https://a/"); got.Reason != NoDesktop {
		t.Errorf("no desktop: %+v", got)
	}
	if calls() != "" {
		t.Error("started:", calls())
	}
}

func TestURLArrivesWhole(t *testing.T) {
	o, calls := fake(t, "exit 0")
	const page = "https://a/activate?code=WDJB-MJHT&x=$(touch%20/tmp/x);`id`'|&!*(){}<>^"
	if got := o.Open(t.Context(), desktopOf(), page); !got.Opened {
		t.Errorf("%+v", got)
	}
	if calls() != "1|"+page+"|:7\n" {
		t.Error("the command was called with", calls())
	}
}

func TestBadOpenersDoNotDisturb(t *testing.T) {
	o, _ := fake(t, "exit 3")
	if got := o.Open(t.Context(), desktopOf(), "https://a/"); got.Reason != Failed {
		t.Errorf("one that fails: %+v", got)
	}
	o, _ = fake(t, "exec sleep 60")
	start := time.Now()
	if got := o.Open(t.Context(), desktopOf(), "https://a/"); !got.Opened || time.Since(start) > 2*time.Second {
		t.Errorf("one that hangs: %+v after %v", got, time.Since(start))
	}
	t.Setenv("PATH", t.TempDir())
	if got := o.Open(t.Context(), desktopOf(), "https://a/"); got.Reason != Failed {
		t.Errorf("none at all: %+v", got)
	}
}

func FuzzIsPage(f *testing.F) {
	for _, seed := range []string{"https://a/b", "javascript:x", "-a", "http://[::1]:1/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if isPage(page) && !strings.HasPrefix(strings.ToLower(page), "http") {
			t.Errorf("took %q", page)
		}
	})
}
