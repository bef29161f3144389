package stdioproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/internal/problem"
)

func TestHandshake_NamesToolset(t *testing.T) {
	for _, name := range []string{"", "local", `odd "name"`} {
		var said struct {
			Client  string
			Toolset *string
			Agent   string
			Env     map[string]string
		}
		line := Handshake{Client: "service-mcp", Toolset: name, Agent: "7-x", Env: map[string]string{"CI": "1"}}.line()
		if err := json.Unmarshal(line, &said); err != nil {
			t.Fatalf("parse %s: %v", line, err)
		}
		if said.Client != "service-mcp" || said.Env["CI"] != "1" || said.Agent != "7-x" || (said.Toolset == nil) != (name == "") ||
			said.Toolset != nil && *said.Toolset != name {
			t.Errorf("unexpected handshake for toolset %q: %s", name, line)
		}
	}
}

func TestHandshake_RefusalAnswersRequests(t *testing.T) {
	r := newRig(t)
	refuse := func(conn net.Conn) {
		_, _ = io.WriteString(conn, `{"ok":false,"code":"protocol_mismatch","message":"too \"old\"","fixHint":"upgrade"}`+
			"\n")
		conn.Close()
	}
	refuse(<-r.daemons)
	go func() { // for all attempts to connect
		for {
			select {
			case conn := <-r.daemons:
				refuse(conn)
			case <-t.Context().Done():
				return
			}
		}
	}()
	r.say(`{"id":1,"method":"tools/list"}`)
	if got := r.hear(); !strings.Contains(got, `"id":1,"error"`) || !strings.Contains(got, "protocol_mismatch") {
		t.Fatalf("got %s, want protocol_mismatch", got)
	}
}

// A daemon with too many clients reports that and closes without reading. The client's failed write must not hide that
// reason.
func TestHandshake_RefusedBeforeItIsRead(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	attempts := 0
	p := New(Options{
		In: inR, Out: outW, Handshake: Handshake{Client: "test", Version: "1"}, Drain: time.Second, Pause: time.Minute,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			attempts++
			ours, theirs := socketPair(t)
			_, _ = io.WriteString(ours, `{"ok":false,"code":"too_many_clients","message":"full","fixHint":"close some"}`+"\n")
			return theirs, ours.Close()
		},
	})
	done := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR}
	r.say(`{"id":1,"method":"tools/list"}`)
	if got := r.hear(); !strings.Contains(got, "too_many_clients") || !strings.Contains(got, "close some") {
		t.Errorf("got %s, want too_many_clients", got)
	}
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if attempts != 1 {
		t.Errorf("%d attempts in a row, want 1", attempts)
	}
}

// The socket of a dying daemon stays open for a moment; a connection made then is never accepted.
func TestHandshake_DaemonEndsBeforeItAnswers(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"whoAmI","arguments":{}}}`
	for _, initialized := range []bool{false, true} {
		r := newRig(t)
		d := r.daemon()
		if initialized {
			r.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
			d.get()
			d.put(`{"jsonrpc":"2.0","id":1,"result":{}}`)
			r.hear()
		}
		// Closing it earlier would break the connection before the proxy uses it.
		r.until("the proxy has connected", r.linked)
		r.gone(d)
		r.say(call)
		for range 2 { // two daemons that exit immediately
			_ = (<-r.daemons).Close()
		}
		next := r.daemon()
		if initialized {
			next.get() // the replay
			next.put(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		}
		next.expect(call)
		next.put(`{"jsonrpc":"2.0","id":7,"result":{}}`)
		r.expect(`{"jsonrpc":"2.0","id":7,"result":{}}`)
	}
}

// If a daemon accepts the connection and sends nothing, the client waits for a limited time, both at its start and
// later.
func TestHandshake_SilentDaemon(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	daemons := make(chan net.Conn, 8)
	p := New(Options{
		In: inR, Out: outW, Handshake: Handshake{Client: "test", Version: "1"}, HandshakeTimeout: 50 * time.Millisecond,
		Pause: time.Millisecond, Drain: time.Second,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := socketPair(t)
			daemons <- ours
			return theirs, nil
		},
		Explain: func(err error) *problem.Error {
			if errors.Is(err, ErrSilent) {
				return &problem.Error{Code: "daemon_not_responding", Message: "pid 7"}
			}
			return nil
		},
	})
	done := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR, proxy: p}
	silence := func(id string) {
		t.Helper()
		r.say(`{"id":` + id + `,"method":"initialize"}`)
		if got := r.hear(); !strings.Contains(got, `"id":`+id) || !strings.Contains(got, "daemon_not_responding") {
			t.Fatalf("got %s, want daemon_not_responding", got)
		}
	}
	silence("1")
	<-daemons
	rested := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return time.Now().After(p.retryAt)
	}
	r.until("the pause between two attempts is over", rested)
	silence("2")
	<-daemons

	r.until("the pause between two attempts is over", rested)
	r.say(`{"id":3,"method":"initialize"}`)
	conn := <-daemons
	d := &daemon{t: t, Conn: conn, r: bufio.NewReader(conn)}
	d.get()
	d.put(`{"ok":true}`)
	d.get()
	d.put(`{"id":3,"result":{}}`)
	r.hear()
	r.gone(d)
	// The next daemon receives the replay and does not respond.
	r.say(`{"id":4,"method":"tools/list"}`)
	<-daemons
	if got := r.hear(); !strings.Contains(got, `"id":4`) || !strings.Contains(got, "daemon_not_responding") {
		t.Fatalf("got %s, want daemon_not_responding", got)
	}
	r.until("the pause between two attempts is over", rested)
	// This daemon accepts the handshake but does not respond to the replay.
	r.say(`{"id":5,"method":"tools/list"}`)
	conn = <-daemons
	_, _ = io.WriteString(conn, `{"ok":true}`+"\n")
	if got := r.hear(); !strings.Contains(got, `"id":5`) || !strings.Contains(got, "daemon_not_responding") {
		t.Fatalf("got %s, want daemon_not_responding", got)
	}
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A daemon that a service manager is starting gets more time than a daemon that hangs.
func TestHandshake_StartingDaemonGetsMoreTime(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	daemons := make(chan net.Conn, 1)
	uses := make(chan struct{}, startFactor)
	p := New(Options{
		In: inR, Out: outW, Handshake: Handshake{Client: "test", Version: "1"}, HandshakeTimeout: 500 * time.Millisecond,
		Drain: time.Second,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			ours, theirs := socketPair(t)
			daemons <- ours
			return theirs, nil
		},
		Starting: func() bool { uses <- struct{}{}; return true },
	})
	done := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR, proxy: p}
	r.say(`{"id":1,"method":"initialize"}`)
	conn := <-daemons
	<-uses // wait for the end of the first attempt
	d := &daemon{t: t, Conn: conn, r: bufio.NewReader(conn)}
	d.get()
	d.put(`{"ok":true}`)
	d.get()
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
	_ = inW.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
