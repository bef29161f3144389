//go:build linux

package e2e

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/test/chromium"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// The same app behaves the same on the local simulator and on the browser simulator.
func TestBrowserSimulator_RunsTheAppsOfTheLocalOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	a := startAgent(w, "modern", false)
	browser := linkAnd(t, w, a)
	tap := func(id string) {
		a.call("injectInput", map[string]any{"sessionId": id, "kind": "tap", "side": "right"})
	}
	forEachDesk(t, a, func(t *testing.T, app []string) {
		glasses := map[string]any{"fresh": true, "deviceModel": "even_g1", "openBrowser": false}
		s := a.call("createSimulatorSession", glasses)
		openSimulator(t, browser, s.str(t, "sessionUrl"))
		got, drawn := useDesk(t, w, a, app, s, tap)
		delete(glasses, "openBrowser")
		rows, picture := useDesk(t, w, a, app, a.call("startLocalSimulation", glasses), tap)
		if diff := cmp.Diff(rows, got); diff != "" {
			t.Errorf("the event log differs from the local simulator's:\n%s", diff)
		}
		if !bytes.Equal(picture, drawn) {
			t.Error("the service draws another picture than for the local simulator")
		}
		sameAsCanvas(t, browser, picture)
		a.call("closeSession", map[string]any{"sessionId": s.str(t, "sessionId")})
	})
}

// The same app behaves the same on the local simulator and on real glasses that a user connects on the page of one of
// the account's sessions.
func TestRealGlasses_RunTheAppsOfTheSimulatorInThePage(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	browser := linkAnd(t, w.world, a, chromium.BluetoothFlags(w.radio.Address)...)
	desk := deskApps(t)["go"]
	simulated := a.call("startLocalSimulation", map[string]any{"fresh": true, "deviceModel": "even_g1"})
	rows, picture := useDesk(t, w.world, a, desk, simulated, func(id string) {
		a.call("injectInput", map[string]any{"sessionId": id, "kind": "tap", "side": "right"})
	})

	s := a.call("createSimulatorSession", map[string]any{"fresh": true, "deviceModel": "even_g1", "openBrowser": false})
	openSimulator(t, browser, s.str(t, "sessionUrl"))
	w.useGlassesInPage(browser)
	got, drawn := useDesk(t, w.world, a, desk, s, func(string) {
		w.radio.Emulate(func(now int64) { w.pair.Tap(now, g1.Right) })
	})
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Errorf("the event log differs from the simulator's:\n%s", diff)
	}
	if !bytes.Equal(picture, drawn) {
		t.Error("the service draws another picture than for the simulator")
	}
	w.wantPanels(picture)
	sameAsCanvas(t, browser, picture)
	refused := a.call("injectFault", map[string]any{"sessionId": s.str(t, "sessionId"), "code": "busy"})
	if !refused.IsError {
		t.Errorf("a fault on real glasses: got %v, want a refusal", refused.Structured)
	}
	a.call("closeSession", map[string]any{"sessionId": s.str(t, "sessionId")})
	must(t, "the panels are dark after the session", func() bool { return len(w.panels()) == 0 })
	w.radio.Emulate(func(int64) {
		if v := w.pair.Violations(); len(v) > 0 {
			t.Errorf("the page broke the protocol of the glasses: %v", v)
		}
	})
}

// useGlassesInPage connects both arms on the open simulator page, which stays accessible meanwhile.
func (w *airSpace) useGlassesInPage(browser context.Context) {
	w.t.Helper()
	axe := axeSource(w.t)
	isAccessible := func(step string) {
		w.t.Helper()
		for _, scheme := range []string{"dark", "light"} {
			emulate(w.t, browser, scheme, 1200, 900)
			for _, v := range axeViolations(w.t, browser, axe) {
				w.t.Errorf("axe violation on the page %s, %s: %s", step, scheme, v)
			}
		}
	}
	person := chromium.NewChooser(browser, w.t)
	const begin = `document.querySelector("#real-begin")`
	run(w.t, browser, "use my glasses", until(begin+`.checkVisibility() && !`+begin+`.disabled`),
		chromium.Press("#real-begin"), until(`document.querySelector('#real-links [data-link="left"]')?.checkVisibility()`))
	isAccessible("before the arms are chosen")
	for link, arm := range map[string]*g1.Arm{"left": w.pair.Left(), "right": w.pair.Right()} {
		name := ""
		w.radio.Emulate(func(int64) {
			adv, _ := arm.Advertisement()
			name = adv.Name
		})
		button := `#real-links [data-link="` + link + `"]`
		run(w.t, browser, "choose the "+link+" arm", chromium.Press(button))
		person.Pick(name)
		run(w.t, browser, "see the choice", until(`!document.querySelector('`+button+`').checkVisibility()`))
	}
	run(w.t, browser, "wait for both arms", until(`document.querySelectorAll("#real-links .dot.on").length === 2`))
	isAccessible("with connected arms")
}
