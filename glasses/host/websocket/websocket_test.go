package websocket_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/service-dev/service/glasses/host/websocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve returns the address of a server whose connections are handed to handle, in the request's goroutine.
func serve(t testing.TB, handle func(*websocket.Conn), origins ...string) string {
	server := httptest.NewServer(handler(handle, origins...))
	t.Cleanup(server.Close)
	return server.URL
}

func handler(handle func(*websocket.Conn), origins ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(rw, r, origins...)
		if err != nil {
			return
		}
		defer c.Drop()
		handle(c)
	}
}

// read forwards every message, like a relay: it waits, reads while there is more, and waits again. It returns the error
// that ends the connection, or the error from pass.
func read(c *websocket.Conn, pass func(websocket.Kind, []byte) error) error {
	for {
		ready := make(chan struct{})
		c.Await(func() { close(ready) })
		<-ready
		if err := c.Wait(); err != nil {
			return err
		}
		for c.More() {
			kind, err := c.Next()
			if err != nil {
				return err
			}
			if kind == 0 {
				continue
			}
			data, err := io.ReadAll(c)
			if err == nil {
				err = pass(kind, data)
			}
			if err != nil {
				return err
			}
		}
	}
}

func echo(c *websocket.Conn) { _ = read(c, c.Write) }

func dial(t testing.TB, url string) *coder.Conn {
	c, _, err := coder.Dial(t.Context(), url, nil) //nolint:bodyclose // the body need not be closed
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(-1)
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func TestEcho_KeepsEveryByte(t *testing.T) {
	c := dial(t, serve(t, echo))
	for _, size := range []int{
		0, 1, 15, 16, 17, 125, 126, 127, 511, 512, 513, 4096, 32<<10 - 15, 32 << 10, 32<<10 + 1, 65535, 65536, 3 << 20,
	} {
		sent := make([]byte, size)
		for i := range sent {
			sent[i] = byte(i * 7)
		}
		go func() { _ = c.Write(t.Context(), coder.MessageBinary, sent) }()
		kind, got, err := c.Read(t.Context())
		if err != nil || kind != coder.MessageBinary || !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes: got kind %v, %d bytes, error %v", size, kind, len(got), err)
		}
	}
}

// A client may fragment a message, and send pings between the fragments.
func TestEcho_JoinsFragments(t *testing.T) {
	c := dial(t, serve(t, echo))
	c.CloseRead(context.WithoutCancel(t.Context())) // pongs are read
	got := raw(t, serve(t, echo))
	got.frame(0x01, []byte("smart "))
	got.frame(0x89, []byte("are you there"))
	got.frame(0x00, []byte("gla"))
	got.frame(0x80, []byte("sses"))
	got.want(0x8A, "are you there")
	got.want(0x81, "smart glasses")
	if err := c.Ping(t.Context()); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func TestClose_EndsTheHandshake(t *testing.T) {
	closed := make(chan struct{})
	c := dial(t, serve(t, func(c *websocket.Conn) {
		defer close(closed)
		c.Close(4401, "sign in again")
	}))
	_, _, err := c.Read(t.Context())
	var closing coder.CloseError
	if !errors.As(err, &closing) || closing.Code != 4401 || closing.Reason != "sign in again" {
		t.Errorf("got %v, want the status and the reason", err)
	}
	<-closed
}

func TestClose_IsAnswered(t *testing.T) {
	c := dial(t, serve(t, echo))
	if err := c.Close(coder.StatusNormalClosure, "done"); err != nil {
		t.Errorf("close: %v, want an answer", err)
	}
}

// A reason that is too long is truncated between characters.
func TestClose_CutsLongReasons(t *testing.T) {
	c := dial(t, serve(t, func(c *websocket.Conn) { c.Close(4000, "x"+strings.Repeat("ä", 100)) }))
	_, _, err := c.Read(t.Context())
	var closing coder.CloseError
	if !errors.As(err, &closing) || closing.Reason != "x"+strings.Repeat("ä", 61) {
		t.Errorf("got %v, want the first 123 bytes", err)
	}
}

// A close by one goroutine ends the read of another, even if the peer never responds.
func TestSendClose_EndsASilentPeer(t *testing.T) {
	ended := make(chan error, 1)
	url := serve(t, func(c *websocket.Conn) {
		go c.SendClose(1012, "the service restarts")
		ended <- read(c, func(websocket.Kind, []byte) error { return nil })
	})
	peer := raw(t, url)
	peer.want(0x88, "\x03\xf4the service restarts")
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the read returned without an error")
		}
	case <-time.After(30 * time.Second):
		t.Error("the server still waits for the peer's answer")
	}
}

