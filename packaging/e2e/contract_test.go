//go:build unix

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
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

	"github.com/service-dev/service/proto/glasses"
)

// G4: every command has its result, every error its cause and every event its payload, alike on the local simulator and
// on the simulator page of a real backend, field by field.
func TestContract(t *testing.T) {
	t.Parallel()
	b := startBackend(t, "")
	w := newWorld(t, "", "SERVICE_BACKEND_URL="+b.url)
	steps := contractSteps(fixtures(t))
	wholeContract(t, steps)
	said := map[string]*testimony{}
	for _, where := range []string{"local", "browser"} {
		said[where] = &testimony{}
	}
	// Both run at once, each with an agent of its own. The group ends when both have.
	t.Run("transports", func(t *testing.T) {
		for where, into := range said {
			t.Run(where, func(t *testing.T) {
				t.Parallel()
				here := *w
				here.t = t
				a := startAgent(&here, "modern", false)
				*into = testify(t, &here, a, where, steps)
			})
		}
	})
	if t.Failed() {
		return
	}
	local, browser := said["local"], said["browser"]
	if len(local.rows) < len(steps) || len(local.frames) < len(steps) {
		t.Errorf("only %d rows and %d frames of %d steps were compared", len(local.rows), len(local.frames), len(steps))
	}
	steps = append(steps, step{send: "the glasses leave"})
	for i := range steps {
		if diff := cmp.Diff(local.each[i], browser.each[i]); diff != "" {
			t.Errorf("step %d, %s %s: the browser simulator (+) differs from the local one (-):\n%s", i, steps[i].send, steps[i].payload, diff)
		}
	}
	if diff := cmp.Diff(local.frames, browser.frames); diff != "" {
		t.Errorf("what the app heard differs (local -, browser +):\n%s", diff)
	}
	if diff := cmp.Diff(local.rows, browser.rows); diff != "" {
		t.Errorf("the event log differs (local -, browser +):\n%s", diff)
	}
}

// wholeContract holds the table against the protocol: nothing is left out.
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
	for _, typ := range strings.Fields("input transcript speech motion battery wear hinge thermal link route call permission disabled device fault audio.chunk video.frame") {
		wanted = append(wanted, typ)
	}
	for _, w := range wanted {
		if !seen[w] {
			t.Errorf("the contract has no step for %q", w)
		}
	}
}

// fixtures gives a picture and a sound that nobody's camera or microphone makes by chance.
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
	pcm := make([]byte, 2*16000) // a second
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

// contractSession opens a session with glasses on and attaches a bare app.
func contractSession(t *testing.T, w *world, a *agent, where string) (id string, app *socket, leave, back func()) {
	t.Helper()
	var s toolResult
	if where == "local" {
		leave, back = func() { killAdapter(t, w) }, func() {}
		s = a.call("startLocalSimulation", map[string]any{"fresh": true, "clock": "real", "deviceModel": "rayban_display"})
	} else {
		browser := linkAnd(t, w, a)
		s = a.call("createSimulatorSession", map[string]any{"fresh": true, "openBrowser": false, "deviceModel": "rayban_display"})
		page := s.str(t, "sessionUrl")
		openSimulator(t, browser, page)
		leave = func() { run(t, browser, "leave the simulator", chromedp.Navigate("about:blank")) }
		back = func() { openSimulator(t, browser, page) }
	}
	id = s.str(t, "sessionId")
	must(t, "glasses are attached", func() bool { return !a.call("getDisplayState", map[string]any{"sessionId": id}).IsError })
	return id, attach(t, s.str(t, "appEndpoint"), secretIn(t, s.str(t, "appTokenFile"))), leave, back
}

// killAdapter ends the local simulator's process at once; the daemon starts another.
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
		if command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")); strings.Contains(string(command), "localsim") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("the daemon has no local simulator")
}

// departure has the glasses leave while a command waits, and come back as they were.
func (w *witness) departure(leave, back func()) map[string]any {
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
	if r, err := glasses.ParseResult(f.Payload); err != nil || r.Error == nil || r.Error.Code != glasses.CodeNotConnected {
		w.t.Errorf("a command that waited for glasses that left: %s", f.Payload)
	}
	w.app.send("display.clear", "again", struct{}{})
	w.app.next(0, glasses.TypeResult, "again")
	got["state"] = w.a.call("getDisplayState", map[string]any{"sessionId": w.id}).Structured["state"]
	if battery, _ := got["state"].(map[string]any)["battery"].(map[string]any); battery["level"] != 42.0 {
		w.t.Errorf("the glasses that came back: %v", got["state"])
	}
	return got
}

