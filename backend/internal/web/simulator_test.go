package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/test/chromium"
)

// pageTest is a simulator page in a real browser. The test acts as the service that the page connects to.
type pageTest struct {
	t       *testing.T
	ctx     context.Context
	site    *httptest.Server
	welcome glasses.PageWelcome
	role    *glasses.Role

	mu    sync.Mutex
	page  *websocket.Conn
	mute  bool // the socket stays open but sends nothing
	heard []heardFrame
	rows  int64
	log   []glasses.Event
	count int
	// history is sent to pages that attach; the service sends the latest rows.
	history []glasses.Event
}

type heardFrame struct {
	glasses.Frame
	body []byte
}

const pageTestSession = "ses_aaaaaaaaaaaaaaaaaaaa"

type pageOption int

const (
	// withoutProgram is for a server built without `make wasm`.
	withoutProgram pageOption = iota
	// withCamera lets the page use the camera and the microphone. The browser denies them otherwise.
	withCamera
)

// newPageTest opens the page as a signed-in user.
func newPageTest(t *testing.T, model string, options ...pageOption) *pageTest {
	t.Helper()
	s := &pageTest{t: t}
	m, ok := glasses.Model(model)
	if !ok {
		t.Fatalf("no model %s", model)
	}
	s.welcome = glasses.PageWelcome{SessionID: pageTestSession, DeviceModel: m, Display: json.RawMessage("null"),
		Glasses: new(glasses.FreshState().ForApp(glasses.LinkConnected, glasses.ClockReal))}
	f := newDashboardWorld(t)
	f.frozen = time.Time{}
	s.site = s.serve(f, slices.Contains(options, withoutProgram))
	s.ctx = newBrowser(t)
	if slices.Contains(options, withCamera) {
		if err := allow(s.ctx, s.site.URL, "camera", "microphone"); err != nil {
			t.Fatal(err)
		}
	}
	s.signIn()
	s.do(chromedp.Navigate(s.site.URL + "/s/" + pageTestSession))
	s.see(`["Connected", "Not running"].includes(document.querySelector("#socket")?.textContent)`)
	return s
}

func (s *pageTest) serve(f *dashboardWorld, bare bool) *httptest.Server {
	w, err := New(Options{Accounts: f.accounts, Links: f.links, Key: bytes.Repeat([]byte("k"), minKeyBytes), InstanceID: "test01",
		Embedded: true, Simulators: &Simulators{Sessions: s.newSessions(f), ServePage: s.servePage,
			AppEndpoint: func(id string) string { return "ws://localhost/api/sessions/" + id + "/app" }}})
	if err != nil {
		s.t.Fatal(err)
	}
	if bare {
		delete(w.assets, programName)
	}
	mux := http.NewServeMux()
	w.Mount(mux)
	site := httptest.NewServer(mux)
	s.t.Cleanup(site.Close)
	return site
}

// newSessions returns a service that has the page's session.
func (s *pageTest) newSessions(h *dashboardWorld) *sessions.Service {
	h.addSession(pageTestSession, s.welcome.DeviceModel.ID, "", 0)
	h.exec("UPDATE sessions SET expires_at = $1", time.Now().Add(time.Hour).UnixMilli())
	return h.sessions
}

// servePage plays the relay.
func (s *pageTest) servePage(rw http.ResponseWriter, r *http.Request, _ string, _ func(context.Context) bool) {
	ws, err := websocket.Accept(rw, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(glasses.MaxBinary)
	s.mu.Lock()
	s.page = ws
	s.mu.Unlock()
	s.send(glasses.TypeWelcome, "", s.welcome)
	if s.role != nil {
		s.send(glasses.TypeRole, "", s.role)
	}
	for _, e := range s.history {
		s.send(glasses.TypeRow, "", e)
	}
	s.send(glasses.TypePeers, "", glasses.Peers{Apps: []glasses.AppInfo{{Name: "Hello Glasses", Version: "1.2"}},
		Pages: 1})
	var beating sync.WaitGroup
	ctx, stop := context.WithCancel(r.Context())
	beating.Go(func() { s.beat(ctx) })
	defer beating.Wait()
	defer stop()
	for {
		kind, data, err := ws.Read(ctx)
		if err != nil {
			return
		}
		s.take(kind, data)
	}
}

func (s *pageTest) beat(ctx context.Context) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.send(glasses.TypeBeat, "", struct{}{})
		case <-ctx.Done():
			return
		}
	}
}

