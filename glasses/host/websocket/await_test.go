package websocket_test

import (
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/service-dev/service/glasses/host/websocket"
)

// A drop ends the read of another goroutine, regardless of what the other goroutine is about to do.
func TestDrop_EndsAPeerThatIsIdle(t *testing.T) {
	const peers = 200
	ended := make(chan error, peers)
	url := serve(t, func(c *websocket.Conn) {
		go c.Drop()
		ended <- read(c, func(websocket.Kind, []byte) error { return nil })
	})
	for range peers {
		raw(t, url)
	}
	for range peers {
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the read returned without an error")
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a read did not end")
		}
	}
}

// bareListener hides the descriptors of its connections.
type bareListener struct{ net.Listener }

func (l bareListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return struct{ net.Conn }{c}, err
}

func TestAwait_NeedsNoDescriptor(t *testing.T) {
	server := httptest.NewUnstartedServer(handler(echo))
	server.Listener = bareListener{server.Listener}
	server.Start()
	t.Cleanup(server.Close)
	peer := raw(t, server.URL)
	for range 3 {
		peer.frame(0x89, []byte("ping"))
		peer.want(0x8A, "ping")
	}
	if err := peer.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end of the connection", err)
	}
}