// Cork joins frames into one write, in order, even if they do not fit into the buffer.
func TestCork_KeepsOrder(t *testing.T) {
	sizes := []int{3, 600, 40 << 10, 5, 31 << 10, 31 << 10, 70 << 10, 0}
	c := dial(t, serve(t, func(c *websocket.Conn) {
		c.Cork()
		for i, size := range sizes {
			_ = c.Write(websocket.Binary, bytes.Repeat([]byte{byte(i)}, size))
		}
		if err := c.Uncork(); err != nil {
			t.Errorf("uncork: %v", err)
		}
		_, _ = c.Next()
	}))
	for i, size := range sizes {
		_, got, err := c.Read(t.Context())
		if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, size)) {
			t.Fatalf("message %d: got %d bytes, error %v; want %d bytes", i, len(got), err, size)
		}
	}
}

// A peer that is sending a message counts as alive before the message is complete.
func TestHeard_ChangesWithinAMessage(t *testing.T) {
	heard := make(chan uint32)
	peer := raw(t, serve(t, func(c *websocket.Conn) {
		_, _ = c.Next()
		for b := make([]byte, 1); ; {
			if _, err := c.Read(b); err != nil {
				return
			}
			heard <- c.Heard()
		}
	}))
	if _, err := peer.conn.Write([]byte{0x82, 0x83, 0, 0, 0, 0, 'a'}); err != nil {
		t.Fatal(err)
	}
	before := <-heard
	if _, err := peer.conn.Write([]byte{'b'}); err != nil {
		t.Fatal(err)
	}
	if after := <-heard; after == before {
		t.Error("the number did not change with the second byte")
	}
}

// A slow message is not cut off by the deadline with which More waits for the next one.
func TestMore_WaitsForTheRestOfAMessage(t *testing.T) {
	peer := raw(t, serve(t, echo))
	peer.frame(0x81, []byte("warm"))
	peer.want(0x81, "warm")
	head := []byte{0x81, 0x84, 0, 0, 0, 0, 's'}
	if _, err := peer.conn.Write(head); err != nil {
		t.Fatal(err)
	}
	time.Sleep(600 * time.Millisecond) //nolint:forbidigo // longer than More waits, which is what is tested
	if _, err := peer.conn.Write([]byte("low")); err != nil {
		t.Fatal(err)
	}
	peer.want(0x81, "slo"+"w")
}

// A pong that follows a message is not a message: the connection stays open while no other data arrives.
func TestMore_ForgetsItsDeadlineAfterAPong(t *testing.T) {
	ended := make(chan error, 1)
	peer := raw(t, serve(t, func(c *websocket.Conn) {
		ended <- read(c, func(websocket.Kind, []byte) error { return nil })
	}))
	peer.frame(0x81, []byte("warm"))
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // within the time that More waits, which is what is tested
	peer.frame(0x8A, nil)
	select {
	case err := <-ended:
		t.Errorf("the connection ended: %v", err)
	case <-time.After(time.Second):
	}
}

// Each violation of RFC 6455 ends the connection with its status.
func TestNext_EndsConnectionsThatBreakTheProtocol(t *testing.T) {
	url := serve(t, echo)
	for name, test := range map[string]struct {
		bytes  []byte
		status uint16
	}{
		"unmasked":                 {[]byte{0x81, 0x01, 'a'}, 1002},
		"reserved bit":             {[]byte{0xC1, 0x80, 0, 0, 0, 0}, 1002},
		"reserved opcode":          {[]byte{0x83, 0x80, 0, 0, 0, 0}, 1002},
		"reserved control":         {[]byte{0x8B, 0x80, 0, 0, 0, 0}, 1002},
		"fragmented ping":          {[]byte{0x09, 0x80, 0, 0, 0, 0}, 1002},
		"long ping":                {[]byte{0x89, 0xFE, 0, 126, 0, 0, 0, 0}, 1002},
		"continuation of nothing":  {[]byte{0x80, 0x80, 0, 0, 0, 0}, 1002},
		"message within a message": {[]byte{0x01, 0x80, 0, 0, 0, 0, 0x81, 0x80, 0, 0, 0, 0}, 1002},
		"length above all":         {[]byte{0x82, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 1002},
		"close of one byte":        {[]byte{0x88, 0x81, 0, 0, 0, 0, 3}, 1002},
		"status not to be sent":    {[]byte{0x88, 0x82, 0, 0, 0, 0, 3, 0xED}, 1002},
		"reason not UTF-8":         {[]byte{0x88, 0x83, 0, 0, 0, 0, 3, 0xE8, 0xFF}, 1007},
		"close":                    {[]byte{0x88, 0x82, 0, 0, 0, 0, 3, 0xE8}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			peer := raw(t, url)
			if _, err := peer.conn.Write(test.bytes); err != nil {
				t.Fatal(err)
			}
			opcode, payload := peer.next()
			if opcode != 0x88 || len(payload) < 2 || binary.BigEndian.Uint16(payload) != test.status {
				t.Fatalf("got opcode %#x, payload %q; want a close with status %d", opcode, payload, test.status)
			}
			if _, err := peer.conn.Read(make([]byte, 1)); err == nil {
				t.Error("the connection is still open")
			}
		})
	}
}

