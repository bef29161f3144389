//go:build unix

package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

// A component that hangs does not keep the daemon from stopping, and the error names it.
func TestStopIsBounded(t *testing.T) {
	free := make(chan struct{})
	t.Cleanup(func() { close(free) })
	hangs := component{"stubborn part", func(context.Context) error { <-free; return nil }}
	d := start(t, short(t), Options{further: []component{hangs}, stopLimit: 100 * time.Millisecond})
	if _, err := controltest.Call(t.Context(), d.ctl, control.Stop, control.None{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-d.stopOnError:
		if err == nil || !strings.Contains(err.Error(), "stubborn part did not stop") {
			t.Errorf("got %v; want an error that names the component", err)
		}
		d.stopOnError <- nil // for the cleanup that start registered
	case <-time.After(10 * time.Second):
		t.Fatal("the daemon did not exit within 10 s")
	}
}

// A daemon whose config.yaml became invalid keeps its previous settings and reports the problem.
func TestStatusTellsOfUnusableConfig(t *testing.T) {
	dir := short(t)
	path := filepath.Join(dir, config.FileName)
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("backend_url: http://127.0.0.1:1\n")
	d := start(t, dir, Options{})
	status := func() control.Status {
		s, err := controltest.Call(t.Context(), d.ctl, control.GetStatus, control.None{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if p := status().ConfigProblem; p != "" {
		t.Errorf("a valid file is reported as a problem: %s", p)
	}
	put("backend_url: [\n")
	eventually(t, "the problem is reported", func() bool { return strings.Contains(status().ConfigProblem, path) })
	if b := status().Backend; b.URL != "http://127.0.0.1:1" {
		t.Errorf("calls go to %s, want the last valid backend", b.URL)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the defaults apply", func() bool {
		s := status()
		return s.ConfigProblem == "" && s.Backend.Kind == config.KindEmbedded
	})
}

// eventually polls for an effect of another goroutine.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for late := time.Now().Add(10 * time.Second); !yes(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("not true after 10 s: %s", what)
		}
	}
}
