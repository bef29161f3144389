//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

// site is a backend from the point of view of one account.
type site struct {
	b      *remoteBackend
	token  string
	person *person
}

func newSite(t *testing.T, b *remoteBackend, email string) *site {
	t.Helper()
	code := issueCode(t, b)
	s := &site{b: b, person: newPerson(t)}
	s.person.approve(code.VerificationURL, email)
	var linked struct{ AuthToken string }
	status, body := code.poll(t, b)
	if err := json.Unmarshal([]byte(body), &linked); err != nil || linked.AuthToken == "" {
		t.Fatalf("poll for the token: got status %d %s, want a token", status, body)
	}
	s.token = linked.AuthToken
	return s
}

func (s *site) call(t *testing.T, method, path string, body, into any) {
	t.Helper()
	data, _ := json.Marshal(body)
	req, err := http.NewRequest(method, s.b.url+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s: got status %d (error %v), want success", method, path, resp.StatusCode, err)
	}
}

func (s *site) session(t *testing.T) target {
	t.Helper()
	var made struct{ SessionID, AppEndpoint string }
	s.call(t, "POST", "/api/sessions", map[string]any{"project": "com.example.trails",
		"deviceModel": "rayban_display", "fresh": true}, &made)
	var minted struct{ AppSecret string }
	s.call(t, "POST", "/api/sessions/"+made.SessionID+"/secrets", nil, &minted)
	return target{made.SessionID, made.AppEndpoint, minted.AppSecret}
}

func (s *site) rows(t *testing.T, id string) []map[string]any {
	t.Helper()
	var rows []map[string]any
	for since := int64(0); ; {
		var page struct {
			Events []map[string]any
			Next   int64
			More   bool
		}
		s.call(t, "GET", fmt.Sprintf("/api/sessions/%s/events?since=%d&limit=500", id, since), nil, &page)
		rows, since = append(rows, page.Events...), page.Next
		if !page.More {
			return rows
		}
	}
}

// live returns the URL of a session's page socket.
func (s *site) live(id string) string {
	return "ws" + strings.TrimPrefix(s.b.url, "http") + "/s/" + id + "/live?since=0"
}

// dialling returns the options for attaching a page with this user's browser cookies.
func (s *site) dialling() *websocket.DialOptions {
	return &websocket.DialOptions{HTTPClient: s.person.client, HTTPHeader: http.Header{"Origin": {s.b.url}}}
}

// page attaches a page that only reads.
func (s *site) page(t *testing.T, id string) *socket {
	t.Helper()
	p := dial(t, s.live(id), s.dialling())
	p.listen()
	p.next(0, glasses.TypeRole, "")
	return p
}

// puppet attaches a page that answers every command with ok, and photos with the largest allowed size.
func (s *site) puppet(t *testing.T, id string) {
	t.Helper()
	p := s.page(t, id)
	huge := bytes.Repeat([]byte{0xff}, glasses.MaxBinary-glasses.MaxHeader)
	go func() {
		for at := 0; ; at++ {
			f, place, ok := p.find(at, time.Hour, func(f appFrame) bool { return glasses.IsCommand(f.Type) })
			if !ok {
				return
			}
			at = place
			if f.Type == glasses.TypeCameraPhoto {
				data, _ := glasses.EncodeBinary(glasses.Frame{Type: glasses.TypeMedia, ID: f.ID}, huge)
				if p.ws.Write(context.Background(), websocket.MessageBinary, data) != nil {
					return
				}
			}
			answer, _ := glasses.New(glasses.TypeResult, f.ID, 0, glasses.Result{OK: true})
			data, _ := answer.Encode()
			if p.ws.Write(context.Background(), websocket.MessageText, data) != nil {
				return
			}
		}
	}()
}

// refusedPage checks the HTTP status of a refused page.
func refusedPage(t *testing.T, what, address string, o *websocket.DialOptions, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ws, resp, err := websocket.Dial(ctx, address, o)
	if err == nil {
		ws.CloseNow()
		t.Errorf("%s was accepted, want a refusal", what)
	} else if resp == nil || resp.StatusCode != want {
		t.Errorf("%s: got %v, want status %d", what, err, want)
	}
}

