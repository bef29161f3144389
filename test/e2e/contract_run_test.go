//go:build unix

package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/glasses"
)

// contractRecord holds everything that a transport sent, without timestamps.
type contractRecord struct {
	each   []map[string]any
	frames []map[string]any
	rows   []map[string]any
}

// contractRun performs the steps on one transport.
type contractRun struct {
	t   *testing.T
	a   *agent
	id  string
	app *socket

	said   contractRecord
	delays map[string]step // commands whose result has not arrived yet
	sent   map[string]time.Time
}

func runContract(t *testing.T, here *world, a *agent, where string, steps []step) contractRecord {
	t.Helper()
	id, app, leave, back := contractSession(t, here, a, where)
	w := &contractRun{t: t, a: a, id: id, app: app, delays: map[string]step{}, sent: map[string]time.Time{}}
	began := app.place()
	for i, s := range steps {
		w.said.each = append(w.said.each, w.take(fmt.Sprintf("c-%d", i), s))
		if t.Failed() {
			t.Fatalf("failed at step %d of %d: %+v", i, len(steps), s)
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

// contractRows returns the rows of app and glasses. Rows of commands keep their ids, and ids of events are removed.
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

// shapeOfMedia removes the parts that depend on the host's own images and sounds. Where both transports must use the
// same media, the step compares the bytes.
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

// take performs one step and returns its outcome.
func (w *contractRun) take(id string, s step) map[string]any {
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

func (w *contractRun) control(got map[string]any, when string, list []control) {
	w.t.Helper()
	for i, c := range list {
		args := map[string]any{"sessionId": w.id}
		if err := json.Unmarshal([]byte(c.args), &args); err != nil {
			w.t.Fatal(err)
		}
		r := w.a.call(c.tool, args)
		code, _ := r.Structured["code"].(string)
		if r.IsError != (c.code != "") || r.IsError && code != c.code {
			w.t.Errorf("%s %s: got %[4]v, want refusal %[3]q", c.tool, c.args, c.code, r.Structured)
		}
		got[fmt.Sprint(when, i)] = map[string]any{"state": r.Structured["state"], "code": code,
			"message": r.Structured["message"]}
	}
}

// result waits for the result of a command and returns its index in the list of frames.
func (w *contractRun) result(from int, id string, s step, into ...map[string]any) int {
	w.t.Helper()
	f, at := w.app.next(from, glasses.TypeResult, id)
	if took := time.Since(w.sent[id]); took < time.Duration(s.ms)*time.Millisecond-5*time.Millisecond {
		w.t.Errorf("%s was answered after %v, before its delay ended", s.send, took)
	}
	r, err := glasses.ParseResult(f.Payload)
	switch {
	case err != nil:
		w.t.Errorf("%s: parse result %s: %v", s.send, f.Payload, err)
	case s.want == "" && !r.OK, s.want != "" && (r.Error == nil || r.Error.Code != s.want || r.Error.Message == ""):
		w.t.Errorf("%s %s: want %q, got %s", s.send, s.payload, s.want, f.Payload)
	case (r.Media != nil) != (s.want == "" && strings.HasPrefix(s.send, "camera.")):
		w.t.Errorf("%s: got media %+v, want it only with a picture or clip", s.send, r.Media)
	}
	for _, got := range into {
		got["result"] = plainFrame(f)
		if r.Media != nil {
			w.media(got, s, id, from, *r.Media)
		}
	}
	return at
}

// media checks the bytes against their description in the result.
func (w *contractRun) media(got map[string]any, s step, id string, from int, m glasses.Media) {
	w.t.Helper()
	f, _ := w.app.next(from, glasses.TypeMedia, id)
	sum := sha256.Sum256(f.body)
	if m.SHA256 != hex.EncodeToString(sum[:]) || m.Bytes != len(f.body) {
		w.t.Errorf("%s: the description %+v does not match the %d bytes", s.send, m, len(f.body))
	}
	img, err := jpeg.Decode(bytes.NewReader(f.body)) // for a clip, its first frame
	if err != nil || img.Bounds().Dx() != m.Width || img.Bounds().Dy() != m.Height {
		w.t.Errorf("%s: the picture does not match %+v: %v", s.send, m, err)
	}
	if !s.own {
		got["media"] = m
	}
}

// hears waits for the step's events. Events of streams come after the result, whose index is after.
func (w *contractRun) hears(got map[string]any, s step, from, after int) {
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
		if s.own { // the picture or sound that arrives varies
			m.SHA256, m.Bytes, m.Width, m.Height = "", 0, 0, 0
		}
		got[name] = m
	}
}

// piece checks the bytes of a stream frame against their description.
func (w *contractRun) piece(typ string, s step, body []byte, m glasses.Media) {
	w.t.Helper()
	sum := sha256.Sum256(body)
	if m.SHA256 != hex.EncodeToString(sum[:]) || m.Bytes != len(body) {
		w.t.Errorf("%s: the description %+v does not match the %d bytes", typ, m, len(body))
	}
	if typ == glasses.TypeVideoFrame {
		img, err := jpeg.Decode(bytes.NewReader(body))
		if err != nil || img.Bounds().Dx() != m.Width || img.Bounds().Dy() != m.Height || m.MIME != "image/jpeg" {
			w.t.Errorf("%s: the picture does not match %+v: %v", typ, m, err)
		}
		return
	}
	rate := 16000
	if strings.Contains(s.payload, "8000") {
		rate = 8000
	}
	if len(body) != 2*rate/10 || m.SampleRate != rate || m.DurationMs != 100 { // two bytes per sample
		w.t.Errorf("%s: %d bytes do not match %+v", typ, len(body), m)
	}
}
