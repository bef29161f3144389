package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

const (
	relaySlice = 500 * time.Millisecond
	relayRuns  = 9
	idlePairs  = 2000
	warmPairs  = 20
	// linkPairs is below the number of session secrets that a backend creates for one link per minute.
	linkPairs = 100
)

// pair is one session: the page that sends a stream and the app that receives it.
type pair struct {
	page    *websocket.Conn
	arrived atomic.Int64  // total number of binary frames that the app has received
	moved   chan struct{} // signalled after each frame
}

// newPair starts the readers of both sides, because a peer that does not read cannot answer pings and is dropped.
func newPair(ctx context.Context, page, app *websocket.Conn) *pair {
	p := &pair{page: page, moved: make(chan struct{}, 1)}
	go drain(ctx, page, func(websocket.MessageType) {})
	go drain(ctx, app, func(kind websocket.MessageType) {
		if kind == websocket.MessageBinary {
			p.arrived.Add(1)
			select {
			case p.moved <- struct{}{}:
			default:
			}
		}
	})
	return p
}

// besideRelay runs f with a linked backend and a comparable baseline relay.
func (b *bench) besideRelay(f func(ctx context.Context, backend, floor *server, who *linked) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	floor, err := b.startBare("barerelay")
	if err != nil {
		return err
	}
	defer floor.stop()
	backend, who, err := b.startLinked("")
	if err != nil {
		return err
	}
	defer backend.stop()
	return f(ctx, backend, floor, who)
}

// relay measures stream frames per second from page to app, compared with a baseline relay.
func (b *bench) relay() error {
	return b.besideRelay(func(ctx context.Context, _, floor *server, who *linked) error {
		ours, err := ourPairs(ctx, who, 500)
		if err != nil {
			return err
		}
		bare, err := barePairs(ctx, floor.url, 500)
		if err != nil {
			return err
		}
		for _, test := range []struct {
			sessions, size int
			goal           string
		}{{1, 200, ">= 0.9"}, {1, 100_000, ">= 0.9"}, {500, 200, ">= 0.85"}, {500, 100_000, ">= 0.85"}} {
			var o, f []float64
			for range relayRuns {
				o = append(o, stream(ctx, ours[:test.sessions], test.size))
				f = append(f, stream(ctx, bare[:test.sessions], test.size))
			}
			b.rows = append(b.rows, ratesRow(fmt.Sprintf("stream frames of %d bytes, %d sessions / bare relay", test.size,
				test.sessions), middle(o), middle(f), test.goal))
		}
		return nil
	})
}

// idleSessions measures the memory that a new backend needs per session with an attached but silent page and app.
func (b *bench) idleSessions() error {
	return b.besideRelay(func(ctx context.Context, backend, floor *server, who *linked) error {
		if err := attachAndLeave(ctx, who, floor.url); err != nil {
			return err
		}
		before, bareBefore := settled(backend.pid, floor.pid)
		if _, err := ourPairs(ctx, who, idlePairs); err != nil {
			return err
		}
		if _, err := barePairs(ctx, floor.url, idlePairs); err != nil {
			return err
		}
		after, bareAfter := settled(backend.pid, floor.pid)
		each, bare := float64(after-before)/idlePairs, float64(bareAfter-bareBefore)/idlePairs
		b.rows = append(b.rows, row{fmt.Sprintf("resident memory of an idle session (page and app), of %d / bare relay",
			idlePairs),
			fmt.Sprintf("%.1f KB", each), fmt.Sprintf("%.1f KB", bare), ratio(each, bare), "<= 15 KB"})
		return nil
	})
}

// attachAndLeave attaches a few pairs until the backend has returned unused memory to the system, for example the
// memory that the sign-in needed. Otherwise the sessions would reuse that memory and appear to need less.
func attachAndLeave(ctx context.Context, who *linked, floorURL string) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if _, err := ourPairs(ctx, who, warmPairs); err != nil {
		return err
	}
	if _, err := barePairs(ctx, floorURL, warmPairs); err != nil {
		return err
	}
	settled(0, 0)
	return nil
}

// settled returns the resident memory of two processes, in KB, after waiting long enough for a round of pings and for
// freed memory to be returned to the system.
func settled(ours, bare int) (int64, int64) {
	time.Sleep(15 * time.Second)
	o, _, _ := memory(ours)
	f, _, _ := memory(bare)
	return o, f
}

