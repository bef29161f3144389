package control

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
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

// client connects as process pid and asks for the version.
func (c *crowd) client(t *testing.T, pid int) (*controltest.Client, error) {
	t.Helper()
	c.next.Store(int64(pid))
	client := controltest.New(t, c.path)
	return client, version(t.Context(), client)
}

func version(ctx context.Context, client *controltest.Client) error {
	_, err := controltest.Call(ctx, client, api.GetVersion, api.None{})
	return err
}

// list makes a call that is not a diagnostic.
func list(ctx context.Context, client *controltest.Client) error {
	_, err := controltest.Call(ctx, client, api.ListTools, api.None{})
	return err
}

func (c *crowd) welcome(t *testing.T, pid int) *controltest.Client {
	t.Helper()
	client, err := c.client(t, pid)
	if err != nil {
		t.Fatalf("process %d was refused: %v", pid, err)
	}
	return client
}

// wait makes a call that lasts until ctx ends, and returns the error of a refused call.
func wait(ctx context.Context, client *controltest.Client) error {
	lines, err := controltest.Stream(ctx, client, api.CallTool, api.ToolRequest{Name: "wait"})
	if err == nil {
		_, err = lines.Next()
	}
	return err
}

func wantRefusal(t *testing.T, err error, code, message string) {
	t.Helper()
	if e := refusalOf(t, err); e.Code != code || !e.Retryable || e.FixHint == "" || !strings.Contains(e.Message, message) {
		t.Fatalf("refusal %+v; want code %s, message %s and a fix hint", e, code, message)
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
	for _, client := range []*controltest.Client{hostile, good} {
		if err := version(ctx, client); err != nil {
			t.Errorf("status at the limit: %v, want no error", err)
		}
	}
	cancel()
	settled(t, "the calls are no longer counted", func() bool {
		_, err := controltest.Tool(t.Context(), good, "x", "")
		return err == nil
	})
	settled(t, "nothing is counted any more", func() bool {
		used, _ := c.room.calls.Counts()
		return used == 0
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
	if err := version(t.Context(), good); err != nil {
		t.Errorf("a client that connected earlier was disconnected: %v", err)
	}
	if err := version(t.Context(), c.welcome(t, 3)); err != nil {
		t.Errorf("a client that connects later: %v, want no error", err)
	}
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	if n := len(c.room.open); n > 8 {
		t.Errorf("%d connections are open, want at most 8", n)
	}
}

// Connections with calls in progress are not closed for a new one, whose calls are refused with the reason.
func TestBusyConnectionsAreBounded(t *testing.T) {
	c := gather(t, Limits{Connections: 4, Calls: 64})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, pid := range []int{1, 1} {
		if err := wait(ctx, c.welcome(t, pid)); err != nil {
			t.Fatal(err)
		}
	}
	wantRefusal(t, list(ctx, c.welcome(t, 1)), "too_many_connections", "process 1 reached its limit of 2 connections")
	good := c.welcome(t, 2)
	if err := wait(ctx, good); err != nil {
		t.Fatal(err)
	}
	if err := wait(ctx, c.welcome(t, 3)); err != nil {
		t.Fatal(err)
	}
	crowded := c.welcome(t, 4)
	wantRefusal(t, list(ctx, crowded), "too_many_connections", "4 connections have calls in progress")
	for _, client := range []*controltest.Client{good, crowded} {
		if err := version(ctx, client); err != nil {
			t.Errorf("a diagnostic call at the limit: %v, want no error", err)
		}
	}
	cancel()
	settled(t, "there is room again", func() bool {
		c.next.Store(4)
		return list(t.Context(), controltest.New(t, c.path)) == nil
	})
}

func settled(t *testing.T, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !yes(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not true after 10 s: %s", what)
		}
	}
}
