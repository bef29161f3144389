package mcpgate

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	for protocolConn, meta := range map[string]string{"initialize": `"_meta":{"progressToken":"p"}`,
		"stateless": strings.Replace(modernMeta, `{`, `{"progressToken":"p",`, 1)} {
		c, _ := started(t, Options{Catalogue: newFakeTools()})
		if protocolConn == "initialize" {
			c.initialize()
		}
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"polls",` + meta + `}}`)
		for i := 1; i <= 3; i++ {
			if got := c.receive(); dig(got, "params", "progress") != float64(i) || dig(got, "params", "progressToken") != "p" {
				t.Errorf("%s: notification %d is %v, want progress", protocolConn, i, got)
			}
		}
		if got := c.receive(); got["id"] != 1.0 {
			t.Errorf("%s: then %v", protocolConn, got)
		}
	}
}

func TestCancel(t *testing.T) {
	for protocolConn, meta := range map[string]string{"initialize": `"x":1`, "stateless": modernMeta} {
		f := newFakeTools()
		c, _ := started(t, Options{Catalogue: f})
		if protocolConn == "initialize" {
			c.initialize()
		}
		c.send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"slow",` + meta + `}}`)
		<-f.begun
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`)
		if err := <-f.ended; err == nil {
			t.Errorf("%s: the call was not cancelled", protocolConn)
		}
		c.send(`{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"echo",` + meta + `}}`)
		if got := c.receive(); got["id"] != 10.0 {
			t.Errorf("%s: got %v, want no answer to the cancelled call", protocolConn, got)
		}
	}
}

func TestAnswersComeAfterTheClientClosedItsEnd(t *testing.T) {
	f := newFakeTools()
	c, _ := started(t, Options{Catalogue: f})
	c.send(initialize, initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`)
	c.receive()
	<-f.begun
	if err := c.conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(f.release)
	if got := c.receive(); got["id"] != 1.0 {
		t.Errorf("got %v", got)
	}
	if _, err := c.in.ReadByte(); err != io.EOF {
		t.Errorf("the stream was not closed: %v", err)
	}
}

// When a client's input ends, calls that wait for the user or an app are cancelled. Other calls may still finish.
func TestCallsThatWaitEndWithTheClientsInput(t *testing.T) {
	f := newFakeTools()
	c, _ := started(t, Options{Catalogue: f, DrainGrace: time.Minute})
	c.send(initialize, initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits"}}`)
	c.receive()
	<-f.begun
	c.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}`)
	<-f.begun
	if err := c.conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := <-f.ended; err == nil {
		t.Error("the wait was not cancelled")
	}
	close(f.release)
	if got := c.receive(); got["id"] != 2.0 || got["error"] != nil {
		t.Errorf("got %v", got)
	}
	if _, err := c.in.ReadByte(); err != io.EOF {
		t.Errorf("the stream was not closed: %v", err)
	}
}

// A question to the user is cancelled when the client can no longer answer it.
func TestQuestionsEndWithTheClientsInput(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools(), DrainGrace: time.Minute})
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{"url":{}}}`, 1), initialized,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"link"}}`)
	c.receive()
	c.receive()
	if err := c.conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := c.receive(); got["id"] != 1.0 {
		t.Errorf("got %v", got)
	}
	if _, err := c.in.ReadByte(); err != io.EOF {
		t.Errorf("the stream was not closed: %v", err)
	}
}

func TestLongCallsEndSomeTimeAfterTheClient(t *testing.T) {
	f := newFakeTools()
	c, _ := started(t, Options{Catalogue: f, DrainGrace: 10 * time.Millisecond})
	c.send(initialize, initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`)
	c.receive()
	<-f.begun
	_ = c.conn.Close()
	if err := <-f.ended; err == nil {
		t.Error("the call continued after the client disconnected")
	}
}

func TestRunningIdIsRefused(t *testing.T) {
	f := newFakeTools()
	c, _ := started(t, Options{Catalogue: f})
	c.initialize()
	slow := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`
	c.send(slow)
	<-f.begun
	c.send(slow)
	if got := c.receive(); got["id"] != 1.0 || dig(got, "error", "code") != -32600.0 {
		t.Errorf("got %v", got)
	}
	close(f.release)
	if got := c.receive(); got["id"] != 1.0 || got["error"] != nil {
		t.Errorf("the first call ended with %v, want no error", got)
	}
}