func badPages(t *testing.T, a arena, hostile target) {
	if a.site == nil {
		return // the local simulator has no pages
	}
	own := a.site.b.url
	header := func(origin string) http.Header {
		if origin == "" {
			return nil
		}
		return http.Header{"Origin": {origin}}
	}
	client := a.site.person.client
	mine := a.site.live(hostile.id)
	theirs := a.site.live(newSite(t, a.site.b, "grace@example.org").session(t).id)
	refusedPage(t, "a page without a cookie", mine, &websocket.DialOptions{HTTPHeader: header(own)}, 401)
	refusedPage(t, "a page of another account", theirs, &websocket.DialOptions{HTTPClient: client,
		HTTPHeader: header(own)}, 404)
	refusedPage(t, "a page of no session", a.site.live("ses_abcdefgh234567abcdef"),
		&websocket.DialOptions{HTTPClient: client, HTTPHeader: header(own)}, 404)
	for _, origin := range []string{"https://evil.example", "null", "",
		strings.Replace(own, "localhost", "localhost.evil.example", 1)} {
		refusedPage(t, "a page of the origin "+origin, mine,
			&websocket.DialOptions{HTTPClient: client, HTTPHeader: header(origin)}, 403)
	}
	s := a.open(t, true)
	badPageFrames(t, a, s)
	badPageBytes(t, a, s)
	for what, data := range map[string]struct {
		kind websocket.MessageType
		size int
	}{"a text frame": {websocket.MessageText, glasses.MaxFrame + 1},
		"a binary frame": {websocket.MessageBinary,
			glasses.MaxBinary + 1}, "a text frame of several megabytes": {websocket.MessageText, glasses.MaxBinary - 1}} {
		p := a.site.page(t, s.id)
		_ = p.ws.Write(t.Context(), data.kind, bytes.Repeat([]byte(" "), data.size)) // the connection may already be closed
		if code := p.closed(15 * time.Second); code != websocket.StatusMessageTooBig {
			t.Errorf("%s that is too large: closed with %d", what, code)
		}
	}
}

// badPageFrames sends frames that no page may send. Each frame is refused with an error that has the frame's id, and
// the page stays attached.
func badPageFrames(t *testing.T, a arena, s target) {
	p := a.site.page(t, s.id)
	app := attach(t, s.endpoint, s.secret)
	types := append(refusedTypes(), glasses.TypeBarrier, glasses.TypeMedia, glasses.TypeAudioChunk,
		glasses.TypeVideoFrame)
	for _, c := range glasses.Commands() {
		types = append(types, c.Type)
	}
	for i, typ := range types {
		id := fmt.Sprintf("page-%d", i)
		p.send(typ, id, struct{}{})
		wantRefusal(t, p, id, glasses.CodeBadFrame)
	}
	for i, bad := range []struct{ typ, payload, code string }{
		{"result", `{"ok":true}`, "bad_frame"}, {"result", `{}`, "bad_payload"},
		{"result", `{"ok":true,"error":{"code":"busy","message":"both"}}`, "bad_payload"},
		{"link", `{"state":"superb"}`, "bad_payload"}, {"device", `{"deviceModel":{"id":"no_such"}}`, "bad_payload"},
	} {
		id := fmt.Sprintf("odd-%d", i)
		p.send(bad.typ, id, json.RawMessage(bad.payload))
		wantRefusal(t, p, id, bad.code)
	}
	// The page still works as the glasses.
	app.send("clock.sleep", "after", glasses.Sleep{})
	p.next(0, "clock.sleep", "after")
	p.send("result", "after", glasses.Result{OK: true})
	app.next(0, "result", "after")
	for _, f := range app.all() {
		if f.Type != "welcome" && f.ID != "after" && f.Type != "cursor" {
			t.Errorf("the app received an unexpected %s %s", f.Type, f.Payload)
		}
	}
}

// badPageBytes sends binary frames with wrong headers.
func badPageBytes(t *testing.T, a arena, s target) {
	p := a.site.page(t, s.id)
	head := func(n int, rest string) []byte { return append([]byte{byte(n >> 8), byte(n)}, rest...) }
	whole := func(f string) []byte { return head(len(f), f+"body") }
	for what, data := range map[string][]byte{
		"an empty frame": {}, "half a length": {1},
		"a header longer than the frame": head(4000, "{}"), "a header over the limit": head(65535,
			strings.Repeat(" ", 65535)),
		"no header": head(0, "{}"), "a header of noise": whole("\xff\xfe\x00"),
		"a header that is cut": head(20, `{"v":1,"type":"media","id":"x","at":1}`),
		"a command":            whole(`{"v":1,"type":"camera.photo","id":"x","at":1}`), "a control frame": whole(`{"v":1,"type":"sim.camera","id":"x","at":1}`),
		"a result": whole(`{"v":1,"type":"result","id":"x","at":1,"payload":{"ok":true}}`), "no id": whole(`{"v":1,"type":"media","at":1}`),
	} {
		from := p.place()
		p.write(websocket.MessageBinary, data)
		if _, _, ok := p.find(from, 5*time.Second, func(f appFrame) bool {
			return f.Type == "error" &&
				strings.Contains(string(f.Payload), `"bad_frame"`)
		}); !ok {
			t.Errorf("%s was not refused", what)
		}
	}
}

