//go:build linux

package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/packaging/glassestest/peripheral/g1"
)

// A scenario starts while a phone has the glasses: the person learns why it waits, and it passes once they are free.
func TestRealGlasses_AreAwaitedByAScenario(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	w.radio.Emulate(func(now int64) { w.pair.Occupy(now, true) })
	file := filepath.Join(t.TempDir(), "desk.json")
	writeInto(t, file, `{"scenario":1,"name":"desk","clock":"real","deviceModel":"even_g1","steps":[
		{"expectDisplay":{"text":["Desk"],"withinMs":5000}}]}`)
	cmd := w.command("servicectl", append([]string{"session", "run", file, "--transport", "realdevice", "--"},
		deskApps(t)["go"]...)...)
	var said lockedText
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	must(t, "the person learns why the scenario waits", func() bool {
		return strings.Contains(said.String(), "The glasses are not connected: ")
	})
	w.radio.Emulate(func(now int64) {
		for _, side := range []g1.Side{g1.Left, g1.Right} {
			if n := w.pair.Packets(side); n > 0 {
				t.Errorf("the %v arm got %d packets while a phone has it", side, n)
			}
		}
		w.pair.Occupy(now, false)
	})
	if err := <-done; err != nil {
		t.Errorf("the scenario failed (%v):\n%s", err, said.String())
	}
	if !strings.Contains(said.String(), "Even G1_27 are connected.") {
		t.Errorf("got %s, want that the glasses are connected", said.String())
	}
}

// lockedText is the output of a process that still runs.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
