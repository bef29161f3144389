//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// A scenario starts while a phone is connected to the glasses. The user learns why the scenario waits, and it passes
// once the glasses are available.
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

// lockedText collects the output of a process that is still running.
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

// A picture that one arm has not confirmed does not count as visible: expectDisplay fails and names the arm, and
// getDisplayState reports the arm, too.
func TestRealGlasses_ConfirmWhatIsExpected(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	s := w.connectGlasses(a)
	id := s.str(t, "sessionId")
	app := attach(t, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile")))
	show := func(id, text string) {
		app.send(glasses.TypeDisplayShow, id, glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: text}})
	}
	mute := func(sides ...g1.Side) {
		w.radio.Emulate(func(now int64) {
			for _, side := range []g1.Side{g1.Left, g1.Right} {
				f := g1.Faults{}
				if slices.Contains(sides, side) {
					f.Mute = []byte{0x15, 0x16, 0x20} // the answers to pictures
				}
				w.pair.SetFaults(now, side, f)
			}
		})
	}
	expect := func(text string, withinMs int) toolResult {
		return a.call("expectDisplay", map[string]any{"sessionId": id, "text": []string{text}, "withinMs": withinMs})
	}
	for _, c := range []struct {
		sides    []g1.Side
		text     string
		mentions []string
	}{
		{[]g1.Side{g1.Left, g1.Right}, "for neither", []string{"left arm", "right arm"}},
		{[]g1.Side{g1.Right}, "for the left", []string{"right arm"}},
	} {
		mute(c.sides...)
		show(strings.ReplaceAll(c.text, " ", "-"), c.text)
		must(t, "the service draws the picture", func() bool {
			drawn := a.call("getDisplayState", map[string]any{"sessionId": id, "picture": false})
			return strings.Contains(fmt.Sprint(drawn.Structured["text"]), c.text)
		})
		missing := fmt.Sprint(expect(c.text, 3000).Structured)
		looked := fmt.Sprint(a.call("getDisplayState", map[string]any{"sessionId": id}).Structured["summary"])
		for _, part := range c.mentions {
			if !strings.Contains(missing, "status:fail") || !strings.Contains(missing, part) || !strings.Contains(looked, part) {
				t.Errorf("%s: expectDisplay answers %s, getDisplayState %s; want a failure that names the %s", c.text, missing,
					looked, part)
			}
		}
	}
	mute()
	show("whole", "for both")
	if got := expect("for both", 30_000); got.Structured["status"] != "pass" {
		t.Errorf("once both arms answer: %v", got.Structured)
	}
	w.radio.Emulate(func(now int64) { w.pair.Drop(now, g1.Left, -1) })
	must(t, "the picture is not confirmed without the left arm", func() bool {
		return strings.Contains(fmt.Sprint(expect("for both", 0).Structured), "the left arm is not connected")
	})
}
