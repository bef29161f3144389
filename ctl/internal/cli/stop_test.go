package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/service-dev/service/ctl/internal/reach"
	"github.com/service-dev/service/proto/rendezvous"
)

// A daemon that was told to stop has ended when it let go of its directory, or when another one has it: an agent's shim
// may have started that before anybody looked.
func TestADaemonHasEndedWhenAnotherHasItsPlace(t *testing.T) {
	dir := t.TempDir()
	d := reach.Daemon{Paths: rendezvous.Paths{Dir: dir, Run: dir}}
	lock := flock.New(filepath.Join(dir, rendezvous.DaemonLock))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	record := func(pid int) {
		if err := os.WriteFile(filepath.Join(dir, rendezvous.DaemonRecord), fmt.Appendf(nil, `{"pid":%d}`, pid), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want bool) {
		t.Helper()
		if got, err := ends(t.Context(), d, 7, 50*time.Millisecond); got != want || err != nil {
			t.Errorf("%s: ended %v, %v", when, got, err)
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
