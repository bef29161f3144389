package control

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// crowd is a server whose clients appear to have the process id in next.
type crowd struct {
	path string
	next atomic.Int64
	room *connLimiter
}

func gather(t *testing.T, limits Limits) *crowd {
	t.Helper()
	c := &crowd{}
	path, s := serve(t, &fake{}, limits)
	c.path, c.room = path, s.conns
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	c.room.process = func(net.Conn) int { return int(c.next.Load()) }
	return c
}

// client connects as process pid and calls Hello.
func (c *crowd) client(t *testing.T, pid int) (controlv1.ControlClient, error) {
	t.Helper()
	c.next.Store(int64(pid))
	client := visit(t, c.path)
	_, err := client.Hello(t.Context(), &controlv1.HelloRequest{ProtocolMin: 1, ProtocolMax: 1})
	return client, err
}

func (c *crowd) welcome(t *testing.T, pid int) controlv1.ControlClient {
	t.Helper()
	client, err := c.client(t, pid)
	if err != nil {
		t.Fatalf("process %d was refused: %v", pid, err)
	}
	return client
}

// wait makes a call that lasts until ctx ends, and returns the error of a refused call.
func wait(ctx context.Context, client controlv1.ControlClient) error {
	stream, err := client.CallTool(ctx, &controlv1.CallToolRequest{Name: "wait"})
	if err == nil {
		_, err = stream.Recv()
	}
	return err
}

func wantRefusal(t *testing.T, err error, code, message string) {
	t.Helper()
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("got %v, want a refusal with code %s", err, code)
	}
	if e := told(t, err); e.GetCode() != code || !e.GetRetryable() || e.GetFixHint() == "" ||
		!strings.Contains(e.GetMessage(), message) {
		t.Fatalf("refusal %v; want code %s, message %s and a fix hint", e, code, message)
	}
}

// A process that keeps opening calls is refused once it uses half of the total, with an error that says so. Other
// clients are still served, and status requests always are.
func TestCallsAreBounded(t *testing.T) {
	c := gather(t, Limits{Calls: 8})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hostile := c.welcome(t, 1)
	for i := range 4 {
		if err := wait(ctx, hostile); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	for range 20 {
		wantRefusal(t, wait(ctx, hostile), "too_many_calls", "process 1 reached its limit of 4 calls")
	}
	if err := wait(ctx, c.welcome(t, 1)); err == nil {
		t.Error("the process exceeded its limit through another connection")
	}
	good := c.welcome(t, 2)
	if err := wait(ctx, good); err != nil {
		t.Fatalf("another process was refused: %v", err)
	}
	for range 3 {
		if err := wait(ctx, c.welcome(t, 3)); err != nil {
			t.Fatal(err)
		}
	}
	wantRefusal(t, wait(ctx, good), "too_many_calls", "8 calls are in progress")
	for _, client := range []controlv1.ControlClient{hostile, good} {
		if _, err := client.Status(ctx, &controlv1.StatusRequest{}); err != nil {
			t.Errorf("status at the limit: %v, want no error", err)
		}
	}
	cancel()
	settled(t, "the calls are no longer counted", func() bool {
		stream, err := good.CallTool(t.Context(), &controlv1.CallToolRequest{Name: "x"})
		if err == nil {
			_, err = stream.Recv()
		}
		return err == nil
	})
	settled(t, "nothing is counted any more", func() bool {
		c.room.mu.Lock()
		defer c.room.mu.Unlock()
		return c.room.calls == 0
	})
}

// A process that opens connections without using them loses its own idle ones. Other processes keep theirs.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	c := gather(t, Limits{Connections: 8})
	good := c.welcome(t, 2)
	c.next.Store(1)
	var idle []net.Conn
	for range 50 {
		conn, err := net.Dial("unix", c.path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
	}
	_ = idle[0].SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.ReadAll(idle[0]); err != nil {
		t.Errorf("the first of 50 idle connections was not closed: %v", err)
	}
	if _, err := good.Status(t.Context(), &controlv1.StatusRequest{}); err != nil {
		t.Errorf("a client that connected earlier was disconnected: %v", err)
	}
	if _, err := c.welcome(t, 3).Status(t.Context(), &controlv1.StatusRequest{}); err != nil {
		t.Errorf("a client that connects later: %v, want no error", err)
	}
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	if n := len(c.room.open); n > 8 {
		t.Errorf("%d connections are open, want at most 8", n)
	}
}

// Connections with calls in progress are not closed for a new one. The new one is refused with the reason.
func TestBusyConnectionsAreBounded(t *testing.T) {
	c := gather(t, Limits{Connections: 4, Calls: 64})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, pid := range []int{1, 1} {
		if err := wait(ctx, c.welcome(t, pid)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.client(t, 1)
	wantRefusal(t, err, "too_many_connections", "process 1 reached its limit of 2 connections")
	good := c.welcome(t, 2)
	if err := wait(ctx, good); err != nil {
		t.Fatal(err)
	}
	if err := wait(ctx, c.welcome(t, 3)); err != nil {
		t.Fatal(err)
	}
	_, err = c.client(t, 4)
	wantRefusal(t, err, "too_many_connections", "4 connections have calls in progress")
	if _, err := good.Status(ctx, &controlv1.StatusRequest{}); err != nil {
		t.Errorf("an admitted client: %v, want no error", err)
	}
	cancel()
	settled(t, "there is room again", func() bool { _, err := c.client(t, 4); return err == nil })
}

// A message above the size limit is refused, and its connection stays usable.
func TestMessagesAreBounded(t *testing.T) {
	client := dial(t, &fake{})
	stream, err := client.CallTool(t.Context(), &controlv1.CallToolRequest{Name: "x",
		Arguments: `"` + strings.Repeat("x", maxMessage) + `"`})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("5 MB of arguments: %v, want ResourceExhausted", err)
	}
	if _, err := client.Status(t.Context(), &controlv1.StatusRequest{}); err != nil {
		t.Errorf("the next call: %v, want no error", err)
	}
}

func settled(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !yes(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not true after 10 s: %s", what)
		}
	}
}