func (w *witness) link(from int, state string) (map[string]any, int) {
	w.t.Helper()
	f, at, ok := w.app.find(from, 20*time.Second, func(f appFrame) bool {
		return f.Type == glasses.TypeLink && strings.Contains(string(f.Payload), `"`+state+`"`)
	})
	if !ok {
		w.t.Fatalf("the app was not told that the link is %s", state)
	}
	return plainFrame(f), at + 1
}

// testimony is all that a transport said, but for times.
type testimony struct {
	each   []map[string]any
	frames []map[string]any
	rows   []map[string]any
}

// witness goes through the steps on one transport.
type witness struct {
	t   *testing.T
	a   *agent
	id  string
	app *socket

	said   testimony
	delays map[string]step // commands whose result is still to come
	sent   map[string]time.Time
}

func testify(t *testing.T, here *world, a *agent, where string, steps []step) testimony {
	t.Helper()
	id, app, leave, back := contractSession(t, here, a, where)
	w := &witness{t: t, a: a, id: id, app: app, delays: map[string]step{}, sent: map[string]time.Time{}}
	began := app.place()
	for i, s := range steps {
		w.said.each = append(w.said.each, w.take(fmt.Sprintf("c-%d", i), s))
		if t.Failed() {
			t.Fatalf("at step %d of %d: %+v", i, len(steps), s)
		}
	}
	slow := map[string]bool{}
	for cmd, s := range w.delays {
		slow[cmd] = true
		w.result(0, cmd, s)
	}
	for _, f := range app.all()[began:] {
		if glasses.IsStream(f.Type) || f.Type == glasses.TypeAck || f.Type == glasses.TypeCursor || slow[f.ID] {
			continue
		}
		w.said.frames = append(w.said.frames, plainFrame(f))
	}
	w.said.rows = contractRows(eventRows(t, a, id), slow)
	w.said.each = append(w.said.each, w.departure(leave, back))
	return w.said
}

// contractRows are the rows of app and glasses, with ids as they are but for those of events.
func contractRows(rows []map[string]any, slow map[string]bool) []map[string]any {
	var kept []map[string]any
	for _, row := range rows {
		row["type"] = strings.TrimSpace(row["type"].(string))
		id, _ := row["id"].(string)
		if row["type"] == glasses.RowStreamCounted || strings.HasSuffix(row["type"].(string), "tached") || slow[id] {
			continue
		}
		if row["kind"] == glasses.KindEvent {
			delete(row, "id")
		}
		delete(row, "at")
		delete(row, "seq")
		shapeOfMedia(row["payload"])
		kept = append(kept, row)
	}
	return kept
}

func plainFrame(f appFrame) map[string]any {
	var payload any
	_ = json.Unmarshal(f.Payload, &payload)
	plain := map[string]any{"type": f.Type, "payload": shapeOfMedia(payload)}
	if f.Type == glasses.TypeResult {
		plain["id"] = f.ID
	}
	return plain
}

// shapeOfMedia takes away what only material of its own has; each step compares that where it is the same.
func shapeOfMedia(payload any) any {
	fields, _ := payload.(map[string]any)
	if m, ok := fields["media"].(map[string]any); ok {
		for _, own := range []string{"sha256", "bytes", "width", "height"} {
			if m[own] != nil {
				m[own] = "some"
			}
		}
	}
	return payload
}

// take does one step and gives what came of it.
func (w *witness) take(id string, s step) map[string]any {
	w.t.Helper()
	got := map[string]any{}
	from := w.app.place()
	w.control(got, "before", s.before)
	after := from
	if s.send != "" {
		payload := json.RawMessage(s.payload)
		if s.payload == "" {
			payload = json.RawMessage("{}")
		}
		w.sent[id] = time.Now()
		w.app.send(s.send, id, payload)
		if len(s.after) > 0 || s.later {
			w.app.next(from, glasses.TypeAck, id)
		}
		w.control(got, "after", s.after)
		if s.later {
			w.delays[id] = s
		} else {
			after = w.result(from, id, s, got)
		}
	}
	if s.settles {
		for cmd, s := range w.delays {
			if s.send == "camera.video" {
				w.result(0, cmd, s, got)
				delete(w.delays, cmd)
			}
		}
	}
	w.hears(got, s, from, after)
	return got
}

