//go:build unix

package pluginhost

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/service-dev/service/internal/loopback"
)

// After a restart of the daemon, a connection starts the embedded backend, and calls find it as usual.
func TestRest_TheNextHostAwaitsConnections(t *testing.T) {
	dir := t.TempDir()
	h, stop := serveResting(t, dir)
	h.AwaitConnections(t.Context())
	if got := statusOf(h, Local).State; got != Stopped {
		t.Errorf("an embedded backend that never served is %s, want it stopped", got)
	}
	embeddedHealth(t, h)
	id, url := h.RunningEmbedded()
	stop()
	for range 3 {
		h, stop := serveResting(t, dir)
		h.AwaitConnections(t.Context())
		if err := get(url + "/api/health"); err != nil {
			t.Error(err)
		}
		embeddedHealth(t, h)
		if again, at := h.RunningEmbedded(); again != id || at != url {
			t.Errorf("it became %q at %s, want %q at %s", again, at, id, url)
		}
		rests(t, h, Local)
		stop()
	}
	h, _ = serveResting(t, dir) // a call during the start
	h.AwaitConnections(t.Context())
	embeddedHealth(t, h)
}

// A port that was free for a while is not used again: another program may have used it, and left a service worker for
// its origin in a browser. Browsers stay signed in.
func TestRest_AFreePortIsNotUsedAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, embeddedDir, portFile)
	h, stop := serveResting(t, dir)
	embeddedHealth(t, h)
	_, url := h.RunningEmbedded()
	if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) > heldFor {
		t.Errorf("the port's file is not touched while the port is held: %v", err)
	}
	stop()
	for _, age := range []time.Duration{heldFor + time.Second, -heldFor - time.Minute} { // also after a clock jump
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		h, stop := serveResting(t, dir)
		h.AwaitConnections(t.Context())
		embeddedHealth(t, h)
		_, at := h.RunningEmbedded()
		if at == url {
			t.Errorf("after %s, the embedded backend is at %s again", age, url)
		}
		url = at
		stop()
	}
}

// While another program uses the port, the port does not count as held, and no other port is opened to wait.
func TestRest_ATakenPortIsNotHeld(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, embeddedDir, portFile)
	h, stop := serveResting(t, dir)
	embeddedHealth(t, h)
	stop()
	taken, err := loopback.Listen(t.Context(), loopback.ReadPort(file))
	if err != nil {
		t.Fatal(err)
	}
	defer loopback.Close(taken)
	long := time.Now().Add(-heldFor / 2)
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	h, stop = serveResting(t, dir)
	h.AwaitConnections(t.Context())
	if a := &h.adapters[Local].address; len(a.listeners) > 0 {
		t.Errorf("the host waits at port %d", a.port())
	}
	stop()
	if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) < heldFor/4 {
		t.Errorf("the file of the taken port was touched: %v", err)
	}
}
