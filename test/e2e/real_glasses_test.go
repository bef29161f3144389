//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/g1"
)

// airSpace is a machine with Bluetooth and a pair of emulated Even G1 in range.
type airSpace struct {
	*world
	radio *fakebluez.Radio
	pair  *g1.Pair
}

func newAirSpace(t *testing.T) *airSpace {
	t.Helper()
	pair := g1.New(g1.Options{Channel: 27})
	radio := fakebluez.Start(t, fakebluez.Options{Peripherals: []peripheral.Peripheral{pair.Left(), pair.Right()}})
	return &airSpace{newWorld(t, "", "DBUS_SYSTEM_BUS_ADDRESS="+radio.Address), radio, pair}
}

// panels returns the pictures on both arms, without arms that are dark.
func (w *airSpace) panels() map[string]image.Image {
	shown := map[string]image.Image{}
	w.radio.Emulate(func(int64) {
		for _, side := range []g1.Side{g1.Left, g1.Right} {
			if picture, ok := w.pair.Picture(side); ok {
				shown[side.String()] = picture
			}
		}
	})
	return shown
}

// wantPanels waits until the lit pixels on both arms match a picture.
func (w *airSpace) wantPanels(picture []byte) {
	w.t.Helper()
	want, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		w.t.Fatal(err)
	}
	must(w.t, "both arms show the simulator's picture", func() bool {
		shown := w.panels()
		return len(shown) == 2 && sameLight(shown["left"], want) && sameLight(shown["right"], want)
	})
}

func sameLight(a, b image.Image) bool {
	if a.Bounds().Size() != b.Bounds().Size() {
		return false
	}
	for y := range b.Bounds().Dy() {
		for x := range b.Bounds().Dx() {
			r, g, bl, _ := a.At(x, y).RGBA()
			r2, g2, bl2, _ := b.At(x, y).RGBA()
			if (r|g|bl != 0) != (r2|g2|bl2 != 0) {
				return false
			}
		}
	}
	return true
}

// connectGlasses opens a session with the emulated pair.
func (w *airSpace) connectGlasses(a *agent) toolResult {
	w.t.Helper()
	s := a.call("connectRealDevice", map[string]any{"deviceModel": "even_g1", "timeoutSeconds": 30})
	if s.Structured["status"] != "connected" {
		w.t.Fatalf("connectRealDevice: got %v, want connected glasses", s.Structured)
	}
	return s
}

// The same app in three languages behaves the same on simulated glasses and on real ones, which are emulated here.
// The logs are equal except for the events of the link and the battery, which real glasses send by themselves, and
// both arms show the simulator's pixels.
func TestRealGlasses_RunTheAppsOfTheSimulator(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	forEachDesk(t, a, func(t *testing.T, app []string) {
		simulated := a.call("startLocalSimulation", map[string]any{"fresh": true, "deviceModel": "even_g1"})
		rows, picture := useDesk(t, w.world, a, app, simulated, func(id string) {
			a.call("injectInput", map[string]any{"sessionId": id, "kind": "tap", "side": "right"})
		})
		real := w.connectGlasses(a)
		got, drawn := useDesk(t, w.world, a, app, real, func(string) {
			w.radio.Emulate(func(now int64) { w.pair.Tap(now, g1.Right) })
		})
		if diff := cmp.Diff(rows, got); diff != "" {
			t.Errorf("the event log differs from the simulator's:\n%s", diff)
		}
		if !bytes.Equal(picture, drawn) {
			t.Error("the service draws another picture than for the simulator")
		}
		w.wantPanels(picture)
		a.call("closeSession", map[string]any{"sessionId": real.str(t, "sessionId")})
		must(t, "the panels are dark after the session", func() bool { return len(w.panels()) == 0 })
	})
	w.radio.Emulate(func(int64) {
		if v := w.pair.Violations(); len(v) > 0 {
			t.Errorf("the adapter broke the protocol of the glasses: %v", v)
		}
	})
}

// forEachDesk runs a test with the desk app in each language.
func forEachDesk(t *testing.T, a *agent, test func(t *testing.T, app []string)) {
	t.Helper()
	for name, app := range deskApps(t) {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(app[0]); err != nil {
				missing(t, app[0], "apt-get install "+app[0])
			}
			a.t = t
			test(t, app)
		})
	}
	a.t = t
}