func (w *witness) control(got map[string]any, when string, list []control) {
	w.t.Helper()
	for i, c := range list {
		args := map[string]any{"sessionId": w.id}
		if err := json.Unmarshal([]byte(c.args), &args); err != nil {
			w.t.Fatal(err)
		}
		r := w.a.call(c.tool, args)
		code, _ := r.Structured["code"].(string)
		if r.IsError != (c.code != "") || r.IsError && code != c.code {
			w.t.Errorf("%s %s: want refusal %q, got %v", c.tool, c.args, c.code, r.Structured)
		}
		got[fmt.Sprint(when, i)] = map[string]any{"state": r.Structured["state"], "code": code, "message": r.Structured["message"]}
	}
}

// result waits for the result of a command and gives its place among the frames.
func (w *witness) result(from int, id string, s step, into ...map[string]any) int {
	w.t.Helper()
	f, at := w.app.next(from, glasses.TypeResult, id)
	if took := time.Since(w.sent[id]); took < time.Duration(s.ms)*time.Millisecond-5*time.Millisecond {
		w.t.Errorf("%s was answered after %v already", s.send, took)
	}
	r, err := glasses.ParseResult(f.Payload)
	switch {
	case err != nil:
		w.t.Errorf("%s: %s: %v", s.send, f.Payload, err)
	case s.want == "" && !r.OK, s.want != "" && (r.Error == nil || r.Error.Code != s.want || r.Error.Message == ""):
		w.t.Errorf("%s %s: want %q, got %s", s.send, s.payload, s.want, f.Payload)
	case (r.Media != nil) != (s.want == "" && strings.HasPrefix(s.send, "camera.")):
		w.t.Errorf("%s: media %+v", s.send, r.Media)
	}
	for _, got := range into {
		got["result"] = plainFrame(f)
		if r.Media != nil {
			w.media(got, s, id, from, *r.Media)
		}
	}
	return at
}

// media holds the bytes against what the result says of them.
func (w *witness) media(got map[string]any, s step, id string, from int, m glasses.Media) {
	w.t.Helper()
	f, _ := w.app.next(from, glasses.TypeMedia, id)
	sum := sha256.Sum256(f.body)
	if m.SHA256 != hex.EncodeToString(sum[:]) || m.Bytes != len(f.body) {
		w.t.Errorf("%s: the result says %+v of %d other bytes", s.send, m, len(f.body))
	}
	img, err := jpeg.Decode(bytes.NewReader(f.body)) // of a clip: its first picture
	if err != nil || img.Bounds().Dx() != m.Width || img.Bounds().Dy() != m.Height {
		w.t.Errorf("%s: %+v: %v", s.send, m, err)
	}
	if !s.own {
		got["media"] = m
	}
}

// hears waits for the step's events: those of streams after the result, which is at after.
func (w *witness) hears(got map[string]any, s step, from, after int) {
	w.t.Helper()
	places := map[bool]int{false: from, true: after + 1}
	for i, typ := range s.hears {
		stream := glasses.IsStream(typ)
		f, at := w.app.next(places[stream], typ, "")
		places[stream] = at + 1
		name := fmt.Sprint("heard", i)
		if !stream || typ == glasses.TypeMotion {
			got[name] = plainFrame(f)
			continue
		}
		var m glasses.Media
		if err := json.Unmarshal(f.Payload, &m); err != nil {
			w.t.Errorf("%s: %v", typ, err)
		}
		w.piece(typ, s, f.body, m)
		if s.own { // which of its own it was is chance
			m.SHA256, m.Bytes, m.Width, m.Height = "", 0, 0, 0
		}
		got[name] = m
	}
}

// piece looks at the bytes of a stream's frame.
func (w *witness) piece(typ string, s step, body []byte, m glasses.Media) {
	w.t.Helper()
	sum := sha256.Sum256(body)
	if m.SHA256 != hex.EncodeToString(sum[:]) || m.Bytes != len(body) {
		w.t.Errorf("%s says %+v of %d other bytes", typ, m, len(body))
	}
	if typ == glasses.TypeVideoFrame {
		img, err := jpeg.Decode(bytes.NewReader(body))
		if err != nil || img.Bounds().Dx() != m.Width || img.Bounds().Dy() != m.Height || m.MIME != "image/jpeg" {
			w.t.Errorf("%s %+v: %v", typ, m, err)
		}
		return
	}
	rate := 16000
	if strings.Contains(s.payload, "8000") {
		rate = 8000
	}
	if len(body) != 2*rate/10 || m.SampleRate != rate || m.DurationMs != 100 { // two bytes each
		w.t.Errorf("%s has %d bytes: %+v", typ, len(body), m)
	}
}
