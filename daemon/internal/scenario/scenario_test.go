package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/png"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// ours opens files with the permissions of this process.
var ours = clientio.FilesOf(caller.Caller{IO: local.New()})

func TestSubset(t *testing.T) {
	for _, c := range []struct{ want, got, says string }{
		{`{}`, `{"a":1}`, ""},
		{`{"a":1}`, `{"a":1,"b":2}`, ""},
		{`{"a":{"b":"x"}}`, `{"a":{"b":"x","c":[]}}`, ""},
		{`{"a":[1,{"b":2}]}`, `{"a":[1,{"b":2}]}`, ""},
		{`{"a":[1]}`, `{"a":[1,2]}`, "payload.a is [1,2], not [1]"},
		{`{"a":[{"b":2}]}`, `{"a":[{"b":2,"c":3}]}`, `payload.a is [{"b":2,"c":3}], not [{"b":2}]`},
		{`{"a":null}`, `{"a":null}`, ""},
		{`{"a":null}`, `{}`, "payload.a is missing"},
		{`{"a":{"b":1}}`, `{"a":7}`, "payload.a must be an object, not 7"},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, "payload.a is 9007199254740992, not 9007199254740993"},
	} {
		if got := subset("payload", json.RawMessage(c.want), json.RawMessage(c.got)); got != c.says {
			t.Errorf("%s in %s: %q, want %q", c.want, c.got, got, c.says)
		}
	}
}

// The stored name of a step's picture never equals a name that the run itself uses.
func TestPictureName_TakesNoOther(t *testing.T) {
	for name, want := range map[string]string{"end": "end", "frame-001": "picture-frame-001",
		"Frame-001": "picture-Frame-001", "step-1-want": "picture-step-1-want", "step-2-failed": "picture-step-2-failed",
		"frame": "frame", "step-two": "step-two", "steps-1-2": "steps-1-2"} {
		if got := pictureName(name); got != want {
			t.Errorf("%q is stored as %q, want %q", name, got, want)
		}
	}
}

