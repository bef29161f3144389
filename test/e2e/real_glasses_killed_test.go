//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/service-dev/service/glasses"
)

// If the daemon is killed, the adapter detects it and clears the glasses.
func TestRealGlasses_AreClearedWhenTheDaemonDies(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	s := w.connectGlasses(a)
	app := attach(t, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile")))
	app.send(glasses.TypeDisplayShow, "shown", glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: "shown"}})
	must(t, "both arms show the picture", func() bool { return len(w.panels()) == 2 })
	if err := syscall.Kill(w.daemonPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	must(t, "both arms are dark", func() bool { return len(w.panels()) == 0 })
	must(t, "the next daemon knows that the glasses are cleared", func() bool {
		_, next, code := w.ctl("status")
		list, more, listed := w.ctl("glasses", "list", "--known")
		return code+listed == 0 && strings.Contains(list, "Even G1_27") && !strings.Contains(next+more, "may still show")
	})
	w.radio.Emulate(func(int64) {
		if v := w.pair.Grave(); len(v) > 0 {
			t.Errorf("the adapter sent what it must not: %v", v)
		}
	})
}

// If the daemon and the adapter are killed, the glasses are not cleared. The next daemon reports this until they have
// been connected again and cleared.
func TestRealGlasses_AreReportedWhenNobodyClearedThem(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	id := w.connectGlasses(a).str(t, "sessionId")
	says := func(wanted bool, when string) {
		t.Helper()
		status, next, _ := w.ctl("status")
		list, more, _ := w.ctl("glasses", "list", "--known")
		for command, text := range map[string]string{"status": status + next, "glasses list": list + more} {
			if strings.Contains(text, "Even G1_27 may still show") != wanted {
				t.Errorf("%s: %s says\n%s\nwant it to say that the glasses may still show a picture: %v", when, command, text,
					wanted)
			}
		}
		answer := a.call("getSessionStatus", map[string]any{"sessionId": id})
		if got := strings.Contains(fmt.Sprint(answer.Structured), "may still show"); got != wanted {
			t.Errorf("%s: got the status %v, want it to say so: %v", when, answer.Structured, wanted)
		}
	}
	says(false, "connected")
	shown := a.call("getSessionStatus", map[string]any{"sessionId": id}).Structured["environment"].(map[string]any)
	app := attach(t, fmt.Sprint(shown["SERVICE_GLASSES_URL"]), secretIn(t, fmt.Sprint(shown["SERVICE_GLASSES_SECRET_FILE"])))
	app.send(glasses.TypeDisplayShow, "shown", glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: "shown"}})
	must(t, "both arms show the picture", func() bool { return len(w.panels()) == 2 })
	says(false, "with a picture")

	adapter := pidOf(t, w.world, "realdevice")
	for _, pid := range []int{w.daemonPID(), adapter} { // the daemon first, because it would replace the adapter
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	w.radio.Emulate(func(now int64) { w.pair.Occupy(now, true) }) // the next daemon cannot connect them yet
	for _, pid := range []int{adapter, w.daemonPID()} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	must(t, "another daemon runs", func() bool { _, _, code := w.ctl("glasses", "list", "--known"); return code == 0 })
	says(true, "after the kill")

	w.radio.Emulate(func(now int64) { w.pair.Occupy(now, false) })
	again := a.call("connectRealDevice", map[string]any{"deviceModel": "even_g1", "timeoutSeconds": 60})
	if text := fmt.Sprint(again.Structured["summary"]); again.Structured["status"] != "connected" ||
		!strings.Contains(text, "may still show") || !strings.Contains(text, "switch them off") {
		t.Errorf("connectRealDevice: got %v, want connected glasses and what they may show", again.Structured)
	}
	a.call("closeSession", map[string]any{"sessionId": id})
	must(t, "the glasses are cleared and nothing is said any more", func() bool {
		status, next, _ := w.ctl("status")
		return len(w.panels()) == 0 && !strings.Contains(status+next, "may still show")
	})
}
