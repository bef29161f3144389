//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

// socket is an app on a plain WebSocket that records every frame it receives, in order.
type socket struct {
	t  *testing.T
	ws *websocket.Conn

	mu    sync.Mutex
	heard []appFrame
	err   error         // why reading ended
	moved chan struct{} // closed and replaced when a frame arrives
	done  chan struct{}
}

// dial opens a socket without reading.
func dial(t *testing.T, endpoint string, o *websocket.DialOptions) *socket {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ws, _, err := websocket.Dial(ctx, endpoint, o)
	if err != nil {
		t.Fatalf("dial %s: %v", endpoint, err)
	}
	ws.SetReadLimit(2 * glasses.MaxBinary)
	s := &socket{t: t, ws: ws, moved: make(chan struct{}), done: make(chan struct{})}
	t.Cleanup(func() { ws.CloseNow() })
	return s
}

// attach opens a socket, sends hello and starts reading.
func attach(t *testing.T, endpoint, secret string) *socket {
	t.Helper()
	return attachSince(t, endpoint, secret, -1)
}

// attachSince is like attach, with a cursor unless since is negative.
func attachSince(t *testing.T, endpoint, secret string, since int64) *socket {
	t.Helper()
	s := dial(t, endpoint, nil)
	s.listen()
	hello := glasses.Hello{Secret: secret, App: glasses.AppInfo{Name: "Contract"}}
	if since >= 0 {
		hello.Since = &since
	}
	s.send(glasses.TypeHello, "hello", hello)
	s.next(0, glasses.TypeWelcome, "hello")
	return s
}

// listen reads until the connection ends.
func (s *socket) listen() {
	go func() {
		defer close(s.done)
		for {
			kind, data, err := s.ws.Read(context.Background())
			var f appFrame
			if err == nil && kind == websocket.MessageBinary {
				f.Frame, f.body, err = glasses.ParseBinary(data)
			} else if err == nil {
				err = json.Unmarshal(data, &f.Frame)
			}
			s.mu.Lock()
			if err == nil {
				s.heard = append(s.heard, f)
			}
			s.err = err
			close(s.moved)
			s.moved = make(chan struct{})
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		s.ws.CloseNow()
		<-s.done
	})
}

func (s *socket) send(typ, id string, payload any) {
	s.t.Helper()
	s.write(websocket.MessageText, s.encode(typ, id, payload))
}

// trySend is like send, but returns false if the peer has closed the connection.
func (s *socket) trySend(typ, id string, payload any) bool {
	s.t.Helper()
	err := s.tryWrite(websocket.MessageText, s.encode(typ, id, payload))
	if err == nil {
		return true
	}
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		s.t.Fatalf("write frame %s: %v", id, err)
	}
	return false
}

func (s *socket) encode(typ, id string, payload any) []byte {
	s.t.Helper()
	f, err := glasses.New(typ, id, time.Now().UnixMilli(), payload)
	if err != nil {
		s.t.Fatal(err)
	}
	data, _ := f.Encode()
	return data
}

func (s *socket) write(kind websocket.MessageType, data []byte) {
	s.t.Helper()
	if err := s.tryWrite(kind, data); err != nil {
		s.t.Fatalf("write %.100q: %v", data, err)
	}
}

func (s *socket) tryWrite(kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	return s.ws.Write(ctx, kind, data)
}

// find waits for the first matching frame at or after index from and returns its index.
func (s *socket) find(from int, limit time.Duration, wanted func(appFrame) bool) (f appFrame, at int, ok bool) {
	late := time.NewTimer(limit)
	defer late.Stop()
	for at = from; ; {
		s.mu.Lock()
		heard, moved, err := s.heard, s.moved, s.err
		s.mu.Unlock()
		for ; at < len(heard); at++ {
			if wanted(heard[at]) {
				return heard[at], at, true
			}
		}
		if err != nil {
			return f, at, false
		}
		select {
		case <-moved:
		case <-late.C:
			return f, at, false
		}
	}
}

// next is like find, for a type and, unless empty, an id. It fails the test if no such frame arrives.
func (s *socket) next(from int, typ, id string) (appFrame, int) {
	s.t.Helper()
	f, at, ok := s.find(from, 20*time.Second, func(f appFrame) bool {
		return f.Type == typ &&
			(id == "" || f.ID == id)
	})
	if !ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		var got []string
		for _, h := range s.heard[min(from, len(s.heard)):] {
			got = append(got, h.Type+" "+h.ID+" "+string(h.Payload[:min(len(h.Payload), 120)]))
		}
		s.t.Fatalf("no %s %s arrived (%v); got instead\n%s", typ, id, s.err, strings.Join(got[max(0, len(got)-40):], "\n"))
	}
	return f, at
}

// place returns the index of the next frame.
func (s *socket) place() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.heard)
}

func (s *socket) all() []appFrame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// closed waits until the peer has closed the connection and returns the close code, or -1 if there was none.
func (s *socket) closed(limit time.Duration) websocket.StatusCode {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(limit):
		s.t.Errorf("the connection is still open after %v", limit)
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	code := websocket.CloseStatus(s.err)
	if code < 0 {
		s.t.Logf("the connection ended without a close code: %v", s.err)
	}
	return code
}

// ended reports whether the connection is closed.
func (s *socket) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// secretIn reads a secret from the file that a tool result names.
func secretIn(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}
