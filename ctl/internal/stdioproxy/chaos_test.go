package stdioproxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// However daemons behave, each request gets exactly one response. A call of a read-only tool is handled at most twice,
// any other call at most once.
func TestProxy_RandomDaemonFailures(t *testing.T) {
	seeds := 15
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		seeds = 150
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { t.Parallel(); runChaos(t, uint64(seed)) })
	}
}

// chaos runs daemons that fail at random.
type chaos struct {
	t       *testing.T
	daemons sync.WaitGroup

	mu      sync.Mutex
	random  *rand.Rand
	handled map[string]int // number of times each call was handled, by id
}

func (c *chaos) draw(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

func (c *chaos) connect(context.Context) (io.ReadWriteCloser, error) {
	if c.draw(10) == 0 {
		return nil, errors.New("no daemon is running")
	}
	ours, theirs := socketPair(c.t)
	c.daemons.Go(func() {
		defer ours.Close()
		c.serve(ours)
	})
	return theirs, nil
}

// serve runs one daemon: it refuses or exits before the handshake, after it, or after some lines.
func (c *chaos) serve(conn net.Conn) {
	const refusal = `{"ok":false,"code":"too_many_clients","message":"full","fixHint":"wait"}` + "\n"
	in, fate := bufio.NewReader(conn), c.draw(8)
	switch fate {
	case 0:
		_, _ = io.WriteString(conn, refusal)
		return
	case 1:
		return
	}
	if _, err := in.ReadBytes('\n'); err != nil || fate == 2 {
		return
	}
	if fate == 3 {
		_, _ = io.WriteString(conn, refusal)
		return
	}
	_, _ = io.WriteString(conn, `{"ok":true,"repeatable":["read"]}`+"\n")
	for lines := c.draw(12); fate == 4 || lines > 0; lines-- {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(line, &m); err != nil {
			c.t.Errorf("a daemon received the invalid line %q: %v", line, err)
			return
		}
		if m.ID == nil {
			continue
		}
		if m.Method == "tools/call" {
			c.mu.Lock()
			c.handled[string(m.ID)]++
			c.mu.Unlock()
		}
		if c.draw(8) == 0 {
			return
		}
		_, _ = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
	}
}

func runChaos(t *testing.T, seed uint64) {
	const calls = 60
	c := &chaos{t: t, random: rand.New(rand.NewPCG(seed, 0)), handled: map[string]int{}}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := New(Options{
		In: inR, Out: outW, Handshake: Handshake{Client: "test", Version: "1"}, Connect: c.connect,
		Drain: time.Second, Pause: time.Millisecond, HandshakeTimeout: 10 * time.Second,
		HalfClose: func(c io.ReadWriteCloser) error { return c.(*net.UnixConn).CloseWrite() },
	})
	ended := make(chan error, 1)
	go func() {
		_ = p.Open(context.Background())
		ended <- p.Run(context.Background())
		_ = outW.Close()
	}()
	go func() {
		_, _ = io.WriteString(inW, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`+"\n")
		for id := 1; id <= calls; id++ {
			_, _ = fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`+"\n", id,
				[]string{"read", "write"}[id%2])
			if c.draw(4) == 0 {
				_, _ = io.WriteString(inW, `{"jsonrpc":"2.0","method":"notifications/progress"}`+"\n")
			}
		}
	}()
	silent := time.AfterFunc(30*time.Second, func() { _ = inW.Close(); _ = outW.Close() })
	answers := map[string]int{}
	for out := bufio.NewReader(outR); ; {
		line, err := out.ReadBytes('\n')
		if err != nil {
			break
		}
		var m struct{ ID json.RawMessage }
		if err := json.Unmarshal(line, &m); err != nil {
			t.Errorf("the client received the invalid line %q: %v", line, err)
		}
		if answers[string(m.ID)]++; len(answers) == calls+1 {
			// Every call has a response now, so any further response is wrong.
			_ = inW.Close()
		}
	}
	if !silent.Stop() {
		t.Error("the client is still waiting for responses")
	}
	if err := <-ended; err != nil {
		t.Errorf("the proxy returned %v, want no error", err)
	}
	c.daemons.Wait() // each daemon detects that its connection is closed
	for id := range calls + 1 {
		if n := answers[fmt.Sprint(id)]; n != 1 {
			t.Errorf("request %d got %d responses, want 1", id, n)
		}
	}
	for id, n := range c.handled {
		var number int
		_, _ = fmt.Sscan(id, &number)
		if n > 2-number%2 {
			t.Errorf("call %s was handled %d times, more than allowed", id, n)
		}
	}
}