// take records a frame from the page and acknowledges it with a row of the log.
func (s *pageTest) take(kind websocket.MessageType, data []byte) {
	var f glasses.Frame
	var body []byte
	var err error
	if kind == websocket.MessageBinary {
		f, body, err = glasses.ParseBinary(data)
	} else {
		f, err = glasses.Parse(data)
	}
	if err != nil {
		s.t.Errorf("the page sent an invalid frame %q: %v", data[:min(len(data), 200)], err)
		return
	}
	defer func() { // after its row, so that a test that received the frame can rely on the row
		s.mu.Lock()
		s.heard = append(s.heard, heardFrame{f, body})
		s.mu.Unlock()
	}()
	if glasses.IsStream(f.Type) || strings.HasPrefix(f.ID, "ctl-") {
		return
	}
	k := glasses.KindOf(f.Type)
	s.send(glasses.TypeAck, "", glasses.Ack{ID: f.ID, Kind: k, Seq: 1})
	chip := glasses.ChipOf(f.Type)
	if r, err := glasses.ParseResult(f.Payload); f.Type == glasses.TypeResult && err == nil && r.Error != nil {
		chip = glasses.ChipErrors
	} else if f.Type == glasses.TypeResult {
		chip = glasses.ChipDisplay
	}
	s.row(glasses.Event{Kind: k, Chip: chip, Type: f.Type, ID: f.ID, Sender: glasses.SenderGlasses, Payload: f.Payload})
}

func (s *pageTest) row(e glasses.Event) {
	s.mu.Lock()
	s.rows++
	e.Seq, e.At = s.rows, time.Now().UnixMilli()
	s.log = append(s.log, e)
	s.mu.Unlock()
	s.send(glasses.TypeRow, "", e)
}

// send sends a frame to the page unless it is mute.
func (s *pageTest) send(typ, id string, payload any) {
	f, err := glasses.New(typ, id, time.Now().UnixMilli(), payload)
	if err != nil {
		s.t.Error(err)
		return
	}
	data, err := f.Encode()
	if err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mute || s.page == nil {
		return
	}
	_ = s.page.Write(context.Background(), websocket.MessageText, data) // the page may be navigating away
}

// sendBinary sends a binary frame to the page.
func (s *pageTest) sendBinary(typ, id string, body []byte) {
	s.t.Helper()
	data, err := glasses.EncodeBinary(glasses.Frame{Type: typ, ID: id, At: 1, Payload: json.RawMessage("{}")}, body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.page.Write(context.Background(), websocket.MessageBinary, data)
}

// command sends a command of an app and returns its ID.
func (s *pageTest) command(typ string, payload any) string {
	s.mu.Lock()
	s.count++
	id := fmt.Sprintf("app-%d", s.count)
	s.mu.Unlock()
	raw, err := json.Marshal(payload)
	if err != nil {
		s.t.Fatal(err)
	}
	s.row(glasses.Event{Kind: glasses.KindRequest, Chip: glasses.ChipOf(typ), Type: typ, ID: id,
		Sender: glasses.SenderApp, Payload: raw})
	s.send(typ, id, payload)
	return id
}

// next waits for a frame of this type, and with this ID unless it is empty, and removes it from the received frames.
func (s *pageTest) next(typ, id string) heardFrame {
	s.t.Helper()
	for end := time.Now().Add(chromium.StepLimit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		for i, f := range s.heard {
			if f.Type == typ && (id == "" || f.ID == id) {
				s.heard = append(s.heard[:i:i], s.heard[i+1:]...)
				s.mu.Unlock()
				return f
			}
		}
		s.mu.Unlock()
	}
	s.t.Fatalf("the page did not send %s %s; it sent %v and shows:\n%s", typ, id, s.types(), s.text("body"))
	return heardFrame{}
}

func (s *pageTest) types() (types []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.heard {
		types = append(types, f.Type+" "+string(f.Payload))
	}
	return types
}

// result waits for the result of a command.
func (s *pageTest) result(id string) glasses.Result {
	s.t.Helper()
	r, err := glasses.ParseResult(s.next(glasses.TypeResult, id).Payload)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}