func TestAccept_RefusesWhatIsNoHandshake(t *testing.T) {
	url := serve(t, echo, "https://*.example.com", "friend.example.org")
	key := "dGhlIHNhbXBsZSBub25jZQ=="
	for name, test := range map[string]struct {
		method string
		header map[string]string
		status int
	}{
		"as in the RFC":      {"GET", nil, 101},
		"same origin":        {"GET", map[string]string{"Origin": url}, 101},
		"allowed host":       {"GET", map[string]string{"Origin": "http://Friend.example.org"}, 101},
		"allowed origin":     {"GET", map[string]string{"Origin": "https://a.example.com"}, 101},
		"origin, other way":  {"GET", map[string]string{"Origin": "http://a.example.com"}, 403},
		"foreign origin":     {"GET", map[string]string{"Origin": "https://evil.example"}, 403},
		"no site":            {"GET", map[string]string{"Origin": "null"}, 403},
		"POST":               {"POST", nil, 405},
		"no upgrade":         {"GET", map[string]string{"Upgrade": ""}, 426},
		"no connection":      {"GET", map[string]string{"Connection": "keep-alive"}, 426},
		"upgrade among more": {"GET", map[string]string{"Connection": "keep-alive, Upgrade", "Upgrade": "h2c, WebSocket"}, 101},
		"old version":        {"GET", map[string]string{"Sec-WebSocket-Version": "8"}, 400},
		"no key":             {"GET", map[string]string{"Sec-WebSocket-Key": ""}, 400},
		"short key":          {"GET", map[string]string{"Sec-WebSocket-Key": "c2hvcnQ="}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			req, _ := http.NewRequestWithContext(t.Context(), test.method, url, nil)
			for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
				"Sec-WebSocket-Key": key} {
				req.Header.Set(k, v)
			}
			for k, v := range test.header {
				if req.Header.Set(k, v); v == "" {
					req.Header.Del(k)
				}
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != test.status {
				t.Fatalf("status %d, want %d", res.StatusCode, test.status)
			}
			accept := res.Header.Get("Sec-WebSocket-Accept")
			if res.StatusCode == 101 && accept != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
				t.Errorf("Sec-WebSocket-Accept: %s, want the value of RFC 6455, section 1.3", accept)
			}
		})
	}
}

// peer is a client that sends arbitrary bytes.
type peer struct {
	t    testing.TB
	conn net.Conn
}

func raw(t testing.TB, url string) *peer {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	response := make([]byte, 0, 256)
	for b := make([]byte, 1); !bytes.HasSuffix(response, []byte("\r\n\r\n")); response = append(response, b...) {
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatalf("response %q: %v", response, err)
		}
	}
	return &peer{t, conn}
}

// frame sends a short frame with the first byte of its header, masked with 1, 2, 3, 4.
func (p *peer) frame(first byte, payload []byte) {
	p.t.Helper()
	data := append([]byte{first, 0x80 | byte(len(payload)), 1, 2, 3, 4}, payload...)
	for i := range payload {
		data[6+i] ^= byte(i%4 + 1)
	}
	if _, err := p.conn.Write(data); err != nil {
		p.t.Fatal(err)
	}
}

// next reads a short frame.
func (p *peer) next() (first byte, payload []byte) {
	p.t.Helper()
	var head [2]byte
	if _, err := io.ReadFull(p.conn, head[:]); err != nil {
		p.t.Fatal(err)
	}
	payload = make([]byte, head[1])
	if _, err := io.ReadFull(p.conn, payload); err != nil {
		p.t.Fatal(err)
	}
	return head[0], payload
}

func (p *peer) want(first byte, payload string) {
	p.t.Helper()
	if f, got := p.next(); f != first || string(got) != payload {
		p.t.Fatalf("got %#x %q, want %#x %q", f, got, first, payload)
	}
}
