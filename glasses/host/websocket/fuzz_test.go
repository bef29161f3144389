package websocket_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	coder "github.com/coder/websocket"

	"github.com/service-dev/service/glasses/host/websocket"
)

// received is a message that a server has read.
type received struct {
	kind int
	data string
}

// FuzzConn compares the messages read from arbitrary client bytes with the messages read by another implementation.
func FuzzConn(f *testing.F) {
	for _, seed := range [][]byte{
		{0x81, 0x83, 1, 2, 3, 4, 'a', 'b', 'c'}, {0x02, 0x81, 0, 0, 0, 0, 'x', 0x80, 0x81, 9, 9, 9, 9, 'y'},
		{0x89, 0x80, 0, 0, 0, 0, 0x82, 0xFE, 0, 200, 0, 0, 0, 0}, {0x88, 0x82, 0, 0, 0, 0, 3, 0xE8}, {0x8A, 0x80, 0, 0, 0, 0},
		append([]byte{0x82, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0, 7, 7, 7, 7}, make([]byte, 65536)...),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		ours := messages(t, sent, func(rw http.ResponseWriter, r *http.Request, got func(received)) {
			c, err := websocket.Accept(rw, r)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Drop()
			_ = read(c, func(kind websocket.Kind, data []byte) error {
				got(received{int(kind), string(data)})
				return nil
			})
		})
		theirs := messages(t, sent, func(rw http.ResponseWriter, r *http.Request, got func(received)) {
			c, err := coder.Accept(rw, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.CloseNow() }()
			c.SetReadLimit(-1)
			for {
				kind, data, err := c.Read(context.Background())
				if err != nil {
					return
				}
				got(received{int(kind), string(data)})
			}
		})
		// The other implementation returns the received part of a truncated message as a whole message.
		if len(theirs) == len(ours)+1 {
			theirs = theirs[:len(ours)]
		}
		if len(ours) != len(theirs) {
			t.Fatalf("%x: read %d messages, want %d", sent, len(ours), len(theirs))
		}
		for i := range ours {
			if ours[i] != theirs[i] {
				t.Errorf("message %d: %v, want %v", i, ours[i], theirs[i])
			}
		}
	})
}

// messages sends bytes to a server and returns the messages that it reads until the bytes end.
func messages(
	t *testing.T, sent []byte, read func(http.ResponseWriter, *http.Request, func(received)),
) (all []received) {
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer close(done)
		read(rw, r, func(m received) { all = append(all, m) })
	}))
	defer server.Close()
	p := raw(t, server.URL)
	go func() { _, _ = io.Copy(io.Discard, p.conn) }() // its responses must not fill the connection
	if _, err := io.Copy(p.conn, bytes.NewReader(sent)); err == nil {
		_ = p.conn.(*net.TCPConn).CloseWrite()
	}
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("the server still reads")
	}
	return all
}
