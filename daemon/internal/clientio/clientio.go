// Package clientio lets the daemon open pages and use files through the client that made the call (internal/clientio).
// It asks the client to connect on first use, and sends one request at a time. The daemon itself neither opens pages
// nor touches files that a client names.
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
	"github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

const (
	// connectWait is the maximum time for a client to connect when asked.
	connectWait = 10 * time.Second
	// answerWait is the maximum duration of a request, whose file may be on an unresponsive mount.
	answerWait = 20 * time.Second
	// idleWait is how long the connection of an agent's client may be idle before the daemon closes it, so that the
	// client's process can exit.
	idleWait = time.Minute
	// maxConnections is the maximum number of connections that clients open on their own initiative.
	maxConnections = 64
	// largeAnswer is the size in bytes from which a request or response is large. maxLarge is the maximum number of
	// large ones in progress for all clients together, because each is held in memory.
	largeAnswer = 4 << 20
	maxLarge    = 4
)

// Registry matches connections with clients. It is safe for concurrent use.
type Registry struct {
	large chan struct{} // holds one token per large request in progress

	mu       sync.Mutex
	expected map[string]*pendingConn // by token; a call is waiting for each
	open     map[string]*conn        // by token; opened on the clients' own initiative
}

// pendingConn is a connection that a client was asked to open. The registry accepts the connection only while a call
// waits for it, because it would otherwise never be used or closed.
type pendingConn struct {
	conn chan *conn    // unbuffered
	over chan struct{} // closed when the call stops waiting
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry {
	return &Registry{large: make(chan struct{}, maxLarge), expected: map[string]*pendingConn{}, open: map[string]*conn{}}
}

// Lines reads the lines of a connection.
type Lines interface {
	// Wait returns nil when there is data to read, or the error that ended the connection.
	Wait() error
	// Next reads a line of at most max bytes.
	Next(max int) ([]byte, error)
}

// Serve serves a connection that began with the handshake h, until it ends. It calls answer to tell the client whether
// the connection is accepted; after that the client's calls use the connection. It closes the connection if data
// arrives without a request, and reads no more than a response may contain.
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

// admit reports whether a connection is accepted. It also returns the pending connection that a call is waiting for, if
// there is one.
func (r *Registry) admit(h clientio.Handshake, c *conn) (waiting *pendingConn, taken bool) {
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

// ForToken returns the client that opened its connection in advance with token, or nil if there is none.
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

// ForStream returns a client that connects on request. It calls ask to send the client the token. The caller must close
// the returned client together with the stream.
func (r *Registry) ForStream(ask func(token string) error) *Client {
	return NewClient(func(ctx context.Context) (*conn, error) { return r.requestConn(ctx, ask) })
}

func (r *Registry) requestConn(ctx context.Context, ask func(token string) error) (*conn, error) {
	token, waiting := rand.Text(), &pendingConn{conn: make(chan *conn), over: make(chan struct{})}
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

var errSilent = &Error{Code: problem.CodeClientFilesUnavailable,
	Message: "the client cannot read or write files: servicectl is not next to service-mcp, or is not allowed to run"}

// Client is a connection that opens on first use and again after being idle. It is safe for concurrent use.
type Client struct {
	connect func(context.Context) (*conn, error)

	turn   chan struct{} // holds one token, whose owner may use conn
	conn   *conn
	idle   *time.Timer
	closed bool
}

// NewClient returns a client that connects with connect.
func NewClient(connect func(context.Context) (*conn, error)) *Client {
	c := &Client{connect: connect, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// Do sends a request and waits for the response.
func (c *Client) Do(ctx context.Context, r clientio.Request) (clientio.Response, error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return clientio.Response{}, ctx.Err()
	}
	defer func() { c.turn <- struct{}{} }()
	if c.closed {
		return clientio.Response{}, errEnded
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
	c.idle = time.AfterFunc(idleWait, c.closeIdle)
	return answer, err
}

// closeIdle closes the connection if no request is in progress.
func (c *Client) closeIdle() {
	select {
	case <-c.turn:
		c.conn.close()
		c.turn <- struct{}{}
	default:
	}
}

// Close closes the connection, if there is one, after the current request has finished.
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

var errEnded = &Error{Code: problem.CodeClientFilesUnavailable, Message: "the client has exited"}

// conn is one connection to a client's process.
type conn struct {
	stream  io.WriteCloser
	large   chan struct{}
	answers chan []byte
	due     atomic.Int64 // maximum line length of the expected response; 0 if none is expected

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

// Do sends a request and waits for the response. If the client does not respond in time, Do closes the connection,
// because a late response would be mistaken for the response to the next request.
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
			return clientio.Response{}, c.closeError(ctx)
		}
	}
	c.due.Store(int64(limit))
	if _, err := c.stream.Write(append(line, '\n')); err != nil {
		c.close()
		return clientio.Response{}, c.closeError(ctx)
	}
	select {
	case line = <-c.answers:
	case <-c.closed:
		return clientio.Response{}, c.closeError(ctx)
	}
	answer, err := decode(r, line)
	if err != nil || answer.ID != r.ID {
		c.close()
		return clientio.Response{}, &Error{Code: problem.CodeClientFilesUnavailable,
			Message: "the client's response does not match the request"}
	}
	return answer, nil
}

// decode parses the response to r. It parses entries only if r requested them, because an entry needs three bytes on
// the wire and much more in memory.
func decode(r clientio.Request, line []byte) (answer clientio.Response, err error) {
	if r.Op == clientio.List {
		err = json.Unmarshal(line, &answer)
		return answer, err
	}
	var plain struct {
		clientio.Response
		Entries ignored `json:"entries"`
	}
	err = json.Unmarshal(line, &plain)
	return plain.Response, err
}

// ignored is a value that is not parsed.
type ignored struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*ignored) UnmarshalJSON([]byte) error { return nil }

// answerLimit returns the maximum length of a response's line, in bytes.
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

var errNoAnswer = &Error{Code: problem.CodeClientFilesUnavailable,
	Message: "the client does not respond; the file may be on an unresponsive disk"}

// closeError returns the error of a request during which the connection ended.
func (c *conn) closeError(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return errEnded
	case errors.Is(cause, errNoAnswer):
		return errNoAnswer
	default:
		return cause
	}
}

// plain removes unprintable characters from a client's text and cuts it to 200 characters.
func plain(s string) string {
	out := make([]rune, 0, 200)
	for _, r := range s {
		if unicode.IsPrint(r) && len(out) < 200 {
			out = append(out, r)
		}
	}
	return string(out)
}
