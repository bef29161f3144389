package mcpgate

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/service-dev/service/internal/problem"
)

const slowCall = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow"}}`

// wantBusy checks that a call was refused under its id, as a result that an agent can read.
func wantBusy(t *testing.T, got map[string]any, id float64, message string) {
	t.Helper()
	if got["id"] != id || dig(got, "result", "isError") != true ||
		dig(got, "result", "structuredContent", "code") != problem.CodeTooManyCalls ||
		dig(got, "result", "structuredContent", "retryable") != true ||
		!strings.Contains(fmt.Sprint(dig(got, "result", "structuredContent", "message")), message) {
		t.Fatalf("got %v, want call %v refused with %s", got, id, message)
	}
}

// Each call of an agent above its limit is answered with an error that explains the limit. Another agent is still
// served, and the first is served again once some of its calls have ended.
func TestCallsOfOneStreamAreBounded(t *testing.T) {
	f := newFakeTools()
	f.begun = make(chan struct{}, maxCalls)
	f.ended = make(chan error, maxCalls)
	dial, _ := start(t, Options{Catalogue: f})
	hostile, good := join(dial), join(dial)
	for i := range maxCalls {
		hostile.send(fmt.Sprintf(slowCall, i+1))
	}
	for range maxCalls {
		<-f.begun
	}
	for i := range 50 {
		hostile.send(fmt.Sprintf(slowCall, 1000+i))
		wantBusy(t, hostile.receive(), float64(1000+i), "this connection has reached its limit of 128 running calls")
	}
	// Requests other than calls are still answered.
	for i := range 2 * maxCalls {
		hostile.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"ping"}`, i),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":"l%d","method":"tools/list"}`, i))
		for range 2 {
			if got := hostile.receive(); got["error"] != nil || got["result"] == nil {
				t.Fatalf("got %v", got)
			}
		}
	}
	good.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`)
	if got := good.receive(); got["id"] != 7.0 || got["error"] != nil || dig(got, "result", "isError") == true {
		t.Errorf("the other agent: %v, want no error", got)
	}
	close(f.release)
	for range maxCalls {
		if got := hostile.receive(); got["error"] != nil {
			t.Fatalf("got %v", got)
		}
	}
	hostile.send(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"echo"}}`)
	if got := hostile.receive(); got["id"] != 8.0 || got["error"] != nil {
		t.Errorf("the next call: %v, want no error", got)
	}
}

// Requests that do not call a tool may arrive faster than they are answered; the gate queues them.
func TestQuickRequestsWaitTheirTurn(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.initialize()
	const n = 10 * maxCalls
	go func() {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i)
		}
		_, _ = c.conn.Write([]byte(all.String()))
	}()
	for range n {
		if got := c.receive(); got["error"] != nil {
			t.Fatalf("got %v", got)
		}
	}
}

// All streams together have at most MaxCalls calls. The calls of a stream are released when it ends.
func TestCallsOfAllStreamsAreBounded(t *testing.T) {
	f := newFakeTools()
	dial, gate := start(t, Options{Catalogue: f, MaxCalls: 4, DrainGrace: time.Millisecond})
	first, second := join(dial), join(dial)
	for i := range 4 {
		first.send(fmt.Sprintf(slowCall, i+1))
		<-f.begun
	}
	second.send(fmt.Sprintf(slowCall, 1))
	wantBusy(t, second.receive(), 1, "all agents together have reached the limit of 4 running calls")
	second.send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
	if got := second.receive(); got["id"] != "p" || got["error"] != nil {
		t.Errorf("a ping: %v, want no error", got)
	}
	second.send(strings.Replace(fmt.Sprintf(slowCall, 2), `"name"`, modernMeta+`,"name"`, 1))
	if got := second.receive(); dig(got, "result", "resultType") != "complete" {
		t.Errorf("a client of the stateless protocol: %v, want a complete result", got)
	}
	_ = first.conn.Close()
	for range 4 {
		<-f.ended
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left, _ := gate.limiter.calls.Counts()
		if left == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d calls are counted, but none is running", left)
		}
	}
	second.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo"}}`)
	if got := second.receive(); got["id"] != 3.0 || dig(got, "result", "isError") == true {
		t.Errorf("the next call: %v, want no error", got)
	}
}

