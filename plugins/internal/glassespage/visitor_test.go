package glassespage

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"testing"

	"github.com/coder/websocket"
)

// visitor acts as a browser.
type visitor struct {
	t      *testing.T
	page   *Page
	client *http.Client
	secret string // stored by the page
}

func newVisitor(t *testing.T, p *Page) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &visitor{t: t, page: p, client: &http.Client{Jar: jar, Transport: transport}}
}

// admit posts a token and returns the status.
func (v *visitor) admit(token string, headers ...string) int {
	v.t.Helper()
	body, _ := json.Marshal(admission{Token: token, Secret: v.secret})
	answer, text := v.exchange(http.MethodPost, "/admit", body, headers...)
	if len(answer.Cookies()) > 0 {
		v.t.Errorf("got the cookies %v, which every port of this machine would get", answer.Cookies())
	}
	var got admission
	if answer.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, &got); err != nil || got.Secret == "" {
			v.t.Fatalf("admit: got %q, want a secret", text)
		}
		v.secret = got.Secret
	}
	return answer.StatusCode
}

func (v *visitor) request(method, path string, body []byte, headers ...string) *http.Response {
	v.t.Helper()
	answer, _ := v.exchange(method, path, body, headers...)
	return answer
}

func (v *visitor) exchange(method, path string, body []byte, headers ...string) (*http.Response, []byte) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, "http://"+v.page.address+path, bytes.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Origin", "http://"+v.page.address)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer, text
}

func (p *Page) currentToken() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}

// socket acts as a visitor's tab.
type socket struct {
	t  *testing.T
	ws *websocket.Conn
}

func (v *visitor) dial(query string, headers ...string) (*socket, *http.Response) {
	v.t.Helper()
	header := http.Header{"Origin": {"http://" + v.page.address}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	ws, answer, err := websocket.Dial(v.t.Context(), "ws://"+v.page.address+"/links"+query,
		&websocket.DialOptions{HTTPClient: v.client, HTTPHeader: header, Subprotocols: []string{subprotocol, v.secret}})
	if err != nil {
		return nil, answer
	}
	v.t.Cleanup(func() { _ = ws.CloseNow() })
	return &socket{v.t, ws}, answer
}

// open admits a visitor and opens a tab.
func open(t *testing.T, p *Page) (*visitor, *socket) {
	t.Helper()
	v := newVisitor(t, p)
	if got := v.admit(p.currentToken()); got != http.StatusOK {
		t.Fatalf("admit: got status %d, want 200", got)
	}
	s, _ := v.dial("?tab=one")
	if s == nil {
		t.Fatal("the tab cannot connect")
	}
	s.await(func(m toPage) bool { return m.Type == typeState })
	return v, s
}

func (s *socket) send(text string) {
	s.t.Helper()
	if err := s.ws.Write(s.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

// await returns the first text message for which fits returns true. A value to write counts as a message of type
// "write".
func (s *socket) await(fits func(toPage) bool) toPage {
	s.t.Helper()
	for {
		typ, data, err := s.ws.Read(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		m := toPage{Type: "write", Title: string(data)}
		if typ == websocket.MessageText {
			if err := json.Unmarshal(data, &m); err != nil {
				s.t.Fatal(err)
			}
		}
		if fits(m) {
			return m
		}
	}
}

// closed returns the status code that the socket was closed with.
func (s *socket) closed() websocket.StatusCode {
	for {
		if _, _, err := s.ws.Read(s.t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

func isType(typ string) func(toPage) bool { return func(m toPage) bool { return m.Type == typ } }