// useDesk runs the desk app in a session. The wearer taps and says "next" and "photo". It returns the comparable rows
// of the log and the final picture.
func useDesk(t *testing.T, w *world, a *agent, app []string, s toolResult,
	tap func(id string)) ([]map[string]any, []byte) {
	t.Helper()
	id := s.str(t, "sessionId")
	running := startApp(t, w, app, s)
	awaitResults := func(n int) {
		must(t, fmt.Sprint(n, " results are in the log, and what the app says of refusals"), func() bool {
			results, refusals := 0, 0
			for _, row := range eventRows(t, a, id) {
				payload, _ := row["payload"].(map[string]any)
				switch row["type"] {
				case "com.example.refused":
					refusals--
				case glasses.TypeResult:
					results++
					if payload["error"] != nil {
						refusals++
					}
				}
			}
			return results >= n && refusals == 0
		})
	}
	say := func(text string) {
		a.call("injectTranscript", map[string]any{"sessionId": id, "text": text, "final": true})
	}
	awaitResults(4) // announce, transcription.start, display.show, speech.say
	tap(id)
	awaitResults(6) // display.show, speech.say
	say("next item")
	awaitResults(7)
	say("take a photo")
	awaitResults(12)
	picture := panelPicture(t, a, id)
	_ = running.Process.Signal(syscall.SIGTERM)
	must(t, "the app has left", func() bool {
		return strings.Contains(strings.Join(logLines(t, a, id), "\n"), glasses.RowAppDetached)
	})
	rows := slices.DeleteFunc(eventRows(t, a, id), func(row map[string]any) bool {
		return slices.Contains([]any{glasses.TypeLink, glasses.TypeBattery, glasses.RowGlassesAttached,
			glasses.RowGlassesDetached}, row["type"])
	})
	for _, row := range rows {
		delete(row, "seq")
	}
	return plainRows(rows), picture
}

// If the adapter is killed while a picture is being sent, a new adapter connects the same pair, and the app's next
// picture is complete on both arms.
func TestRealGlasses_SurviveTheirAdapter(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	s := w.connectGlasses(a)
	id := s.str(t, "sessionId")
	app := attach(t, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile")))
	app.send(glasses.TypeDisplayShow, "first", glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: "first"}})
	before := 0
	w.radio.Emulate(func(int64) { before = w.pair.Packets(g1.Left) })
	must(t, "a picture is on its way", func() (yes bool) {
		w.radio.Emulate(func(int64) { yes = w.pair.Packets(g1.Left) > before })
		return yes
	})
	killProcess(t, w.world, "realdevice")
	must(t, "the glasses are detached", func() bool {
		return strings.Contains(strings.Join(logLines(t, a, id), "\n"), glasses.RowGlassesDetached)
	})
	must(t, "the glasses are connected again", func() bool {
		status := a.call("getSessionStatus", map[string]any{"sessionId": id})
		return strings.Count(fmt.Sprint(status.Structured["session"]), "state:up") == 2
	})
	app.send(glasses.TypeDisplayShow, "second", glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: "second"}})
	must(t, "the second picture is drawn", func() bool {
		shown := a.call("getDisplayState", map[string]any{"sessionId": id, "picture": false})
		return strings.Contains(fmt.Sprint(shown.Structured["text"]), "second")
	})
	w.wantPanels(panelPicture(t, a, id))
}

