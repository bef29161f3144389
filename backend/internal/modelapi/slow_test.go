package modelapi

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/service-dev/service/backend/internal/gateway"
)

// The apps read one byte at a time. The interval is 1/30 of the write timeout, like 1 s for the default of 30 s. Each
// call ends, is charged, and leaves no hold, goroutine, connection or memory behind.
func TestCall_EndsForAnAppThatReadsByteByByte(t *testing.T) {
	checkLeaks := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, checkLeaks) })
	const apps, timeout = 8, 60 * time.Millisecond
	w := newWorld(t, timeout, gateway.Limits{})
	before := uint64(0)
	for round := range 3 {
		var reading sync.WaitGroup
		ended := make(chan struct{})
		for range apps {
			conn := w.longAnswer(t)
			reading.Go(func() { readByteByByte(t, conn, timeout/30, ended) })
		}
		for range apps {
			if row := <-w.purse.rows; row.Outcome != "cancelled" || row.TextOut == 0 {
				t.Errorf("%+v", row)
			}
		}
		for range apps { // the server closes each connection while the apps still read
			<-w.closed
		}
		close(ended)
		reading.Wait()
		if n := w.purse.left(); n != 0 {
			t.Errorf("%d holds left, want none", n)
		}
		if round == 0 { // pools and caches are full now
			before = heap()
		}
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("heap grew from %d to %d bytes, want at most 4 MB more", before, after)
	}
}

// longAnswer starts a call whose answer is far larger than the buffers of a connection.
func (w *world) longAnswer(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err == nil {
		err = conn.(*net.TCPConn).SetReadBuffer(smallBuffer)
	}
	if err != nil {
		t.Fatal(err)
	}
	body := `{"model":"above-max","stream":true,"max_tokens":40,"messages":[{"role":"user","content":"Hello"}]}`
	if _, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	return conn
}

// readByteByByte reads a byte at each tick until the call has ended.
func readByteByByte(t *testing.T, conn net.Conn, pace time.Duration, ended <-chan struct{}) {
	defer conn.Close()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for one := make([]byte, 1); ; {
		select {
		case <-ended:
			return
		case <-tick.C:
		}
		if _, err := conn.Read(one); err != nil {
			t.Logf("the connection ended: %v", err)
			<-ended
			return
		}
	}
}