// silentPage attaches a page that never answers. The app receives a timeout error after slightly more than ten
// seconds.
func silentPage(t *testing.T, a arena, _ target) {
	if a.site == nil {
		return
	}
	s := a.site.session(t)
	p := a.site.page(t, s.id)
	app := attach(t, s.endpoint, s.secret)
	began := time.Now()
	app.send("display.clear", "lost", struct{}{})
	f, _ := app.next(0, "result", "lost")
	if took := time.Since(began); !strings.Contains(string(f.Payload), `"timeout"`) || took < 10*time.Second ||
		took > 14*time.Second {
		t.Errorf("an unanswered command: got %s after %v, want timeout after 10 to 14 s", f.Payload, took)
	}
	from := p.place()
	p.send("result", "lost", glasses.Result{OK: true})
	if _, _, ok := p.find(from, 5*time.Second, func(f appFrame) bool {
		return f.Type == "error" &&
			f.ID == "lost"
	}); !ok {
		t.Error("a result after the timeout was not refused")
	}
}

// halfOpenPage attaches a page that does not answer pings, as if its network had failed.
func halfOpenPage(t *testing.T, a arena, _ target) {
	if a.site == nil {
		return
	}
	s := a.open(t, true)
	dial(t, a.site.live(s.id), a.site.dialling())
	mustLeave(t, a, s, "glasses")
}

// slowPage attaches a page that reads none of the app's frames. It is disconnected, and the app receives an error for
// each command.
func slowPage(t *testing.T, a arena, _ target) {
	if a.site == nil {
		return
	}
	s := a.open(t, true)
	p := dial(t, a.site.live(s.id), a.site.dialling())
	app := attach(t, s.endpoint, s.secret)
	must(t, "the page is attached", func() bool {
		return slices.ContainsFunc(a.rows(t,
			s.id), func(row map[string]any) bool { return row["type"] == "glasses.attached" })
	})
	const shows = 400
	tree := fmt.Sprintf(`{"tree":{"type":"text","text":%q}}`, strings.Repeat("x", 60_000))
	for i := range shows { // on a busy machine the app may be disconnected before it has sent all commands
		if !app.trySend("display.show", fmt.Sprintf("show-%d", i), json.RawMessage(tree)) {
			break
		}
	}
	p.listen()
	wantSlow(t, p)
	var again *socket // the app may be too slow for so many errors; then it reconnects as PROTOCOL.md describes
	for i := range shows {
		id := fmt.Sprintf("show-%d", i)
		is := func(typ string) func(appFrame) bool {
			return func(f appFrame) bool { return f.Type == typ && f.ID == id }
		}
		f, _, ok := app.find(0, 15*time.Second, is("result"))
		if !ok && app.ended() {
			if again == nil {
				again = attachSince(t, s.endpoint, s.secret, 0)
			}
			if _, _, stored := app.find(0, 0, is("ack")); !stored {
				again.send("display.show", id, json.RawMessage(tree))
			}
			f, _, _ = again.find(0, 15*time.Second, is("result"))
		}
		// Commands sent long before the page disconnected may have reached their timeout of ten seconds.
		if !strings.Contains(string(f.Payload), `"not_connected"`) &&
			!strings.Contains(string(f.Payload), `"timeout"`) {
			t.Fatalf("%s: got %s, want an error; the app has %d frames, reconnected: %v", id, f.Payload, len(app.all()),
				again != nil)
		}
	}
}

// otherAccounts tries every operation that only the session's own account may perform.
func otherAccounts(t *testing.T, a arena, s target) {
	if a.site == nil {
		return
	}
	stranger := newSite(t, a.site.b, "eve@example.org")
	for token, want := range map[string]int{stranger.token: http.StatusNotFound, "at_wrong": http.StatusUnauthorized,
		"": http.StatusBadRequest} {
		for _, path := range []string{"POST /control", "POST /secrets",
			"POST /assistant-script", "GET /events", "GET ", "DELETE "} {
			method, rest, _ := strings.Cut(path, " ")
			req, err := http.NewRequest(method, s.api(a.site.b)+rest,
				strings.NewReader(`{"type":"sim.state","payload":{"worn":false}}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s with the token %.8q: %d, want %d", path, token, resp.StatusCode, want)
			}
		}
	}
}

func (s target) api(b *remoteBackend) string { return b.url + "/api/sessions/" + s.id }
