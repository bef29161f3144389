package glassespage

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
)

var specs = []driver.LinkSpec{{Key: "left", NamePrefix: "Pair "}, {Key: "right", NamePrefix: "Pair "}}

// newPage serves a page whose pair has peripherals named "Pair left" and "Pair right".
func newPage(t *testing.T) *Page {
	t.Helper()
	p, err := Serve(t.Context(), Options{
		Log: slog.New(slog.DiscardHandler), Title: "Glasses", Links: specs, Changed: func() {}, Left: func() {},
		Accept: func(key, name string, _ map[string]string) *problem.Error {
			if name != "Pair "+key {
				return &problem.Error{Code: problem.CodeRefused, Message: "the wrong one", FixHint: "choose the other"}
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestPage_CarriesALink(t *testing.T) {
	p := newPage(t)
	_, s := open(t, p)
	if w := p.Waits(); w == nil || w.Code != problem.CodeNotChosen {
		t.Errorf("got %v, want glasses that are not chosen", w)
	}
	conns := make(chan *Conn, 1)
	go func() {
		c, _ := p.Open(context.Background(), "left")
		conns <- c
	}()
	s.send(`{"type":"chosen","link":"left","name":"Pair left"}`)
	s.await(isType(typeOpen))
	s.send(`{"type":"up","link":"left"}`)
	c := <-conns
	if c == nil || c.Name() != "Pair left" {
		t.Fatalf("got the connection %v, want one to the left", c)
	}
	written := make(chan error, 1)
	go func() { written <- c.Write(context.Background(), []byte("hi"), true) }()
	if got := s.await(isType("write")).Title; got != "\x00\x01hi" {
		t.Errorf("got the value %q, want link 0, with response, hi", got)
	}
	s.send(`{"type":"written","link":"left"}`)
	if err := <-written; err != nil {
		t.Errorf("got %v, want a written value", err)
	}
	if err := s.ws.Write(t.Context(), websocket.MessageBinary, []byte("\x00yes")); err != nil {
		t.Fatal(err)
	}
	if got := string(<-c.Notifications()); got != "yes" {
		t.Errorf("got the notification %q, want yes", got)
	}
	s.send(`{"type":"down","link":"left","problem":"not_in_range"}`)
	if _, more := <-c.Notifications(); more || codeOf(c.Err()) != problem.CodeNotInRange {
		t.Errorf("got %v, want a link that is not in range", c.Err())
	}
	if err := c.Write(t.Context(), []byte("late"), false); codeOf(err) != problem.CodeLost {
		t.Errorf("write after the end: got %v, want lost", err)
	}
}

func codeOf(err error) string {
	if p := (*problem.Error)(nil); errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// Closing the page closes its links, which the next page can open again.
func TestPage_WaitsForTheNextPage(t *testing.T) {
	p := newPage(t)
	v, s := open(t, p)
	conns := make(chan *Conn, 1)
	connect := func() {
		c, _ := p.Open(context.Background(), "right")
		conns <- c
	}
	for range 2 {
		go connect()
		s.send(`{"type":"chosen","link":"right","name":"Pair right"}`)
		s.await(isType(typeOpen))
		s.send(`{"type":"up","link":"right"}`)
		c := <-conns
		_ = s.ws.CloseNow()
		for range c.Notifications() {
		}
		if codeOf(c.Err()) != problem.CodeLost {
			t.Errorf("got %v, want a lost link", c.Err())
		}
		if s, _ = v.dial("?tab=one"); s == nil {
			t.Fatal("the page cannot be reloaded")
		}
	}
}

// The page forgets a peripheral that is not accepted, and the user learns why.
func TestPage_RefusesAPeripheral(t *testing.T) {
	p := newPage(t)
	_, s := open(t, p)
	s.send(`{"type":"chosen","link":"left","name":"Pair right"}`)
	if got := s.await(isType(typeForget)).Link; got != "left" {
		t.Errorf("got forget %q, want left", got)
	}
	m := s.await(isType(typeState))
	if l := m.State.Links[0]; l.State != "choose" || l.Problem == nil || l.Problem.Message != "the wrong one" {
		t.Errorf("got the state %+v, want the refusal", l)
	}
	if w := p.Waits(); w == nil || w.Message != "the wrong one" {
		t.Errorf("got %v, want the refusal", w)
	}
}

// Only the page itself, in the browser that used the address first, may use the server.
func TestPage_AdmitsOneBrowser(t *testing.T) {
	p := newPage(t)
	token := p.currentToken()
	for name, headers := range map[string][]string{
		"another site":      {"Origin", "http://evil.example"},
		"another port":      {"Origin", "http://127.0.0.1:1"},
		"no origin":         {"Origin", ""},
		"a rebound name":    {"Host", "evil.example"},
		"localhost by name": {"Host", strings.Replace(p.address, "127.0.0.1", "localhost", 1)},
	} {
		if got := newVisitor(t, p).admit(token, headers...); got < 400 {
			t.Errorf("%s: got status %d, want a refusal", name, got)
		}
	}
	stranger := newVisitor(t, p)
	for _, wrong := range []string{"", "wrong", token + "x"} {
		if got := stranger.admit(wrong); got != http.StatusForbidden {
			t.Errorf("token %q: got status %d, want 403", wrong, got)
		}
	}
	v, _ := open(t, p)
	if got := stranger.admit(token); got != http.StatusForbidden {
		t.Errorf("a token that was used: got status %d, want 403", got)
	}
	if got := v.admit(""); got != http.StatusOK {
		t.Errorf("reload: got status %d, want 200", got)
	}
	if s, answer := stranger.dial("?tab=two&take"); s != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger's socket: got %v, want 401", answer)
	}
	if s, answer := v.dial("?tab=two&take", "Origin", "http://evil.example"); s != nil ||
		answer.StatusCode != http.StatusForbidden {
		t.Errorf("another site's socket: got %v, want 403", answer)
	}
	if got := stranger.admit(p.currentToken()); got != http.StatusOK {
		t.Errorf("the next address: got status %d, want 200", got)
	}
	if s, _ := v.dial("?tab=one"); s != nil {
		t.Error("the first browser may still use the page")
	}
	if got := v.admit(""); got != http.StatusForbidden {
		t.Errorf("reload in the first browser: got status %d, want 403", got)
	}
}

func TestPage_HasTheHeadersOfASafePage(t *testing.T) {
	p := newPage(t)
	for _, path := range []string{"/", "/page.js", "/bluetooth.js", "/panelcheck.js", "/page.css", "/none"} {
		h := newVisitor(t, p).request(http.MethodGet, path, nil).Header
		if c := h.Get("Content-Security-Policy"); !strings.HasPrefix(c, "default-src 'none'") ||
			strings.Contains(c, "unsafe") || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got the headers %v, want a strict policy", path, h)
		}
	}
}

func TestPage_RefusesASecondTabUntilItTakesOver(t *testing.T) {
	p := newPage(t)
	v, first := open(t, p)
	second, _ := v.dial("?tab=two")
	if got := second.closed(); got != closeBusy {
		t.Errorf("second tab: closed with %d, want %d", got, closeBusy)
	}
	second, _ = v.dial("?tab=two&take")
	second.await(isType(typeState))
	if got := first.closed(); got != closeTaken {
		t.Errorf("first tab: closed with %d, want %d", got, closeTaken)
	}
	reloaded, _ := v.dial("?tab=two")
	reloaded.await(isType(typeState))
}

// The page has an address only for users who have not opened it: not while it is open, and not while it is being
// reloaded.
func TestPage_HasAnAddressUntilItIsOpen(t *testing.T) {
	p := newPage(t)
	changed := make(chan struct{}, 100)
	p.o.Changed = func() { changed <- struct{}{} }
	first := p.URL()
	_, s := open(t, p)
	if first == "" || p.URL() != "" {
		t.Errorf("got the addresses %q and, while it is open, %q, want one and none", first, p.URL())
	}
	_ = s.ws.CloseNow()
	for p.URL() == "" {
		<-changed
	}
	if p.URL() == first {
		t.Error("the same address admits a second browser")
	}
}

func TestPage_EndsWithTheSession(t *testing.T) {
	p := newPage(t)
	_, s := open(t, p)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := p.Open(ctx, "left")
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("open: got %v, want context.Canceled", err)
	}
	done := make(chan struct{})
	go func() { p.Close(); close(done) }()
	s.await(isType(typeOver))
	if got := s.closed(); got != websocket.StatusNormalClosure {
		t.Errorf("closed with %d, want a normal closure", got)
	}
	<-done
	if _, err := p.Open(t.Context(), "left"); codeOf(err) != problem.CodeLost {
		t.Errorf("open after the end: got %v, want lost", err)
	}
}

// A page that sends invalid messages is disconnected.
func TestPage_DisconnectsAStrangePage(t *testing.T) {
	for _, text := range []string{
		`no JSON`, `[]`, `{"type":"other"}`, `{"type":"up","link":"middle"}`, `{"type":"chosen","link":"left"}`,
		`{"type":"problem","problem":"of my own"}`, `{"type":"chosen","link":"left","name":"a\u202eb"}`,
		`{"type":"chosen","link":"left","name":"` + strings.Repeat("n", maxName+1) + `"}`,
	} {
		_, s := open(t, newPage(t))
		s.send(text)
		if got := s.closed(); got != websocket.StatusPolicyViolation {
			t.Errorf("%s: closed with %d, want a policy violation", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(true, []byte("\x01value"))
	f.Add(false, []byte(`{"type":"chosen","link":"left","name":"Pair left"}`))
	f.Add(false, []byte(`{"type":"down","link":"right","problem":"lost"}`))
	f.Add(false, []byte(`{"type":"problem","problem":"cancelled"}`))
	f.Fuzz(func(t *testing.T, binary bool, data []byte) {
		typ := websocket.MessageText
		if binary {
			typ = websocket.MessageBinary
		}
		m, err := parse(typ, data, specs)
		if err != nil {
			return
		}
		isAll := m.Type == typeProblem && m.Link == ""
		if !isAll && m.Link != "left" && m.Link != "right" {
			t.Errorf("accepted the link %q", m.Link)
		}
		if m.Problem != "" && linkProblem(m.Problem).Message == "" {
			t.Errorf("accepted the problem %q, which has no text", m.Problem)
		}
		if len(m.Name) > maxName || len(m.data) > maxValue || m.Type == driver.Notified != binary {
			t.Errorf("accepted %+v", m)
		}
	})
}
