package server

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/browser"
)

// moment is the idle time after which the tests' backends rest.
const moment = 10 * time.Millisecond

// startOn runs a backend on copies of the daemon's listeners.
func startOn(t *testing.T, dir string, daemons []net.Listener) (s *Server, stop func()) {
	t.Helper()
	o := Options{DataDir: dir}
	for _, l := range daemons {
		file, err := l.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		inherited, err := net.FileListener(file)
		if err != nil {
			t.Fatal(err)
		}
		o.Listeners = append(o.Listeners, inherited.(*net.TCPListener))
	}
	return startWith(t, o)
}

// untilRest calls Rest until the backend agrees.
func untilRest(t *testing.T, s *Server) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		rests, err := s.Rest(t.Context(), moment)
		if err != nil {
			t.Fatal(err)
		}
		if rests {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the backend does not rest")
		}
	}
}

// staysAwake calls Rest for longer than the idle time.
func staysAwake(t *testing.T, s *Server, why string) {
	t.Helper()
	for end := time.Now().Add(5 * moment); time.Now().Before(end); {
		if rests, err := s.Rest(t.Context(), moment); rests || err != nil {
			t.Fatalf("with %s: rests %v, error %v; want it to stay awake", why, rests, err)
		}
	}
}

// A backend does not rest while an app is attached. Once it rests, it accepts no connections: new ones wait for its
// successor on the same listeners, which has the same data.
func TestRest(t *testing.T) {
	daemons, err := loopback.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer loopback.Close(daemons)
	dir := t.TempDir()
	s, stop := startOn(t, dir, daemons)
	who, err := browser.Link(s.URL(), "ada@example.org", "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	var session backendapi.Session
	var minted backendapi.SessionSecret
	if err := who.Post("/api/sessions", map[string]any{"project": "com.example.hello"}, &session); err != nil {
		t.Fatal(err)
	}
	if err := who.Post("/api/sessions/"+session.SessionID+"/secrets", map[string]any{}, &minted); err != nil {
		t.Fatal(err)
	}
	app, _, err := websocket.Dial(t.Context(), session.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	hello := `{"v":1,"type":"hello","id":"h1","at":1,"payload":{"secret":"` + minted.AppSecret +
		`","app":{"name":"Quiet"}}}`
	if err := app.Write(t.Context(), websocket.MessageText, []byte(hello)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := app.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	staysAwake(t, s, "an attached app")
	_ = app.CloseNow()
	untilRest(t, s)

	address := daemons[0].Addr().String()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /api/health HTTP/1.1\r\nHost: "+address+"\r\n\r\n")
	stop()
	again, stop := startOn(t, dir, daemons)
	defer stop()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the waiting connection: %v, error %v; want an answer of the successor", response, err)
	}
	if again.URL() != s.URL() || again.ID() != s.ID() {
		t.Errorf("the successor is %s at %s, want %s at %s", again.ID(), again.URL(), s.ID(), s.URL())
	}
	if err := who.Post("/api/sessions/"+session.SessionID+"/secrets", map[string]any{}, &minted); err != nil {
		t.Errorf("the link and the session are lost: %v", err)
	}
}

// If Rest reported true too late, it is called again, and the backend serves again if it is needed.
func TestRest_ServesAgain(t *testing.T) {
	daemons, err := loopback.Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer loopback.Close(daemons)
	s, stop := startOn(t, t.TempDir(), daemons)
	defer stop()
	untilRest(t, s)
	if rests, err := s.Rest(t.Context(), time.Hour); rests || err != nil {
		t.Fatalf("rests %v, error %v; want it to serve", rests, err)
	}
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(s.URL() + "/api/health")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

// A backend never rests if it listens itself, because its address would not be kept, or if users have to enter its
// sign-in word, which each start replaces.
func TestRest_Never(t *testing.T) {
	s, stop := start(t, t.TempDir())
	staysAwake(t, s, "listeners of its own")
	stop()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, stop = startWith(t, Options{DataDir: t.TempDir(), Listeners: []*net.TCPListener{l.(*net.TCPListener)},
		Probe: func() error { return io.ErrUnexpectedEOF }})
	defer stop()
	staysAwake(t, s, "a sign-in word")
}

// Connections that arrive during a pause are accepted after it, and closing ends a pause.
func TestPausableListener(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, all, err := listen(t.Context(), Options{Listeners: []*net.TCPListener{tcp.(*net.TCPListener)}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	l := all[0]
	accepted, ended := make(chan net.Conn), make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 3 {
		l.pause()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-accepted:
			t.Error("a connection was accepted during the pause")
		case <-time.After(moment):
		}
		l.resume()
		(<-accepted).Close()
		conn.Close()
	}
	l.pause()
	l.Close()
	if err := <-ended; !strings.Contains(err.Error(), "closed") {
		t.Errorf("Accept of a closed listener: %v", err)
	}
}