// Data that identifies the glasses stays in the state directory: usage events, logs and answers to agents contain no
// address and no serial number.
func TestRealGlasses_StayAnonymous(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	a := startAgent(w.world, "modern", false)
	s := w.connectGlasses(a)
	status := a.call("getSessionStatus", map[string]any{"sessionId": s.str(t, "sessionId")})
	spool, _, _ := w.ctl("telemetry", "show", "--json")
	log, err := os.ReadFile(filepath.Join(w.dir, "log", "serviced.log"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile(filepath.Join(w.dir, "glasses.json"))
	if err != nil {
		t.Fatal(err)
	}
	adv, _ := g1.New(g1.Options{Channel: 27}).Left().Advertisement()
	if !strings.Contains(string(known), adv.Address) {
		t.Fatalf("glasses.json lacks the address %s, so this test shows nothing", adv.Address)
	}
	for what, text := range map[string]string{
		"the answer": fmt.Sprint(s), "the status": fmt.Sprint(status), "usage events": spool, "the log": string(log),
	} {
		for _, secret := range []string{adv.Address, strings.ReplaceAll(adv.Address, ":", "_"), "S110LAAL103842"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s contains %q", what, secret)
			}
		}
	}
}

// A user finds, connects and disconnects the glasses from the terminal.
func TestRealGlasses_ObeyTheTerminal(t *testing.T) {
	t.Parallel()
	w := newAirSpace(t)
	run := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, got := w.ctl(append([]string{"glasses"}, args...)...)
		if got != code {
			t.Fatalf("glasses %v: got the exit code %d, want %d\n%s%s", args, got, code, stdout, stderr)
		}
		return stdout, stderr
	}
	want := func(text string, patterns ...string) {
		t.Helper()
		for _, p := range patterns {
			if !regexp.MustCompile("(?m)" + p).MatchString(text) {
				t.Errorf("got %q, want %s", text, p)
			}
		}
	}
	out, _ := run(0, "list", "--seconds", "2")
	want(out, `^NAME +MODEL +LAST USED +IN RANGE$`, `^Even G1_27 +even_g1 +- +left -\d+ dBm, right -\d+ dBm$`)
	out, remark := run(0, "connect", "Even G1_27", "--timeout", "30")
	want(out, `^Even G1_27 \(even_g1\) is connected to session loc_\w+\.$`, `^left +up +\d+ % +`, `^right +up +\d+ % +`)
	want(remark, "next: `servicectl session env`")
	env, _, _ := w.ctl("session", "env")
	want(env, `SERVICE_GLASSES_URL=`)
	out, _ = run(0, "list", "--known")
	want(out, `^Even G1_27 +even_g1 +(just now|\d+ s ago)$`)
	out, _ = run(0, "list", "--seconds", "1")
	want(out, `^Even G1_27 .* connected to loc_\w+$`)
	_, problem := run(1, "check")
	want(problem, `there is no terminal`)
	out, _ = run(0, "disconnect", "--json")
	want(out, `"loc_\w+"`)
	must(t, "both arms are free", func() bool {
		return !w.radio.Connected(w.pair.Left()) &&
			!w.radio.Connected(w.pair.Right())
	})
	out, _ = run(0, "list", "--seconds", "2", "--json")
	want(out, `"key": "left"`, `"found": true`, `"looked": true`, `"usedMs": [1-9]`)
	w.radio.Emulate(func(now int64) { w.pair.Occupy(now, true) })
	must(t, "a pair that a phone has is remembered and away", func() bool {
		out, problem = run(0, "list", "--seconds", "2")
		return strings.Contains(out, "remembered, away") && strings.Contains(problem, "glasses forget NAME")
	})
	run(0, "forget", "even g1_27")
	_, problem = run(2, "forget", "even g1_27")
	want(problem, `no pair named "even g1_27" is remembered`)
	out, _ = run(0, "list", "--known", "--json")
	want(out, `"glasses": \[\]`)
	w.radio.Emulate(func(int64) {
		if v := w.pair.Violations(); len(v) > 0 {
			t.Errorf("the adapter broke the protocol of the glasses: %v", v)
		}
	})
}

// killProcess kills the process of an adapter.
func killProcess(t *testing.T, w *world, name string) {
	t.Helper()
	if err := syscall.Kill(pidOf(t, w, name), syscall.SIGKILL); err != nil {
		t.Fatalf("kill %s: %v", name, err)
	}
}

// pidOf returns the process id of the adapter with this name.
func pidOf(t *testing.T, w *world, name string) int {
	t.Helper()
	out, _, _ := w.ctl("plugin", "list", "--json")
	for line := range strings.SplitSeq(out, "{") {
		if !strings.Contains(line, `"name":"`+name+`"`) && !strings.Contains(line, `"name": "`+name+`"`) {
			continue
		}
		_, rest, _ := strings.Cut(line, `"pid":`)
		pid, err := strconv.Atoi(strings.TrimSpace(rest[:strings.IndexAny(rest, ",}\n")]))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return pid
	}
	t.Fatalf("no adapter %s in %s", name, out)
	return 0
}
