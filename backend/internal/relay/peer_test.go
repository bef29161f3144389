package relay_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/glasses"
)

// node is one backend process: a hub on real sockets. end ends it, as a restart would.
type node struct {
	*relay.Hub
	url   string
	peers []*peer
	end   func()
}

// stop ends the node while its peers read, because the hub waits for the closing handshake of each.
func (n *node) stop() {
	var reading sync.WaitGroup
	for _, p := range n.peers {
		reading.Go(func() {
			for err := error(nil); err == nil; {
				_, _, err = p.ws.Read(context.Background())
			}
		})
	}
	n.end()
	reading.Wait()
}

func startNode(t *testing.T, m *memory, o relay.Options) *node {
	t.Helper()
	return serve(t, m, m, m, o)
}

func serve(t *testing.T, s relay.Sessions, l relay.Log, m *memory, o relay.Options) *node {
	t.Helper()
	o.Sessions, o.Log = s, l
	hub := relay.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- hub.Serve(ctx) }()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/sessions/{id}/app", hub.ServeApp)
	mux.HandleFunc("GET /s/{id}/live", func(rw http.ResponseWriter, r *http.Request) {
		hub.ServePage(rw, r, r.PathValue("id"), func(context.Context) bool { return !m.signedOut.Load() })
	})
	server := httptest.NewServer(mux)
	stopped := false
	n := &node{Hub: hub, url: server.URL}
	n.end = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		server.Close()
	}
	t.Cleanup(n.end)
	return n
}

// peer is a client of a node.
type peer struct {
	t  *testing.T
	ws *websocket.Conn
}

func (n *node) dial(t *testing.T, path string, header http.Header) *peer {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), n.url+path, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = ws.CloseNow() })
	p := &peer{t, ws}
	n.peers = append(n.peers, p)
	return p
}

func (n *node) raw(t *testing.T) *peer { return n.dial(t, "/api/sessions/"+testID+"/app", nil) }

func (n *node) app(t *testing.T, since string) (*peer, glasses.Welcome) {
	t.Helper()
	p := n.raw(t)
	p.send("hello", "h1", `{"secret":"right","app":{"name":"Test app","version":"1"}`+since+`}`)
	var w glasses.Welcome
	p.want("welcome", &w)
	return p, w
}

func (n *node) page(t *testing.T, query string) (*peer, glasses.PageWelcome) {
	t.Helper()
	p := n.dial(t, "/s/"+testID+"/live"+query, http.Header{"Origin": {n.url}})
	var w glasses.PageWelcome
	p.want("welcome", &w)
	return p, w
}

func (p *peer) send(typ, id, payload string) {
	p.t.Helper()
	p.bytes(`{"v":1,"type":"` + typ + `","id":"` + id + `","at":1,"payload":` + payload + `}`)
}

func (p *peer) bytes(frame string) {
	p.t.Helper()
	if err := p.ws.Write(p.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		p.t.Fatal(err)
	}
}

const patience = 10 * time.Second

// next reads one frame.
func (p *peer) next() (glasses.Frame, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	_, data, err := p.ws.Read(ctx)
	if err != nil {
		return glasses.Frame{}, err
	}
	var f glasses.Frame
	return f, json.Unmarshal(data, &f)
}

// want reads frames until one has this type, and decodes its payload.
func (p *peer) want(typ string, into any) glasses.Frame {
	p.t.Helper()
	return p.find(func(f glasses.Frame) bool { return f.Type == typ }, typ, into)
}

func (p *peer) wantID(typ, id string, into any) glasses.Frame {
	p.t.Helper()
	return p.find(func(f glasses.Frame) bool { return f.Type == typ && f.ID == id }, typ+" "+id, into)
}

func (p *peer) find(match func(glasses.Frame) bool, what string, into any) glasses.Frame {
	p.t.Helper()
	for {
		f, err := p.next()
		if err != nil {
			p.t.Fatalf("the connection ended while waiting for %s: %v", what, err)
		}
		if !match(f) {
			continue
		}
		if into != nil {
			if err := json.Unmarshal(f.Payload, into); err != nil {
				p.t.Fatal(err)
			}
		}
		return f
	}
}

// wantRow reads until it receives a row of this type.
func (p *peer) wantRow(typ string) glasses.Event {
	p.t.Helper()
	for {
		var e glasses.Event
		p.want("row", &e)
		if e.Type == typ {
			return e
		}
	}
}

// ending reads until the connection ends, and returns its error.
func (p *peer) ending() error {
	for end := time.Now().Add(patience); time.Now().Before(end); { // heartbeats never stop
		if _, err := p.next(); err != nil {
			return err
		}
	}
	return errors.New("it goes on")
}

// wantClose reads until the connection ends, and expects this close code.
func (p *peer) wantClose(code websocket.StatusCode, reason string) {
	p.t.Helper()
	if err := p.ending(); websocket.CloseStatus(err) != code || !strings.Contains(err.Error(), reason) {
		p.t.Fatalf("closed with %v, want %d %q", err, code, reason)
	}
}
