// Package clientio lets the daemon open pages and use files by way of the client that asked for it (proto/clientio): it
// asks the client for a connection when one is first needed, and sends it one request at a time. The daemon itself opens
// no page and touches no file that a client names. The package must not know why anything is opened, read or written.
package clientio

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/proto/clientio"
)

const (
	// connectWait bounds how long a client may take to connect once it was asked.
	connectWait = 10 * time.Second
	// answerWait bounds how long a request may take: a file may lie on a mount that hangs.
	answerWait = 20 * time.Second
	// idleWait is after how long without a request the connection of an agent's client is closed, so that no process
	// stays for nothing.
	idleWait = time.Minute
	// maxConnections bounds the connections that clients opened without being asked.
	maxConnections = 64
	// largeAnswer is the size in bytes from which on requests and answers count as large, and maxLarge how many of them
	// are under way at once, over all clients: each is held in memory.
	largeAnswer = 4 << 20
	maxLarge    = 4
)

// Registry matches connections with the clients that they belong to. It is safe for concurrent use.
type Registry struct {
	large chan struct{} // holds one for each large request under way

	mu       sync.Mutex
	expected map[string]*wait // by token; somebody waits
	open     map[string]*conn // by token; opened by the client of its own accord
}

// wait is for the connection that a client was asked for. Only one that is waited for is handed over: what comes after
// the call has ended would stay open with nobody to use or close it.
type wait struct {
	conn chan *conn    // unbuffered
	over chan struct{} // closed when nobody waits any more
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{large: make(chan struct{}, maxLarge), expected: map[string]*wait{}, open: map[string]*conn{}}
}

// Lines are what comes over a connection.
type Lines interface {
	// Wait returns when there is something to read, or with the end of the connection.
	Wait() error
	// Next reads a line of at most max bytes.
	Next(max int) ([]byte, error)
}

// Serve owns a connection that a handshake opened, until it ends. answer tells the client whether it is taken; from
// then on its calls find it. A connection that speaks without being asked is closed, and no more is read than what was
// asked for can take.
func (r *Registry) Serve(h clientio.Handshake, stream io.WriteCloser, lines Lines, answer func(taken bool) error) {
	c := &conn{stream: stream, large: r.large, answers: make(chan []byte), closed: make(chan struct{})}
	defer c.close()
	waiting, taken := r.admit(h, c)
	defer r.forget(h.Token, c)
	if answer(taken) != nil || !taken {
		return
	}
	if waiting != nil {
		select {
		case waiting.conn <- c:
		case <-waiting.over:
			return
		}
	}
	for {
		if lines.Wait() != nil {
			return
		}
		limit := int(c.due.Swap(0))
		if limit == 0 {
			return
		}
		line, err := lines.Next(limit)
		if err != nil {
			return
		}
		select {
		case c.answers <- line:
		case <-c.closed:
			return
		}
	}
}

// admit finds out whether a connection is taken, and who waits for it, if anybody does.
func (r *Registry) admit(h clientio.Handshake, c *conn) (waiting *wait, taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if waiting, ok := r.expected[h.Token]; ok {
		delete(r.expected, h.Token)
		return waiting, true
	}
	if _, known := r.open[h.Token]; known || h.Asked || len(r.open) >= maxConnections {
		return nil, false
	}
	r.open[h.Token] = c
	return nil, true
}

func (r *Registry) forget(token string, c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[token] == c {
		delete(r.open, token)
	}
}

// ForToken is the client that opened a connection under token before it made its call; nil when it opened none.
func (r *Registry) ForToken(token string) caller.IO {
	if !clientio.IsToken(token) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.open[token]
	if !ok {
		return nil
	}
	return c
}

// ForStream is a client that is asked for a connection when one is needed: ask sends it the token. Close it with the
// stream.
func (r *Registry) ForStream(ask func(token string) error) *Client {
	return NewClient(func(ctx context.Context) (*conn, error) { return r.await(ctx, ask) })
}

