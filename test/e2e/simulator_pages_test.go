//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/chromium"
)

// control sends a control frame to the page, as an agent's tool does.
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

// If two pages are open, the newer page acts as the glasses. The other page observes, and takes over with the same
// state when it is the only page left.
func TestSimulatorPages_NewestIsActive(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, "rayban_display")
	s.must(s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))))
	s.must(s.control(glasses.SimState, map[string]any{"battery": glasses.Battery{Level: 9}}))
	s.next(glasses.TypeBattery, "")
	if r := s.must(s.control(glasses.SimInput, glasses.Input{Kind: glasses.InputNavigate,
		Direction: "down"})); r.View == nil || r.View.Focus != 1 || r.State.Battery.Level != 9 {
		t.Errorf("an agent's input: got %+v, want focus 1", r)
	}
	s.next(glasses.TypeInput, "")
	if r := s.control(glasses.SimInput, glasses.Input{Kind: glasses.InputHold}); r.Error == nil ||
		r.Error.Code != glasses.CodeUnsupported {
		t.Errorf("an input that the model does not support: got %+v, want unsupported", r)
	}

	second, closeSecond := chromium.Tab(s.browser, t)
	run(t, second, "open a second page", chromedp.Navigate(s.url), until(plays))
	run(t, s.browser, "look on", until(looksOn))
	if r := s.must(s.control(glasses.SimState, struct{}{})); r.State.Battery.Level != 9 {
		t.Errorf("the second page took over with a battery level of %d %%, want 9", r.State.Battery.Level)
	}
	s.must(s.control(glasses.SimState, map[string]any{"worn": false}))
	run(t, s.browser, "follow the other page", until(`!document.querySelector("#worn").checked`))
	if r := s.result(s.send(glasses.TypeDisplayClear, struct{}{})); !r.OK {
		t.Errorf("clear: got %+v, want success", r.Error)
	}

	closeSecond()
	run(t, s.browser, "take over", until(plays))
	if r := s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))); r.Error == nil ||
		r.Error.Code != glasses.CodePaused {
		t.Errorf("glasses that nobody wears: got %+v, want paused", r)
	}
}

// A page shows within three seconds that a crashed service is offline. When the service returns, the page reconnects,
// and inputs made in between reach the app.
func TestSimulatorPage_ShowsDeadService(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, "rayban_display")
	s.must(s.result(s.send(glasses.TypeDisplayShow, json.RawMessage(trails))))
	process := s.b.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer process.Signal(syscall.SIGCONT)
	begin := time.Now()
	tapPanel(t, s.browser) // was still queued when the service stopped
	ctx, cancel := context.WithTimeout(s.browser, 10*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, until(`document.querySelector("#socket").dataset.state !== "up"`)); err != nil {
		t.Fatal(err)
	}
	t.Logf("the page stopped showing itself as live after %v", time.Since(begin))
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	run(t, s.browser, "come back", until(plays))
	s.next(glasses.TypeInput, "")
}

// A reloaded page takes over the current state, and its glasses resume transcription once the state allows it. They
// do not transcribe while no app is attached.
func TestSimulatorPage_TakesOverWhatStands(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, "rayban_display")
	running := func(want string) {
		t.Helper()
		if f := s.next(glasses.TypeTranscription, ""); string(f.Payload) != want {
			t.Errorf("transcription: got %s, want %s", f.Payload, want)
		}
	}
	s.must(s.result(s.send(glasses.TypePhrasesAnnounce, glasses.Announce{Phrases: []string{"next page"}})))
	if r := s.control(glasses.SimTranscript, glasses.Transcript{Text: "next page"}); r.Error == nil ||
		r.Error.Code != glasses.CodePaused {
		t.Errorf("before the app listens: got %+v, want paused", r)
	}
	s.must(s.result(s.send(glasses.TypeTranscriptionStart, struct{}{})))
	s.must(s.control(glasses.SimState, map[string]any{"battery": glasses.Battery{Level: 9}}))
	s.next(glasses.TypeBattery, "")
	run(t, s.browser, "clear the page's storage and reload",
		chromedp.Evaluate[chromedp.Void](`addEventListener("pagehide", () => sessionStorage.clear())`), chromedp.Reload(),
		until(plays))
	running(`{"running":true}`)
	r := s.must(s.control(glasses.SimState, struct{}{}))
	if len(r.State.Phrases) != 1 || len(r.State.Running) != 1 || r.State.Battery.Level != 9 {
		t.Errorf("state after the reload: got %+v, want the same phrase, transcription and battery level", r.State)
	}
	s.must(s.control(glasses.SimTranscript, glasses.Transcript{Text: "next page"}))
	s.next(glasses.TypeTranscript, "")

	s.must(s.control(glasses.SimState, map[string]any{"permissions": map[string]string{"speech": "denied"}}))
	running(`{"running":false,"reason":"permission_denied","part":"speech","by":"permission"}`)
	if r := s.control(glasses.SimTranscript, glasses.Transcript{Text: "next page"}); r.Error == nil ||
		r.Error.Code != glasses.CodePermissionDenied || r.Error.Part != glasses.PartSpeech {
		t.Errorf("without permission: got %+v, want permission_denied", r)
	}
	s.must(s.control(glasses.SimState, map[string]any{"permissions": map[string]string{"speech": "granted"}}))
	running(`{"running":true}`)

	s.app.CloseNow()
	if !eventually(20*time.Second, func() bool {
		return len(s.must(s.control(glasses.SimState, struct{}{})).State.Running) == 0
	}) {
		t.Error("the glasses keep transcribing although no app is attached")
	}
	run(t, s.browser, "reload without an app", chromedp.Reload(), until(plays))
	if r := s.must(s.control(glasses.SimState, struct{}{})); len(r.State.Running) != 0 || len(r.State.Phrases) != 1 {
		t.Errorf("state after a reload without an app: got %+v, want one phrase and nothing running", r.State)
	}
}
