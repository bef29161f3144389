//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/proto/glasses"
)

// control is what an agent's tool asks of the page.
func (s *simulated) control(typ string, payload any) glasses.Result {
	s.t.Helper()
	var answer struct{ Result glasses.Result }
	s.call("POST", "/api/sessions/"+s.id+"/control", map[string]any{"type": typ, "payload": payload}, &answer)
	return answer.Result
}

const (
	plays   = `document.querySelector("#simulator")?.dataset.live === "yes" && document.querySelector("#mirror").hidden`
	looksOn = `!document.querySelector("#mirror").hidden && document.querySelector("#controls").disabled`
)

// Of two pages the newest plays the glasses; the other looks on, and takes over with the same state when it is left alone.
func TestSimulatorPagesTakeTurns(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, "rayban_display")
	s.must(s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))))
	s.must(s.control(glasses.SimState, map[string]any{"battery": glasses.Battery{Level: 9}}))
	s.next(glasses.TypeBattery, "")
	if r := s.must(s.control(glasses.SimInput, glasses.Input{Kind: glasses.InputNavigate, Direction: "down"})); r.View == nil || r.View.Focus != 1 || r.State.Battery.Level != 9 {
		t.Errorf("an agent's input: %+v", r)
	}
	s.next(glasses.TypeInput, "")
	if r := s.control(glasses.SimInput, glasses.Input{Kind: glasses.InputHold}); r.Error == nil || r.Error.Code != glasses.CodeUnsupported {
		t.Errorf("an input that the model lacks: %+v", r)
	}

	second, closeSecond := chromedp.NewContext(s.browser)
	defer closeSecond()
	run(t, second, "open a second page", chromedp.Navigate(s.url), until(plays))
	run(t, s.browser, "look on", until(looksOn))
	if r := s.must(s.control(glasses.SimState, struct{}{})); r.State.Battery.Level != 9 {
		t.Errorf("the second page took up a battery of %d %%", r.State.Battery.Level)
	}
	s.must(s.control(glasses.SimState, map[string]any{"worn": false}))
	run(t, s.browser, "follow the other page", until(`!document.querySelector("#worn").checked`))
	if r := s.result(s.send(glasses.TypeDisplayClear, struct{}{})); !r.OK {
		t.Errorf("clear: %+v", r.Error)
	}

	closeSecond()
	run(t, s.browser, "take over", until(plays))
	if r := s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))); r.Error == nil || r.Error.Code != glasses.CodePaused {
		t.Errorf("glasses that nobody wears answered %+v", r)
	}
}

// A service that dies without a word is not shown as live for longer than three seconds; when it comes back, so does the
// page, and what the person did in between reaches the app.
func TestSimulatorPageSeesADeadService(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, "rayban_display")
	s.must(s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))))
	process := s.b.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer process.Signal(syscall.SIGCONT)
	begin := time.Now()
	tapPanel(t, s.browser) // on its way when the service stopped
	ctx, cancel := context.WithTimeout(s.browser, 10*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, until(`document.querySelector("#socket").dataset.state !== "up"`)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("shown as live for %v", took)
	} else {
		t.Logf("not shown as live after %v", took)
	}
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	run(t, s.browser, "come back", until(plays))
	s.next(glasses.TypeInput, "")
}
