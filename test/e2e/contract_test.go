//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/chromium"
)

// Every command has its result, every error its cause and every event its payload. The results of the local simulator
// and of a real backend's simulator page are the same in every field.
func TestContract_SameOnBothSimulators(t *testing.T) {
	t.Parallel()
	needAgent(t)
	chromium.Require(t)
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
	steps := contractSteps(fixtures(t))
	wholeContract(t, steps)
	said := map[string]*contractRecord{}
	for _, where := range []string{"local", "browser"} {
		said[where] = &contractRecord{}
	}
	// Both run in parallel, each with its own agent. The group ends when both have finished.
	t.Run("transports", func(t *testing.T) {
		for where, into := range said {
			t.Run(where, func(t *testing.T) {
				t.Parallel()
				here := *w
				here.t = t
				a := startAgent(&here, "modern", false)
				*into = runContract(t, &here, a, where, steps)
			})
		}
	})
	if t.Failed() {
		return
	}
	for where, heard := range said {
		if len(heard.each) == 0 {
			t.Skipf("SKIPPED: the %s simulator did not run, see above, so there is nothing to compare", where)
		}
	}
	local, browser := said["local"], said["browser"]
	if len(local.rows) < len(steps) || len(local.frames) < len(steps) || len(local.each) != len(steps)+1 ||
		len(browser.each) != len(steps)+1 {
		t.Fatalf("only %d rows and %d frames were recorded for %d steps", len(local.rows), len(local.frames), len(steps))
	}
	steps = append(steps, step{send: "the glasses leave"})
	for i := range steps {
		if diff := cmp.Diff(local.each[i], browser.each[i]); diff != "" {
			t.Errorf("step %d, %s %s: the browser simulator (+) differs from the local one (-):\n%s", i,
				steps[i].send, steps[i].payload, diff)
		}
	}
	if diff := cmp.Diff(local.frames, browser.frames); diff != "" {
		t.Errorf("what the app received differs (local -, browser +):\n%s", diff)
	}
	if diff := cmp.Diff(local.rows, browser.rows); diff != "" {
		t.Errorf("the event log differs (local -, browser +):\n%s", diff)
	}
}

// wholeContract checks that the steps cover the entire protocol.
func wholeContract(t *testing.T, steps []step) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range steps {
		seen[s.send+" "+s.want] = true
		seen[s.want] = true
		for _, h := range s.hears {
			seen[h] = true
		}
		for _, c := range s.before {
			var in glasses.Input
			if json.Unmarshal([]byte(c.args), &in); c.tool == "injectInput" && c.code == "" {
				seen["input "+in.Kind] = true
			}
		}
	}
	var wanted []string
	for _, c := range glasses.Commands() {
		wanted = append(wanted, c.Type+" ")
	}
	wanted = append(wanted, glasses.CommandCodes()...)
	wanted = append(wanted, glasses.CodeBadPayload)
	for _, k := range glasses.InputKinds() {
		wanted = append(wanted, "input "+k)
	}
	wanted = append(wanted, strings.Fields("input transcript speech motion battery wear hinge thermal link route call permission disabled device fault audio.chunk video.frame")...)
	for _, w := range wanted {
		if !seen[w] {
			t.Errorf("the contract has no step for %q", w)
		}
	}
}

// fixtures returns a picture and a sound that no real camera or microphone would produce.
func fixtures(t *testing.T) (camera, microphone string) {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 400, 300))
	for i := range 400 * 300 {
		x, y := i%400, i/400
		img.Set(x, y, color.RGBA{uint8(x), uint8(y), uint8(x*y/300 + x/7), 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	pcm := make([]byte, 2*16000) // one second
	for i := range len(pcm) / 2 {
		pcm[2*i], pcm[2*i+1] = byte(i*7), byte(i/100)
	}
	wav := slices.Concat([]byte("RIFF\xff\xff\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00data"),
		[]byte{byte(len(pcm)), byte(len(pcm) >> 8), byte(len(pcm) >> 16), 0}, pcm)
	camera, microphone = filepath.Join(t.TempDir(), "scene.png"), filepath.Join(t.TempDir(), "voice.wav")
	for path, data := range map[string][]byte{camera: b.Bytes(), microphone: wav} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return camera, microphone
}

// contractSession opens a session with glasses, and attaches an app that only sends and receives frames.
func contractSession(t *testing.T, w *world, a *agent, where string) (id string, app *socket, leave, back func()) {
	t.Helper()
	var s toolResult
	if where == "local" {
		leave, back = func() { killAdapter(t, w) }, func() {}
		s = a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "real",
			"deviceModel": "rayban_display"})
	} else {
		browser := linkAnd(t, w, a)
		s = a.call("createSimulatorSession", map[string]any{"fresh": true, "openBrowser": false,
			"deviceModel": "rayban_display"})
		page := s.str(t, "sessionUrl")
		openSimulator(t, browser, page)
		leave = func() { run(t, browser, "leave the simulator", chromedp.Navigate("about:blank")) }
		back = func() { openSimulator(t, browser, page) }
	}
	id = s.str(t, "sessionId")
	must(t, "glasses are attached", func() bool {
		return !a.call("getDisplayState",
			map[string]any{"sessionId": id}).IsError
	})
	return id, attach(t, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile"))), leave, back
}

// killAdapter kills the local simulator's process; the daemon starts a new one.
func killAdapter(t *testing.T, w *world) {
	t.Helper()
	children, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(children) == 0 {
		missing(t, "/proc", "run this on Linux")
	}
	for _, path := range children {
		stat, _ := os.ReadFile(path)
		var pid, parent int
		name, state := "", ""
		if _, err := fmt.Sscan(string(stat), &pid, &name, &state, &parent); err != nil || parent != w.daemonPID() {
			continue
		}
		if command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")); strings.Contains(string(command),
			"localsim") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no process of the local simulator found")
}

// departure detaches the glasses while a command is pending, and attaches them again.
func (w *contractRun) departure(leave, back func()) map[string]any {
	w.t.Helper()
	got, from := map[string]any{}, w.app.place()
	w.control(got, "before", []control{sensor(`{"battery":{"level":42,"charging":false}}`)})
	w.app.send("clock.sleep", "waits", glasses.Sleep{Ms: 60_000})
	w.app.next(from, glasses.TypeAck, "waits")
	leave()
	got["link0"], from = w.link(from, glasses.LinkDisconnected)
	back()
	got["link1"], _ = w.link(from, glasses.LinkConnected)
	f, _ := w.app.next(0, glasses.TypeResult, "waits")
	if r, err := glasses.ParseResult(f.Payload); err != nil || r.Error == nil ||
		r.Error.Code != glasses.CodeNotConnected {
		w.t.Errorf("pending command when the glasses detached: got %s, want not_connected", f.Payload)
	}
	w.app.send("display.clear", "again", struct{}{})
	w.app.next(0, glasses.TypeResult, "again")
	got["state"] = w.a.call("getDisplayState", map[string]any{"sessionId": w.id}).Structured["state"]
	if battery, _ := got["state"].(map[string]any)["battery"].(map[string]any); battery["level"] != 42.0 {
		w.t.Errorf("the reattached glasses lost their state: %v", got["state"])
	}
	return got
}

func (w *contractRun) link(from int, state string) (map[string]any, int) {
	w.t.Helper()
	f, at, ok := w.app.find(from, 20*time.Second, func(f appFrame) bool {
		return f.Type == glasses.TypeLink && strings.Contains(string(f.Payload), `"`+state+`"`)
	})
	if !ok {
		w.t.Fatalf("the app received no event that the connection is %s", state)
	}
	return plainFrame(f), at + 1
}