func TestMarks(t *testing.T) {
	draw := func(w int, set ...image.Point) []byte {
		img := image.NewNRGBA(image.Rect(0, 0, w, 4))
		for i := range img.Pix {
			img.Pix[i] = 255
		}
		for _, p := range set {
			img.SetNRGBA(p.X, p.Y, color.NRGBA{0, 0, 0, 255})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	marked, count := marks(draw(4), draw(4, image.Pt(1, 1), image.Pt(2, 3)))
	img, err := png.Decode(bytes.NewReader(marked))
	if err != nil || count != 2 || color.NRGBAModel.Convert(img.At(1, 1)) != (color.NRGBA{255, 0, 0, 255}) ||
		color.NRGBAModel.Convert(img.At(0, 0)) != (color.NRGBA{85, 85, 85, 255}) {
		t.Errorf("%d pixels differ, error %v, image %v; want 2 in red", count, err, img)
	}
	if marked, _ := marks(draw(4), draw(5)); marked != nil {
		t.Error("marks combined pictures of two sizes")
	}
}

// pageOnly is a browser session without an open page: it has only rows.
type pageOnly struct {
	rows []glasses.Event
}

func (p *pageOnly) Get(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{SessionID: "ses_abcdefgh", DeviceModel: "rayban_display", Transport: backend.TransportBrowser,
		Clock: backend.ClockReal, NowMs: 5000}, nil
}

func (p *pageOnly) Control(context.Context, backend.Target, string, string, any, []byte) (glasses.Result, error) {
	return glasses.Result{}, &problem.Error{Code: problem.CodeNotConnected, Message: "no simulator page is open"}
}

func (p *pageOnly) Advance(context.Context, string, int64) (int64, bool, error) {
	return 0, false, errors.New("not here")
}

func (p *pageOnly) Wait(ctx context.Context, _ backend.Target, _ string, since int64, _ int,
	wait time.Duration) (backendapi.EventPage, error) {
	page := backendapi.EventPage{Next: since}
	for _, e := range p.rows[min(int(since), len(p.rows)):] {
		raw, _ := json.Marshal(e)
		page.Events = append(page.Events, raw)
		page.Next = e.Seq
	}
	if len(page.Events) == 0 && wait > 0 {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		<-ctx.Done()
	}
	return page, nil
}

func (p *pageOnly) Look(context.Context, backend.Target, string) (session.Display, error) {
	return session.Display{}, &problem.Error{Code: problem.CodeNotConnected, Message: "no simulator page is open"}
}

func (p *pageOnly) Media(string, string) (string, []byte, error) {
	return "", nil, &problem.Error{Code: problem.CodeNotFound, Message: "not here"}
}

func rows(events ...glasses.Event) []glasses.Event {
	for i := range events {
		events[i].Seq, events[i].At = int64(i+1), int64(1000*(i+1))
		if events[i].Payload == nil {
			events[i].Payload = json.RawMessage(`{}`)
		}
	}
	return events
}

// If the user has closed the page of a browser session, the step that needs the page fails with the reason.
func TestABrowserSessionWithoutAPage(t *testing.T) {
	p := &pageOnly{}
	r := New(p)
	r.attachWait = 10 * time.Millisecond
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	s := scenario.Scenario{Name: "s", Steps: []scenario.Step{{Input: &glasses.Input{Kind: "tap"}}, {Picture: new("end")}}}
	data, _ := s.Encode()
	if err := writeFile(t.Context(), ours, dir, ".", "s.json", data); err != nil {
		t.Fatal(err)
	}
	_, err := r.Run(t.Context(), Request{Files: ours, SessionID: "ses_abcdefgh", Path: path})
	var refused *problem.Error
	if !errors.As(err, &refused) || refused.Code != problem.CodeNotConnected ||
		!strings.Contains(refused.Message, "no app attached") {
		t.Errorf("a session without an app: %v, want not_connected", err)
	}
	p.rows = rows(glasses.Event{Type: glasses.RowAppAttached, Sender: glasses.SenderService, Kind: glasses.KindEvent})
	report, err := r.Run(t.Context(), Request{Files: ours, SessionID: "ses_abcdefgh", Path: path})
	if err != nil || report.Verdict != Fail || !strings.Contains(report.Steps[0].Message, "no simulator page") ||
		report.Steps[1].Verdict != Skipped {
		t.Errorf("%+v, %v", report, err)
	}
}

// A recording made without an app would pass with any build.
func TestRecordWithoutAnApp(t *testing.T) {
	p := &pageOnly{rows: rows(glasses.Event{Type: glasses.RowGlassesAttached, Sender: glasses.SenderService,
		Kind: glasses.KindEvent})}
	rec, err := New(p).Record(t.Context(), RecordRequest{Files: ours, SessionID: "ses_abcdefgh",
		Path: filepath.Join(t.TempDir(), "rec.json")})
	var refused *problem.Error
	if !errors.As(err, &refused) || refused.Code != problem.CodeNotFound {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestRecordOfABrowserSession(t *testing.T) {
	p := &pageOnly{rows: rows(
		glasses.Event{Type: glasses.RowAppAttached, Sender: glasses.SenderService, Kind: glasses.KindEvent},
		glasses.Event{Type: glasses.TypeInput, Sender: glasses.SenderGlasses, Kind: glasses.KindEvent,
			Payload: json.RawMessage(`{"kind":"tap","x":1,"y":2,"target":"go"}`)},
		glasses.Event{Type: glasses.TypeCameraPhoto, ID: "a-1", Sender: glasses.SenderApp, Kind: glasses.KindRequest},
		glasses.Event{Type: glasses.TypeResult, ID: "a-1", Sender: glasses.SenderGlasses, Kind: glasses.KindResult,
			Payload: json.RawMessage(`{"ok":true,"media":{"sha256":"` + strings.Repeat("0", 64) +
				`","mime":"image/jpeg","bytes":1}}`)},
		glasses.Event{Type: glasses.TypePermission, Sender: glasses.SenderGlasses, Kind: glasses.KindEvent,
			Payload: json.RawMessage(`{"part":"camera","state":"denied"}`)},
		glasses.Event{Type: "com.example.score", ID: "a-2", Sender: glasses.SenderApp, Kind: glasses.KindEvent,
			Payload: json.RawMessage(`{"points":1}`)},
	)}
	path := filepath.Join(t.TempDir(), "deep", "er", "rec.json")
	rec, err := New(p).Record(t.Context(), RecordRequest{Files: ours, SessionID: "ses_abcdefgh", Path: path})
	if err != nil || len(rec.Notes) != 1 || rec.Requests != 2 || rec.Media != 0 {
		t.Fatalf("%+v, %v", rec, err)
	}
	s, err := Load(t.Context(), ours, path)
	if err != nil {
		t.Fatal(err)
	}
	var acts []string
	for _, step := range s.Steps {
		acts = append(acts, stepName(&step))
	}
	if got, want := strings.Join(acts,
		"; "), "advance 1000 ms; input tap; advance 3000 ms; state; advance 1000 ms"; got != want {
		t.Errorf("steps %s\nwant  %s", got, want)
	}
	if s.Steps[1].Input.Target != "" || s.Recorded.Trace[0].At != 2000 || s.Recorded.Clock != backend.ClockReal ||
		s.DeviceModel != "rayban_display" {
		t.Errorf("%+v %+v", s, s.Recorded)
	}
}
