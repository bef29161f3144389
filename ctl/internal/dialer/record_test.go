//go:build unix

package dialer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/rendezvous"
)

// The record is not read if other users may write to its directory, or if it is larger than a daemon writes.
func TestRecord_IsReadWithCare(t *testing.T) {
	d := newDaemon(t, "ready\n")
	if err := os.MkdirAll(d.Paths.Run, 0o700); err != nil {
		t.Fatal(err)
	}
	const record = "{\n  \"pid\": 42,\n  \"version\": \"1.2.3\"\n}\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.Paths.Run, rendezvous.DaemonRecord), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want bool) {
		t.Helper()
		if _, _, _, ok := d.ControlProtocol(); ok != want || d.PID() != 0 != want {
			t.Errorf("%s: record read %t, pid %d; want %t", when, ok, d.PID(), want)
		}
	}
	write(record)
	check("as the daemon writes it", true)
	write(strings.Repeat(" ", maxRecord) + record)
	check("too large", false)
	write(record)
	if err := os.Chmod(d.Paths.Run, 0o722); err != nil {
		t.Fatal(err)
	}
	check("in a directory of others", false)
}