func (r *Registry) await(ctx context.Context, ask func(token string) error) (*conn, error) {
	token, waiting := rand.Text(), &wait{conn: make(chan *conn), over: make(chan struct{})}
	defer close(waiting.over)
	r.mu.Lock()
	r.expected[token] = waiting
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.expected, token)
		r.mu.Unlock()
	}()
	if err := ask(token); err != nil {
		return nil, err
	}
	timer := time.NewTimer(connectWait)
	defer timer.Stop()
	select {
	case c := <-waiting.conn:
		return c, nil
	case <-timer.C:
		return nil, errSilent
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errSilent = &Error{Code: CodeUnavailable, Message: "the client does not connect to read and write files: servicectl is not beside service-mcp, or may not run"}

// Client connects when it is first needed, and again after a minute of rest. It is safe for concurrent use.
type Client struct {
	connect func(context.Context) (*conn, error)

	turn   chan struct{} // holds one: whoever has it may use conn
	conn   *conn
	idle   *time.Timer
	closed bool
}

// NewClient makes a client from a way to connect.
func NewClient(connect func(context.Context) (*conn, error)) *Client {
	c := &Client{connect: connect, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// Do sends a request and waits for its answer.
func (c *Client) Do(ctx context.Context, r clientio.Request) (clientio.Response, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return clientio.Response{}, ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	if c.closed {
		return clientio.Response{}, errGone
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	if c.conn == nil || c.conn.isClosed() {
		fresh, err := c.connect(ctx)
		if err != nil {
			return clientio.Response{}, err
		}
		c.conn = fresh
	}
	answer, err := c.conn.Do(ctx, r)
	c.idle = time.AfterFunc(idleWait, c.rest)
	return answer, err
}

// rest closes the connection unless a request is under way.
func (c *Client) rest() {
	select {
	case <-c.turn:
		c.conn.close()
		c.turn <- struct{}{}
	default:
	}
}

// Close ends the connection, if there is one, after the request that is under way.
func (c *Client) Close() {
	<-c.turn
	defer func() { c.turn <- struct{}{} }()
	c.closed = true
	if c.idle != nil {
		c.idle.Stop()
	}
	if c.conn != nil {
		c.conn.close()
	}
}

var errGone = &Error{Code: CodeUnavailable, Message: "the client has ended"}

// conn is one connection to a client's process.
type conn struct {
	stream  io.WriteCloser
	large   chan struct{}
	answers chan []byte
	due     atomic.Int64 // the longest line that an answer may be; 0 while none is due

	turn sync.Mutex
	last int64

	once   sync.Once
	closed chan struct{}
}

func (c *conn) close() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.stream.Close()
	})
}

func (c *conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// Do sends a request and waits for its answer. A connection whose client does not answer in time is closed: the answer
// would come to the wrong request.
func (c *conn) Do(ctx context.Context, r clientio.Request) (clientio.Response, error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.last++
	r.ID = c.last
	line, err := json.Marshal(r)
	if err != nil {
		return clientio.Response{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerWait, errNoAnswer)
	defer cancel()
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	limit := answerLimit(r)
	if max(limit, len(line)) > largeAnswer {
		select {
		case c.large <- struct{}{}:
			defer func() { <-c.large }()
		case <-ctx.Done():
			return clientio.Response{}, c.lost(ctx)
		}
	}
	c.due.Store(int64(limit))
	if _, err := c.stream.Write(append(line, '\n')); err != nil {
		c.close()
		return clientio.Response{}, c.lost(ctx)
	}
	select {
	case line = <-c.answers:
	case <-c.closed:
		return clientio.Response{}, c.lost(ctx)
	}
	answer, err := decode(r, line)
	if err != nil || answer.ID != r.ID {
		c.close()
		return clientio.Response{}, &Error{Code: CodeUnavailable, Message: "the client's answer does not fit the request"}
	}
	return answer, nil
}

// decode reads the answer to r. Entries are read only where they were asked for: one takes three bytes to write and many
// times that to hold.
func decode(r clientio.Request, line []byte) (answer clientio.Response, err error) {
	if r.Op == clientio.List {
		err = json.Unmarshal(line, &answer)
		return answer, err
	}
	var plain struct {
		clientio.Response
		Entries nothing `json:"entries"`
	}
	err = json.Unmarshal(line, &plain)
	return plain.Response, err
}

// nothing is a value that is not looked at.
type nothing struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*nothing) UnmarshalJSON([]byte) error { return nil }

// answerLimit is the longest line in bytes that answers a request.
func answerLimit(r clientio.Request) int {
	const fields = 64 << 10
	switch r.Op {
	case clientio.Read, clientio.Find:
		return int(min(r.Limit, clientio.MaxData))/3*4 + fields
	case clientio.List:
		return largeAnswer
	}
	return fields
}

var errNoAnswer = &Error{Code: CodeUnavailable, Message: "the client does not answer: the file may lie on a disk that hangs"}

// lost is why a connection broke off.
func (c *conn) lost(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return errGone
	case errors.Is(cause, errNoAnswer):
		return errNoAnswer
	default:
		return cause
	}
}

// plain takes out of a client's words what does not print, and bounds them.
func plain(s string) string {
	out := make([]rune, 0, 200)
	for _, r := range s {
		if unicode.IsPrint(r) && len(out) < 200 {
			out = append(out, r)
		}
	}
	return string(out)
}