// One process may open half of the streams; another process can still connect.
func TestStreamsOfOneProcessAreBounded(t *testing.T) {
	var pid atomic.Int64
	dial, gate := start(t, Options{Catalogue: newFakeTools(), MaxConnections: 4,
		Process: func(net.Conn) int { return int(pid.Load()) }})
	pid.Store(1)
	one := join(dial)
	join(dial)
	refused := dial()
	if got := refused.receive(); got["code"] != problem.CodeTooManyClients ||
		!strings.Contains(fmt.Sprint(got["message"]), "process 1 reached its limit of 2") || got["fixHint"] == "" {
		t.Fatalf("the third stream of a process: %v, want a refusal", got)
	}
	pid.Store(2)
	good := join(dial)
	good.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`)
	if got := good.receive(); got["id"] != 7.0 {
		t.Errorf("an agent of another process: %v, want an answer", got)
	}
	_ = one.conn.Close()
	pid.Store(1)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		again := dial()
		// The write fails if the stream was already refused; the refusal can still be read.
		_, _ = again.conn.Write([]byte(goodHandshake + "\n"))
		if again.receive()["ok"] == true {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a closed stream is still counted; %d streams", gate.Clients())
		}
	}
}

// A client that stops reading gets every response once it reads again. The number of responses queued for it is
// limited, because the gate stops reading its stream. Other clients are unaffected, and the daemon stops without
// waiting for it.
func TestClientThatReadsLate(t *testing.T) {
	dial, gate := start(t, Options{Catalogue: newFakeTools(), DrainGrace: time.Millisecond})
	gate.unread = 128 << 10
	late, deaf, good := join(dial), join(dial), join(dial)
	const calls = 80
	big := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"x":"` +
		strings.Repeat("x", 16<<10) + `"}}}` + "\n"
	sent := make(chan error, 2)
	for _, c := range []*client{late, deaf} {
		go func() {
			for i := range calls {
				if _, err := fmt.Fprintf(c.conn, big, i+10); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
	}
	good.send(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}`)
	if got := good.receive(); got["id"] != 7.0 {
		t.Errorf("the other client: %v, want an answer", got)
	}
	select {
	case err := <-sent:
		t.Fatalf("every call was read although no answer was (%v), so the queue is not bounded", err)
	case <-time.After(200 * time.Millisecond):
	}
	ids := map[int]bool{}
	for range calls {
		// Decoding every line is slow under the race detector.
		line := late.line()
		var id int
		if _, err := fmt.Sscanf(line, `{"jsonrpc":"2.0","id":%d,"result"`, &id); err != nil || ids[id] ||
			strings.Contains(line, `"isError":true`) {
			t.Fatalf("got %.200s", line)
		}
		ids[id] = true
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	_ = deaf.conn.Close()
	<-sent
	for deadline := time.Now().Add(15 * time.Second); gate.Clients() > 2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a stream is still served although its client has disconnected")
		}
	}
	// The client never reads this; the daemon must still stop.
	if _, err := fmt.Fprintf(good.conn, big, 1); err != nil {
		t.Error(err)
	}
}

// If the streams of all clients together have too much unread data, the gate stops reading a stream that has some of
// it.
func TestFlow_UnreadOnAllStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all atomic.Int64
		f, others := newFlowControl(), newFlowControl()
		f.all, others.all = &all, &all
		f.add(1, fewUnreadBytes, 0)
		// This is far below the limit for one stream.
		f.wait()
		others.add(1, maxUnreadInAll, 0)
		var isRead atomic.Bool
		go func() {
			f.wait()
			isRead.Store(true)
		}()
		synctest.Wait()
		if isRead.Load() {
			t.Error("a stream is still read although all streams together have too much unread output")
		}
		f.add(-1, -fewUnreadBytes, 0)
		synctest.Wait()
		if !isRead.Load() {
			t.Error("a stream is not read although its client reads")
		}
	})
}

// While other clients have too much unread data, a client that reads gets every response. A stream that has ended no
// longer counts.
func TestUnreadAnswersOnAllStreams(t *testing.T) {
	dial, gate := start(t, Options{Catalogue: newFakeTools()})
	deaf, good := join(dial), join(dial)
	const others = maxUnreadInAll - 1
	gate.limiter.unread.Add(others)
	big := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"x":"` +
		strings.Repeat("x", fewUnreadBytes*3/2) + `"}}}` + "\n"
	if _, err := fmt.Fprintf(deaf.conn, big, 10); err != nil {
		t.Fatal(err)
	}
	within(t, "an unread answer is not counted", func() bool {
		return gate.limiter.unread.Load() > others+2*fewUnreadBytes
	})
	for id := 10; id < 13; id++ {
		if _, err := fmt.Fprintf(good.conn, big, id); err != nil {
			t.Fatal(err)
		}
		if got := good.receive(); got["id"] != float64(id) || got["error"] != nil {
			t.Fatalf("the client that reads got %.300v, want an answer", got)
		}
	}
	if got := deaf.receive(); got["id"] != 10.0 || got["error"] != nil {
		t.Fatalf("the first answer of the client that did not read is %.300v", got)
	}
	_ = deaf.conn.Close()
	_ = good.conn.Close()
	within(t, "a closed stream is still counted", func() bool {
		return gate.Clients() == 0 && gate.limiter.unread.Load() == others
	})
}

// While other clients have too much unread data, a client whose calls all end at once gets every response as long as it
// reads.
func TestUnreadAnswersOfOneThatReads(t *testing.T) {
	f := newFakeTools()
	dial, gate := start(t, Options{Catalogue: f})
	good := join(dial)
	gate.limiter.unread.Add(maxUnreadInAll)
	const calls = 8
	big := strings.Replace(slowCall, `"slow"`, `"slow","arguments":{"x":"`+strings.Repeat("x", fewUnreadBytes)+`"}`, 1) +
		"\n"
	for id := range calls {
		if _, err := fmt.Fprintf(good.conn, big, id); err != nil {
			t.Fatal(err)
		}
		<-f.begun
	}
	close(f.release)
	for range calls {
		if got := good.receive(); got["error"] != nil {
			t.Errorf("the client that reads got %.300v, want an answer", got)
		}
	}
	within(t, "answers that were read are still counted",
		func() bool { return gate.limiter.unread.Load() == maxUnreadInAll })
}

// Responses to a batch count as unread while they wait for the batch's last response, but no longer once their stream
// has ended.
func TestUnreadAnswersToABatch(t *testing.T) {
	f := newFakeTools()
	dial, gate := start(t, Options{Catalogue: f, DrainGrace: time.Millisecond})
	gate.limiter.unread.Add(maxUnreadInAll)
	const calls = 30
	batch := func(last string) string {
		var parts []string
		for id := range calls {
			parts = append(parts, fmt.Sprintf(strings.Replace(slowCall, `"slow"`,
				`"echo","arguments":{"x":"`+strings.Repeat("x", largeAnswer)+`"}`, 1), id))
		}
		return "[" + strings.Join(append(parts, last), ",") + "]"
	}
	c := join(dial)
	c.send(batch(`{"jsonrpc":"2.0","id":"p","method":"ping"}`))
	line := c.line()
	if n := strings.Count(line, problem.CodeTooManyUnread); n == 0 || len(line) > 4*fewUnreadBytes ||
		strings.Count(line, `"id":`) < calls+1 {
		t.Errorf("%d of %d answers were dropped, and %d bytes are left", n, calls, len(line))
	}
	gone := join(dial)
	gone.send(batch(fmt.Sprintf(slowCall, 1000)))
	<-f.begun
	within(t, "answers that wait for the rest of a batch are not counted", func() bool {
		return gate.limiter.unread.Load() >= maxUnreadInAll+fewUnreadBytes
	})
	_ = gone.conn.Close()
	<-f.ended
	within(t, "the batch of a closed stream is still counted", func() bool {
		return gate.Clients() == 1 && gate.limiter.unread.Load() == maxUnreadInAll
	})
}

func TestFlow_TakesNoLargeAnswerMore(t *testing.T) {
	var all atomic.Int64
	f := newFlowControl()
	f.all = &all
	for _, tc := range []struct {
		all   int64
		bytes int
		n     int
		want  bool
	}{
		{0, fewUnreadBytes, 1 << 20, true},
		{maxUnreadInAll, 0, 1 << 20, true},
		{maxUnreadInAll, fewUnreadBytes, largeAnswer - 1, true},
		{maxUnreadInAll, fewUnreadBytes, largeAnswer, false},
	} {
		all.Store(tc.all)
		if f.bytes = tc.bytes; f.reserve(tc.n, 0) != tc.want {
			t.Errorf("%+v", tc)
		}
	}
	got, err := jsonrpc.EncodeMessage(droppedAnswer(jsonrpc.ID{}))
	if err != nil || !strings.Contains(string(got), problem.CodeTooManyUnread) || len(got) > 1024 {
		t.Errorf("the dropped response was replaced by %s, %v; want a short error", got, err)
	}
}

// within waits until ok returns true.
func within(t *testing.T, problem string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(problem)
		}
	}
}

// join opens a stream and sends initialize.
func join(dial func() *client) *client {
	c := dial()
	c.send(goodHandshake)
	if c.receive()["ok"] != true {
		c.t.Fatal("the handshake was refused")
	}
	c.initialize()
	return c
}