// ourPairs attaches n pages and apps, each pair to its own session. Their readers discard messages that are not
// needed. Each linkPairs sessions belong to a new account.
func ourPairs(ctx context.Context, who *linked, n int) ([]*pair, error) {
	ws := "ws" + strings.TrimPrefix(who.Base, "http")
	pairs := make([]*pair, n)
	for i := range pairs {
		if i%linkPairs == 0 {
			var err error
			if who, err = link(who.Base, strings.ToLower(rand.Text())+"@example.org"); err != nil {
				return nil, fmt.Errorf("link account for session %d: %w", i, err)
			}
		}
		id, secret, err := who.session(i)
		if err != nil {
			return nil, fmt.Errorf("open session %d: %w", i, err)
		}
		page, err := dial(ctx, ws+"/s/"+id+"/live", &websocket.DialOptions{
			HTTPClient: who.Browser.Client(), HTTPHeader: http.Header{"Origin": {who.Base}}})
		if err != nil {
			return nil, fmt.Errorf("attach page %d: %w", i, err)
		}
		app, err := attach(ctx, ws+"/api/sessions/"+id+"/app", secret)
		if err != nil {
			return nil, fmt.Errorf("attach app %d: %w", i, err)
		}
		pairs[i] = newPair(ctx, page, app)
	}
	return pairs, nil
}

// dial opens a WebSocket that accepts messages of any size.
func dial(ctx context.Context, url string, o *websocket.DialOptions) (*websocket.Conn, error) {
	c, _, err := websocket.Dial(ctx, url, o) //nolint:bodyclose // the body need not be closed
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(-1)
	return c, nil
}

// attach opens an app's connection and sends hello.
func attach(ctx context.Context, url, secret string) (*websocket.Conn, error) {
	app, err := dial(ctx, url, nil)
	if err != nil {
		return nil, err
	}
	hello, err := glasses.New(glasses.TypeHello, "bench-0", 0,
		glasses.Hello{Secret: secret, App: glasses.AppInfo{Name: "bench"}, Barrier: true})
	if err != nil {
		return nil, err
	}
	data, err := hello.Encode()
	if err != nil {
		return nil, err
	}
	if err := app.Write(ctx, websocket.MessageText, data); err != nil {
		return nil, err
	}
	_, data, err = app.Read(ctx)
	if err != nil {
		return nil, err
	}
	if f, err := glasses.Parse(data); err != nil || f.Type != glasses.TypeWelcome {
		return nil, fmt.Errorf("response to hello: %s", data)
	}
	return app, nil
}

func drain(ctx context.Context, c *websocket.Conn, got func(websocket.MessageType)) {
	for {
		kind, _, err := c.Read(ctx)
		if err != nil {
			return
		}
		got(kind)
	}
}

func barePairs(ctx context.Context, url string, n int) ([]*pair, error) {
	pairs := make([]*pair, n)
	for i := range pairs {
		var ends [2]*websocket.Conn
		for k, side := range []string{"/app/", "/page/"} {
			c, err := dial(ctx, "ws"+strings.TrimPrefix(url, "http")+side+strconv.Itoa(i), nil)
			if err != nil {
				return nil, err
			}
			ends[k] = c
			time.Sleep(time.Millisecond) // the baseline registers an app before its page
		}
		pairs[i] = newPair(ctx, ends[1], ends[0])
	}
	return pairs, nil
}

// inFlight is the number of frames of a session that are in transit at a time. The relay may drop stream frames that
// do not fit in its queue.
const inFlight = 16

// stream sends binary stream frames through every pair for one slice of time, and returns how many arrived per
// second.
func stream(ctx context.Context, pairs []*pair, size int) float64 {
	ctx, cancel := context.WithTimeout(ctx, relaySlice+20*time.Second) // a dropped frame must not block the benchmark
	defer cancel()
	header := glasses.Frame{Type: glasses.TypeVideoFrame, ID: "g-1", At: 1,
		Payload: json.RawMessage(`{"width":640,"height":480}`)}
	frame, err := glasses.EncodeBinary(header, make([]byte, size))
	if err != nil {
		panic(err) // the header is a constant of this program
	}
	var arrived atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for _, p := range pairs {
		wg.Go(func() { arrived.Add(p.send(ctx, frame, start)) })
	}
	wg.Wait()
	return float64(arrived.Load()) / time.Since(start).Seconds()
}

// send keeps frames in flight for one slice of time, waits for the last one and returns how many arrived.
func (p *pair) send(ctx context.Context, frame []byte, start time.Time) int64 {
	base, sent := p.arrived.Load(), int64(0)
	for time.Since(start) < relaySlice || p.arrived.Load()-base < sent {
		if time.Since(start) >= relaySlice || sent-(p.arrived.Load()-base) >= inFlight {
			select {
			case <-p.moved:
				continue
			case <-ctx.Done():
				return p.arrived.Load() - base
			}
		}
		if p.page.Write(ctx, websocket.MessageBinary, frame) != nil {
			break
		}
		sent++
	}
	return p.arrived.Load() - base
}

func middle(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
