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
)

// rig connects a proxy to a test that acts as both the client and the daemons.
type rig struct {
	t       *testing.T
	in      *io.PipeWriter
	out     *bufio.Reader
	pipe    *io.PipeReader // reading end of out
	daemons chan net.Conn  // the test's ends of the connections
	refuse  chan error     // errors for the next attempts to connect
	done    chan error
	proxy   *Proxy
}

func newRig(t *testing.T) *rig {
	// Called early, so that the directories are removed only after the proxy has ended.
	t.TempDir()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR, daemons: make(chan net.Conn, 8),
		refuse: make(chan error, 8), done: make(chan error, 1)}
	p := New(Options{
		In: inR, Out: outW, Handshake: Handshake{Client: "test", Version: "1", Cwd: "/w", Env: map[string]string{"CI": "1"}},
		Drain: 2 * time.Second, Pause: time.Millisecond,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			select {
			case err := <-r.refuse:
				return nil, err
			case <-t.Context().Done():
				return nil, t.Context().Err()
			default:
			}
			ours, theirs := socketPair(t)
			r.daemons <- ours
			return theirs, nil
		},
		HalfClose: func(c io.ReadWriteCloser) error { return c.(*net.UnixConn).CloseWrite() },
	})
	r.proxy = p
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Open(context.Background())
		r.done <- p.Run(context.Background())
		_ = outW.Close()
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close(); <-ended })
	return r
}

func socketPair(t *testing.T) (a, b net.Conn) {
	l, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b, err = net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if a, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

func (r *rig) say(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		// Use Error, not Fatal, because this also runs outside the test's goroutine.
		r.t.Error(err)
	}
}

// hear reads one line sent to the client, which must be JSON.
func (r *rig) hear() string {
	r.t.Helper()
	timeout := time.AfterFunc(time.Minute, func() { _ = r.pipe.CloseWithError(errors.New("no line within a minute")) })
	defer timeout.Stop()
	line, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatalf("the client received nothing: %v", err)
	}
	if !json.Valid([]byte(line)) {
		r.t.Fatalf("stdout contains a line that is not JSON: %s", line)
	}
	return strings.TrimSuffix(line, "\n")
}

// daemon is the test's end of a connection whose handshake is complete.
type daemon struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (r *rig) daemon() *daemon {
	r.t.Helper()
	select {
	case conn := <-r.daemons:
		// Long lines may take a while on a loaded machine.
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		d := &daemon{t: r.t, Conn: conn, r: bufio.NewReader(conn)}
		line := d.get()
		if !strings.Contains(line, `"mcp":1`) || !strings.Contains(line, `"env":{"CI":"1"}`) ||
			!strings.Contains(line, `"cwd":"/w"`) || !json.Valid([]byte(line)) {
			r.t.Fatalf("unexpected handshake: %s", line)
		}
		d.put(`{"ok":true,"protocol":1,"version":"1","repeatable":["look","listen"]}`)
		return d
	case <-time.After(10 * time.Second):
		r.t.Fatal("the proxy did not connect within 10 s")
		return nil
	}
}

func (r *rig) linked() bool {
	r.proxy.mu.Lock()
	defer r.proxy.mu.Unlock()
	return r.proxy.conn != nil
}

// gone closes a daemon's connection and waits until the proxy has noticed.
func (r *rig) gone(d *daemon) {
	r.t.Helper()
	d.Close()
	r.until("the proxy sees that the daemon is gone", func() bool { return !r.linked() })
}

func (r *rig) until(what string, yes func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !yes(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not true within 10 s: %s", what)
		}
	}
}

func (d *daemon) get() string {
	d.t.Helper()
	line, err := d.r.ReadString('\n')
	if err != nil {
		d.t.Fatalf("the daemon received nothing: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (d *daemon) put(line string) {
	d.t.Helper()
	if _, err := io.WriteString(d, line+"\n"); err != nil {
		d.t.Error(err)
	}
}

func (d *daemon) expect(want string) {
	d.t.Helper()
	if got := d.get(); got != want {
		d.t.Fatalf("the daemon received %s, want %s", got, want)
	}
}

func (r *rig) expect(want string) {
	r.t.Helper()
	if got := r.hear(); got != want {
		r.t.Fatalf("the client received %s, want %s", got, want)
	}
}

const look = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"look"}}`
