package clientio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/clientio"
)

// process is a fake client: it connects when asked, and answer handles the requests that it receives.
type process struct {
	registry *Registry
	answer   func(r clientio.Request) any // returns nil to send no response; a string is sent unchanged
	taken    func()                       // called when the client learns that it was accepted
	late     chan struct{}                // if set, the process connects only after this is closed

	mu    sync.Mutex
	asked int
	conns []net.Conn
}

// client returns a Client whose stream asks this process to connect.
func (p *process) client() *Client {
	return p.registry.ForStream(func(token string) error {
		p.mu.Lock()
		p.asked++
		p.mu.Unlock()
		go p.connect(clientio.Handshake{Token: token, Asked: true})
		return nil
	})
}

func (p *process) connect(h clientio.Handshake) {
	if p.late != nil {
		<-p.late
	}
	ours, theirs := net.Pipe()
	p.mu.Lock()
	p.conns = append(p.conns, ours)
	p.mu.Unlock()
	go p.registry.Serve(h, theirs, testLines{bufio.NewReader(theirs)}, func(taken bool) error {
		if taken && p.taken != nil {
			p.taken()
		}
		return nil
	})
	in := json.NewDecoder(ours)
	for {
		var r clientio.Request
		if in.Decode(&r) != nil {
			return
		}
		switch answer := p.answer(r).(type) {
		case nil:
		case string:
			_, _ = io.WriteString(ours, answer+"\n")
		default:
			_ = json.NewEncoder(ours).Encode(answer)
		}
	}
}

type testLines struct{ r *bufio.Reader }

func (l testLines) Wait() error {
	_, err := l.r.Peek(1)
	return err
}

func (l testLines) Next(limit int) ([]byte, error) {
	line, err := l.r.ReadBytes('\n')
	if len(line) > limit {
		return nil, errors.New("line is too long")
	}
	return line, err
}

func ok(r clientio.Request) any { return clientio.Response{ID: r.ID, Data: []byte("data")} }

func TestClient_ConnectsWhenFirstNeededAndAgainAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{registry: NewRegistry(), answer: ok}
		c := p.client()
		files := FilesOf(caller.Caller{IO: c})
		if p.asked != 0 {
			t.Error("the client was asked to connect before it was needed")
		}
		for range 3 {
			if data, err := files.Read(t.Context(), "/a", 9); err != nil || string(data) != "data" {
				t.Fatalf("%q, %v", data, err)
			}
		}
		if p.asked != 1 {
			t.Errorf("the client was asked to connect %d times, want 1", p.asked)
		}
		time.Sleep(idleWait + time.Second)
		if _, err := files.Read(t.Context(), "/a", 9); err != nil || p.asked != 2 {
			t.Errorf("after being idle: asked to connect %d times, error %v; want 2 and no error", p.asked, err)
		}
		c.Close()
		if _, err := files.Read(t.Context(), "/a", 9); !IsUnavailable(err) {
			t.Errorf("read after Close: %v, want CodeUnavailable", err)
		}
		if len(p.registry.expected) != 0 || len(p.registry.open) != 0 {
			t.Errorf("connections were left behind: %v %v", p.registry.expected, p.registry.open)
		}
	})
}

func TestClient_KeepsNoConnectionThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"before the handshake", "between the handshake and its answer"} {
			p := &process{registry: NewRegistry(), answer: ok}
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			if name == "before the handshake" {
				p.late = over
			} else {
				p.taken = func() {
					cancel()
					<-over
				}
			}
			done := make(chan error)
			go func() {
				_, err := FilesOf(caller.Caller{IO: p.client()}).Read(ctx, "/a", 9)
				done <- err
			}()
			synctest.Wait()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			close(over)
			synctest.Wait()
			p.mu.Lock()
			conns := p.conns
			p.mu.Unlock()
			for _, conn := range conns {
				if _, err := conn.Write([]byte("x")); err == nil {
					t.Errorf("%s: a connection that no call will use stays open", name)
				}
			}
			synctest.Wait()
			if len(conns) != 1 || len(p.registry.expected) != 0 || len(p.registry.open) != 0 {
				t.Errorf("%s: %d connections, left behind: %v %v; want one connection and nothing",
					name, len(conns), p.registry.expected, p.registry.open)
			}
		}
	})
}

func TestClient_IsUnavailableWhenNobodyConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewRegistry().ForStream(func(string) error { return nil })
		start := time.Now()
		_, err := FilesOf(caller.Caller{IO: c}).Stat(t.Context(), "/a")
		if !IsUnavailable(err) || time.Since(start) != connectWait {
			t.Errorf("got %v after %v; want CodeUnavailable after connectWait", err, time.Since(start))
		}
		if opened, reason := Open(t.Context(), caller.Caller{IO: c}, "https://a/"); opened ||
			reason != clientio.ReasonClient {
			t.Errorf("opened %v, %s", opened, reason)
		}
	})
}

func TestClient_AnswersThatDoNotFit(t *testing.T) {
	for name, answer := range map[string]any{
		"another request's": clientio.Response{ID: 99}, "no JSON": "hello", "an array": "[]",
		"more than was asked for": func(r clientio.Request) any {
			return clientio.Response{ID: r.ID, Data: make([]byte, 100)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &process{registry: NewRegistry(), answer: func(r clientio.Request) any {
					if f, ok := answer.(func(clientio.Request) any); ok {
						return f(r)
					}
					return answer
				}}
				c := p.client()
				defer c.Close()
				if _, err := FilesOf(caller.Caller{IO: c}).Read(t.Context(), "/a", 9); err == nil {
					t.Error("taken")
				}
			})
		})
	}
}

func TestClient_HangingAnswerEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hang atomic.Bool
		hang.Store(true)
		p := &process{registry: NewRegistry(), answer: func(r clientio.Request) any {
			if hang.Load() {
				return nil
			}
			return ok(r)
		}}
		c := p.client()
		defer c.Close()
		files := FilesOf(caller.Caller{IO: c})
		start := time.Now()
		if _, err := files.Read(t.Context(), "/a", 9); !IsUnavailable(err) || time.Since(start) != answerWait {
			t.Errorf("got %v after %v; want CodeUnavailable after answerWait", err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := files.Read(ctx, "/a", 9); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled call: %v, want context.Canceled", err)
		}
		hang.Store(false)
		if _, err := files.Read(t.Context(), "/a", 9); err != nil {
			t.Errorf("the next call: %v, want no error", err)
		}
	})
}

func TestRegistry_MatchesTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := NewRegistry()
		p := &process{registry: registry, answer: ok}
		const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		if registry.ForToken(token) != nil || registry.ForToken("x") != nil {
			t.Error("found a client that never connected")
		}
		go p.connect(clientio.Handshake{Token: token})
		synctest.Wait()
		io := registry.ForToken(token)
		if io == nil {
			t.Fatal("did not find a client that connected first")
		}
		if _, err := FilesOf(caller.Caller{IO: io}).Read(t.Context(), "/a", 9); err != nil {
			t.Error(err)
		}
		go p.connect(clientio.Handshake{Token: token}) // a second connection with the same token is closed
		synctest.Wait()
		if registry.ForToken(token) != io {
			t.Error("a second connection replaced the first")
		}
		p.mu.Lock()
		_ = p.conns[0].Close()
		p.mu.Unlock()
		synctest.Wait()
		if registry.ForToken(token) != nil {
			t.Error("found a client that has disconnected")
		}
	})
}

// A client cannot make the daemon hold more data than the daemon requested.
func TestServe_ClosesWhoSpeaksUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{registry: NewRegistry(), answer: ok}
		const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		go p.connect(clientio.Handshake{Token: token})
		synctest.Wait()
		if _, err := io.WriteString(p.conns[0], "x"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if p.registry.ForToken(token) != nil {
			t.Error("a client that sends unrequested data is still served")
		}
	})
}

