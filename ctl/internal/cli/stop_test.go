package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/proto/control"
)

// A daemon counts as stopped once it has released its directory or another daemon holds it: an agent's service-mcp may
// have started a new one before awaitGone first checks.
func TestAwaitGone_AnotherDaemonTookItsPlace(t *testing.T) {
	dir := t.TempDir()
	d := dialer.Daemon{Paths: rendezvous.Paths{Dir: dir, Run: dir}}
	lock := flock.New(filepath.Join(dir, rendezvous.DaemonLock))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	record := func(pid int) {
		if err := os.WriteFile(filepath.Join(dir, rendezvous.DaemonRecord), fmt.Appendf(nil, `{"pid":%d}`, pid),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want bool) {
		t.Helper()
		if got, err := ends(t.Context(), d, 7, 50*time.Millisecond); got != want || err != nil {
			t.Errorf("%s: got ended %v, %v, want %v", when, got, err, want)
		}
	}
	record(7)
	check("it still runs", false)
	record(8)
	check("another one runs", true)
	record(7)
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	check("nobody runs", true)
}

// A daemon that is killed while it is asked to stop counts as stopped.
func TestStop_DaemonKilledMeanwhile(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "s") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("SERVICE_CONFIG_DIR", dir)
	run := filepath.Join(dir, rendezvous.RunDir)
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, rendezvous.DaemonRecord), []byte(`{"pid":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lock := flock.New(filepath.Join(run, rendezvous.DaemonLock))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(run, rendezvous.ControlName))
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	daemon := &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}
	routes.HandleFunc(control.GetVersion.Path, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{}")
	})
	routes.HandleFunc(control.Stop.Path, func(http.ResponseWriter, *http.Request) {
		_ = lock.Unlock()
		_ = daemon.Close() // exits without an answer
	})
	served := make(chan error, 1)
	go func() { served <- daemon.Serve(l) }()
	d, err := dialer.Find()
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := askToStop(t.Context(), d, "test"); pid != 7 || err != nil {
		t.Errorf("got pid %d, %v, want 7", pid, err)
	}
	<-served
}
