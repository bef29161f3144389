package stdioproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The responses to a batch are sent as one array, whether the daemon or the proxy creates them.
func TestDisconnect_AnswersBatchInOneArray(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":2,` +
		`"method":"tools/call"}]`)
	d.get()
	d.Close()
	got := r.hear()
	var answers []struct{ ID int }
	if err := json.Unmarshal([]byte(got), &answers); err != nil || len(answers) != 2 || answers[0].ID+answers[1].ID != 3 {
		t.Fatalf("response to the batch: %s: %v", got, err)
	}
}

// A client that uses an id twice gets two responses, and at the end of its input the proxy waits for both.
func TestDisconnect_AnswersRepeatedIDTwice(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for range 2 {
		r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		d.get()
	}
	d.put(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"in use"}}`)
	r.hear()
	d.Close()
	if got := r.hear(); !strings.Contains(got, "daemon_restarted") {
		t.Fatalf("response to the first call: got %s, want daemon_restarted", got)
	}
}

func TestDisconnect_AnswersCallsInFlightOnce(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":"a","method":"tools/call","params":{"name":"x"}}`)
	d.get()
	d.Close()
	var old struct {
		ID     string
		Result struct {
			IsError           bool
			ResultType        string
			StructuredContent struct {
				Code, Message, FixHint string
				Retryable              bool
			}
			Content []struct{ Type, Text string }
		}
	}
	if err := json.Unmarshal([]byte(r.hear()), &old); err != nil {
		t.Fatal(err)
	}
	s := old.Result.StructuredContent
	if old.ID != "a" || !old.Result.IsError || s.Code != "daemon_restarted" || !s.Retryable || s.FixHint == "" ||
		old.Result.ResultType != "" || len(old.Result.Content) != 1 {
		t.Fatalf("unexpected response to the open call: %+v", old)
	}

	r.gone(d)
	r.say(`{"id":2,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	d = r.daemon()
	d.get()
	r.say(`{"id":3,"method":"logging/setLevel"}`)
	d.get()
	d.Close()
	got := r.hear() + r.hear()
	if !strings.Contains(got, `"resultType":"complete"`) || !strings.Contains(got, `"id":3,"error":{"code":-32603`) {
		t.Fatalf("unexpected responses: %s", got)
	}
}

func TestReconnect_ReplaysInitialize(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	const initLine = `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	r.say(initLine)
	d.expect(initLine)
	d.put(`{"id":0,"result":{"n":1}}`)
	r.expect(`{"id":0,"result":{"n":1}}`)
	r.say(`{"method":"notifications/initialized"}`)
	d.get()
	r.gone(d)

	r.say(`{"id":1,"method":"ping"}`)
	d = r.daemon()
	d.expect(initLine)
	d.put(`{"method":"notifications/message"}`)
	d.put(`{"id":0,"result":{"n":2}}`)
	r.expect(`{"method":"notifications/message"}`)
	d.expect(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	d.expect(`{"id":1,"method":"ping"}`)
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
}

func TestReconnect_ResendsUnansweredInitializeOnce(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	r.say(`{"id":0,"method":"initialize"}`)
	d.get()
	d.Close()
	d = r.daemon()
	d.expect(`{"id":0,"method":"initialize"}`)
	d.Close()
	if got := r.hear(); !strings.Contains(got, `"id":0,"error"`) {
		t.Fatalf("got response %s, want an error with id 0", got)
	}
	// The next daemon does not receive initialize as a new request, because the client already got the response.
	r.say(`{"id":1,"method":"tools/list"}`)
	d = r.daemon()
	d.expect(`{"id":1,"method":"tools/list"}`)
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
}

// If a daemon exits while initialize is replayed, the proxy tries the next daemon and the client sees no error.
func TestReconnect_DaemonEndsDuringReplay(t *testing.T) {
	const initLine, list = `{"id":0,"method":"initialize"}`, `{"id":1,"method":"tools/list"}`
	r := newRig(t)
	d := r.daemon()
	r.say(initLine)
	d.expect(initLine)
	d.put(`{"id":0,"result":{}}`)
	r.expect(`{"id":0,"result":{}}`)
	d.Close()
	r.say(list)
	for range 2 {
		d = r.daemon()
		d.expect(initLine)
		d.Close()
	}
	d = r.daemon()
	d.expect(initLine)
	d.put(`{"id":0,"result":{}}`)
	d.expect(list)
	d.put(`{"id":1,"result":{}}`)
	r.expect(`{"id":1,"result":{}}`)
}

func TestReconnect_SendsInitializeOncePerConnection(t *testing.T) {
	r := newRig(t)
	const initLine, list = `{"id":0,"method":"initialize"}`, `{"id":1,"method":"tools/list"}`
	d := r.daemon()
	r.say(initLine)
	d.get()
	d.Close()
	// This daemon exits before it accepts a handshake.
	ending := daemon{t: t, Conn: <-r.daemons}
	ending.r = bufio.NewReader(ending)
	ending.get()
	ending.expect(initLine)
	ending.Close()
	d = r.daemon()
	d.expect(initLine)
	r.say(list)
	d.expect(list)
}

func TestReconnect_DropsAnswersForEarlierDaemon(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	d.put(`{"id":"ask","method":"elicitation/create"}`)
	r.hear()
	r.gone(d)
	r.say(`{"id":1,"method":"tools/call"}`)
	d = r.daemon()
	d.expect(`{"id":1,"method":"tools/call"}`)
	r.say(`{"id":"ask","result":{}}`)
	r.say(`{"method":"after"}`)
	d.expect(`{"method":"after"}`)
}

// A failed attempt is followed by a pause, which ends early if a daemon appears, no matter which client started it.
func TestReconnect_UsesDaemonOfAnotherClientAtOnce(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	var runs atomic.Bool
	attempts, daemons := 0, make(chan net.Conn, 1)
	p := New(Options{
		In: inR, Out: outW, Handshake: Handshake{Client: "test", Version: "1"}, Drain: time.Second,
		Pause: time.Hour, Running: runs.Load,
		Connect: func(context.Context) (io.ReadWriteCloser, error) {
			if attempts++; !runs.Load() {
				return nil, errors.New("it exited before it was ready")
			}
			ours, theirs := socketPair(t)
			daemons <- ours
			return theirs, nil
		},
	})
	done := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		done <- p.Run(context.Background())
	}()
	r := &rig{t: t, in: inW, out: bufio.NewReader(outR), pipe: outR}
	for range 2 {
		r.say(`{"id":1,"method":"tools/list"}`)
		if got := r.hear(); !strings.Contains(got, "exited before it was ready") {
			t.Errorf("got response %s, want the reason of the failed start", got)
		}
	}
	if attempts != 1 {
		t.Errorf("%d attempts in a row, want 1", attempts)
	}
	runs.Store(true)
	r.say(`{"id":2,"method":"tools/list"}`)
	d := <-daemons
	lines := bufio.NewScanner(d)
	for lines.Scan() && !strings.Contains(lines.Text(), "tools/list") {
		_, _ = io.WriteString(d, `{"ok":true}`+"\n")
	}
	_, _ = io.WriteString(d, `{"id":2,"result":{}}`+"\n")
	r.expect(`{"id":2,"result":{}}`)
	_ = inW.Close()
	_ = d.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The proxy reads a daemon's last messages even if it could no longer write to the daemon.
func TestDisconnect_ReadsLastMessages(t *testing.T) {
	r := newRig(t)
	d := r.daemon()
	for _, id := range []string{"1", "2", "3"} {
		call := `{"id":` + id + `,"method":"tools/call"}`
		r.say(call)
		d.expect(call)
	}
	long := `,"result":"` + strings.Repeat("x", 2*bufferSize) + `"}`
	// The connection's reader blocks until the client reads.
	d.put(`{"id":1` + long)
	d.put(`{"id":2` + long)
	_ = d.Close()
	r.say(`{"method":"notifications/anything"}`) // cannot be written
	// The proxy reads the next line because the write before it has failed.
	r.say(`{"method":"notifications/anything"}`)
	r.expect(`{"id":1` + long)
	r.expect(`{"id":2` + long)
	if got := r.hear(); !strings.Contains(got, `"id":3`) || !strings.Contains(got, "daemon_restarted") {
		t.Fatalf("response to the open call: got %s, want daemon_restarted", got)
	}
}

func TestReconnect_AnswersAndRetriesWithoutDaemon(t *testing.T) {
	r := newRig(t)
	(<-r.daemons).Close()
	r.refuse <- errors.New("start the daemon: no space left")
	r.say(`{"id":1,"method":"initialize"}`)
	first := r.hear()
	if !strings.Contains(first, `"id":1,"error"`) {
		t.Fatalf("got response %s, want an error", first)
	}
	for i := 2; ; i++ {
		r.say(fmt.Sprintf(`{"id":%d,"method":"tools/list"}`, i))
		select {
		case conn := <-r.daemons:
			r.daemons <- conn
			r.daemon().get()
			return
		case <-time.After(5 * time.Millisecond):
			if i > 1000 {
				t.Fatal("the proxy does not try again")
			}
			if got := r.hear(); !strings.Contains(got, "error") {
				t.Fatalf("got response %s, want an error", got)
			}
		}
	}
}