func TestServe_ReadsNoMoreThanWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{registry: NewRegistry(), answer: func(r clientio.Request) any {
			return clientio.Response{ID: r.ID, Data: make([]byte, 1<<20)}
		}}
		c := p.client()
		defer c.Close()
		if _, err := FilesOf(caller.Caller{IO: c}).Read(t.Context(), "/a", 100); !IsUnavailable(err) {
			t.Errorf("1 MB for 100 requested bytes: %v, want CodeUnavailable", err)
		}
	})
}

func TestLargeRequestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var underWay, most atomic.Int64
		p := &process{registry: NewRegistry(), answer: func(r clientio.Request) any {
			most.Store(max(most.Load(), underWay.Add(1)))
			time.Sleep(time.Second)
			underWay.Add(-1)
			return ok(r)
		}}
		var all sync.WaitGroup
		for range 3 * maxLarge {
			all.Go(func() {
				c := p.client()
				defer c.Close()
				if _, err := FilesOf(caller.Caller{IO: c}).Read(t.Context(), "/a", 16<<20); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most.Load() > maxLarge {
			t.Errorf("%d large requests in progress, want at most maxLarge", most.Load())
		}
	})
}

// A client may call a tool as soon as its connection is accepted, so it must be registered before that.
func TestServe_IsKnownBeforeTheClientHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		p := &process{registry: NewRegistry(), answer: ok}
		p.taken = func() {
			if p.registry.ForToken(token) == nil {
				t.Error("the client is not registered yet")
			}
		}
		go p.connect(clientio.Handshake{Token: token})
		synctest.Wait()
		p.mu.Lock()
		_ = p.conns[0].Close()
		p.mu.Unlock()
	})
}

func TestFiles_Errors(t *testing.T) {
	p := &process{registry: NewRegistry(), answer: func(r clientio.Request) any {
		return clientio.Response{ID: r.ID, Code: map[string]string{"/none": clientio.CodeNotExist,
			"/there": clientio.CodeExists}[string(r.Path)] + "", Message: "no\x1b[31m" + strings.Repeat("x", 999)}
	}}
	c := p.client()
	defer c.Close()
	files := FilesOf(caller.Caller{IO: c})
	_, err := files.Read(t.Context(), "/none", 9)
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || strings.Contains(err.Error(), "\x1b") ||
		len(err.Error()) > 300 {
		t.Errorf("%v", err)
	}
	if err := files.Create(t.Context(), "/there", nil, 0o600, 0o700); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if _, err := (Files{}).List(t.Context(), "/"); !IsUnavailable(err) || (Files{}).Available() {
		t.Errorf("a client without files: %v, want CodeUnavailable", err)
	}
}

func TestCollector_KeepsWhatIsWritten(t *testing.T) {
	collector := &Collector{}
	files := FilesOf(caller.Caller{IO: collector})
	if err := files.In("/p").Replace(t.Context(), "a/b.txt", []byte("text"), 0o644, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Read(t.Context(), "/p/a/b.txt", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading: %v", err)
	}
	if got := collector.Files(); len(got) != 1 || got[0].Path != "/p/a/b.txt" || !got[0].IsText() {
		t.Errorf("%+v", got)
	}
	if err := files.Replace(t.Context(), "/big", make([]byte, maxCollected), 0o644, 0o755); !IsUnavailable(err) {
		t.Errorf("more than maxCollected bytes: %v, want CodeUnavailable", err)
	}
}

func TestOpen_OptOutAsksNobody(t *testing.T) {
	p := &process{registry: NewRegistry(), answer: ok}
	who := caller.Caller{IO: p.client(), Env: map[string]string{"SERVICE_NO_AUTO_OPEN": "1"}}
	if opened, reason := Open(t.Context(), who, "https://a/"); opened || reason != clientio.ReasonDisabled ||
		p.asked != 0 {
		t.Errorf("Open: %v %s, asked %d times; want ReasonDisabled without asking", opened, reason, p.asked)
	}
}
