package stdioproxy

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/service-dev/service/internal/problem"
)

// connection is one connection to one daemon.
type connection struct {
	conn    io.ReadWriteCloser
	lines   *lineReader
	writeMu sync.Mutex
	broken  error         // error of the first failed write
	changed chan struct{} // receives a value when a response arrives or the connection ends; capacity 1

	mu       sync.Mutex
	ended    bool
	admitted bool
	inflight map[string]pending
	batches  int // number of batches sent
	kept     int // total size in bytes of the lines in inflight
	// repeatable contains the tools whose calls may be repeated with the next daemon.
	repeatable     map[string]bool
	unadmitted     []message       // sent before the daemon admitted us, so not processed yet
	daemonRequests map[string]bool // pending requests from the daemon to the client
	closeTimer     *time.Timer     // set once a write has failed
	timeout        *time.Timer     // fires if the daemon stays silent
	silent         bool            // the timeout fired
}

// errEnded is returned if the connection has ended and the message was not sent.
var errEnded = errors.New("the connection has ended")

// maxDaemonRequests is the maximum number of pending requests of a daemon. Responses to any further ones are dropped.
const maxDaemonRequests = 1024

func newConnection(conn io.ReadWriteCloser) *connection {
	return &connection{
		conn: conn, lines: newLineReader(conn, maxDaemonLine), changed: make(chan struct{}, 1),
		inflight: map[string]pending{}, daemonRequests: map[string]bool{},
	}
}

// send registers the requests of a message and writes it. After any error except errEnded, the message may have been
// received.
func (c *connection) send(m message, line []byte) error {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return errEnded
	}
	pass := true
	if m.kind == batch {
		c.batches++
	}
	for _, part := range append(m.parts, m) {
		switch {
		case part.kind == request:
			c.expect(part, m.kind == batch)
		case part.kind == response: // the next daemon did not send this request
			pass = c.daemonRequests[part.id]
			delete(c.daemonRequests, part.id)
		case part.kind == notification && part.method == "notifications/cancelled":
			id := normalID(member(part.params, "requestId"))
			c.kept -= len(c.inflight[id].line)
			delete(c.inflight, id)
		}
	}
	switch {
	case c.admitted:
		c.keepForRepeat(m, line)
	case m.kind != response:
		c.unadmitted = append(c.unadmitted, scanAgain(append([]byte(nil), line...), m.again))
	}
	c.mu.Unlock()
	if !pass && m.kind == response {
		return nil
	}
	return c.write(line)
}

func (c *connection) write(line []byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	if n := len(line); n == 0 || line[n-1] != '\n' {
		line = append(line[:n:n], '\n')
	}
	if c.broken == nil { // after a partial line no further message can be sent
		_, c.broken = c.conn.Write(line)
	}
	return c.broken
}

// received records the responses and requests in m, a line from the daemon.
func (c *connection) received(m message) {
	c.mu.Lock()
	for _, part := range append(m.parts, m) {
		switch part.kind {
		case response:
			c.answered(part.id)
		case request:
			if len(c.daemonRequests) < maxDaemonRequests {
				c.daemonRequests[part.id] = true
			}
		}
	}
	c.mu.Unlock()
	c.notify()
}

// expect registers a request before it is sent. The caller must hold c.mu.
func (c *connection) expect(m message, batched bool) {
	call, before := newPending(m), c.inflight[m.id]
	call.uses += before.uses
	c.kept -= len(before.line) // two calls with the same ID are never repeated
	if batched {
		call.batch = c.batches
	}
	c.inflight[m.id] = call
}

// answered records a response from the daemon. The caller must hold c.mu.
func (c *connection) answered(id string) {
	call, ok := c.inflight[id]
	if call.uses--; !ok || call.uses == 0 {
		c.kept -= len(call.line)
		delete(c.inflight, id)
		return
	}
	c.inflight[id] = call
}

func (c *connection) notify() { signal(c.changed) }

// signal wakes the goroutine that is waiting on c or, if there is none, the next one that waits.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (c *connection) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended || len(c.inflight) == 0
}

// end closes the connection and returns the requests without a response.
func (c *connection) end() (left map[string]pending, admitted bool) {
	c.mu.Lock() // lock before Close, so that the first caller of end gets the open requests
	left, admitted = c.inflight, c.admitted
	c.ended, c.inflight = true, nil
	if c.closeTimer != nil {
		c.closeTimer.Stop()
	}
	c.mu.Unlock()
	c.conn.Close()
	c.notify()
	return left, admitted
}

// fromDaemon forwards the daemon's lines until the connection ends, and then responds to the open requests.
func (p *Proxy) fromDaemon(c *connection) {
	var cause *problem.Error
	for {
		line, err := c.lines.next()
		if err != nil {
			if c.stopTimeout() {
				cause = p.explain(ErrSilent)
			}
			break
		}
		if !c.admitted {
			if err := admitted(line); err != nil {
				cause = p.explain(err)
				break
			}
			p.admitConnection(c, line)
			continue
		}
		if p.takeClientIO(line) {
			continue
		}
		m := scan(line)
		p.noteInitialized(m)
		if p.write(line) != nil {
			break
		}
		c.received(m)
	}
	p.disconnected(c, cause)
}

// takeClientIO handles the daemon's client-io frame and reports whether line is one.
func (p *Proxy) takeClientIO(line []byte) bool {
	token, ok := clientIOToken(line)
	if token != "" && p.opts.ClientIO != nil {
		p.opts.ClientIO(token)
	}
	return ok
}

// admitConnection records that the daemon accepted the handshake.
func (p *Proxy) admitConnection(c *connection, line []byte) {
	c.stopTimeout()
	c.admit(line)
	p.mu.Lock()
	p.pause, p.earlyEnds = 0, 0
	p.mu.Unlock()
}

// startFactor multiplies the handshake timeout for a daemon that is still starting.
const startFactor = 4

// startTimeout closes the connection if the daemon stays silent for limit.
func (c *connection) startTimeout(limit time.Duration, starting func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits := 0
	c.timeout = time.AfterFunc(limit, func() {
		waits++
		more := waits < startFactor && starting != nil && starting()
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.ended:
		case more && !c.admitted:
			c.timeout.Reset(limit)
		default:
			c.silent = true
			c.conn.Close()
		}
	})
}

// stopTimeout stops the timer and reports whether it has fired.
func (c *connection) stopTimeout() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeout.Stop()
	return c.silent
}

// admit records the daemon's response to the handshake.
func (c *connection) admit(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.admitted, c.repeatable = true, repeatableTools(line)
	for _, m := range c.unadmitted {
		c.keepForRepeat(m, m.line)
	}
	c.unadmitted = nil
}

func (p *Proxy) noteInitialized(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.kind == response && p.initLine != nil && m.id == p.initID {
		p.initDone = true
	}
}

// disconnected answers or resends the open requests of a connection that ended. It sends an unanswered initialize to
// the next daemon once, because initialize has no side effects and clients give up permanently if their first message
// fails. It also resends everything sent to a daemon that exited before it admitted us, because that daemon cannot
// have processed any of it.
func (p *Proxy) disconnected(c *connection, cause *problem.Error) {
	left, wasAdmitted := c.end()
	if cause == nil && !wasAdmitted {
		if pause, ok := p.noteEarlyEnd(); ok {
			go func() {
				defer p.resending.Done()
				p.resend(pause, c.unadmitted)
			}()
			return
		}
	}
	if cause == nil && !wasAdmitted {
		cause = &problem.Error{Code: "daemon_unavailable", Message: "the daemon closed the connection immediately",
			Retryable: true,
			FixHint:   "Run `servicectl doctor`."}
	}
	p.mu.Lock()
	p.conn, p.state = nil, down
	_, open := left[p.initID]
	open = open && p.initLine != nil && !p.initDone
	again := open && !p.initResent && cause == nil && !p.closing
	switch {
	case again:
		p.initResent = true
		delete(left, p.initID)
	case open:
		p.initLine = nil // it gets a response below, so it is not sent again
	}
	var takeRepeatable [][]byte
	if cause == nil && !p.closing {
		takeRepeatable = p.takeRepeatable(left)
	}
	if again || len(takeRepeatable) > 0 {
		p.resending.Add(1)
	}
	closing := p.closing
	p.mu.Unlock()
	switch {
	case cause != nil:
		p.fail(cause, false)
	case closing:
		cause = inputClosed
	default:
		cause = restarted
	}
	_ = p.answerAll(left, cause) // Run reports a closed Out
	if again || len(takeRepeatable) > 0 {
		go func() {
			defer p.resending.Done()
			if again {
				p.resendInitialize()
			}
			p.repeat(takeRepeatable)
		}()
	}
}

// answerAll responds to lost calls with cause. Responses to calls of one batch share a line.
func (p *Proxy) answerAll(left map[string]pending, cause *problem.Error) error {
	batches := map[int][]string{}
	for _, call := range left {
		answer := call.answer(cause)
		for range call.uses {
			if call.batch > 0 {
				batches[call.batch] = append(batches[call.batch], answer)
				continue
			}
			if err := p.print(answer + "\n"); err != nil {
				return err
			}
		}
	}
	for _, answers := range batches {
		if err := p.print(array(answers)); err != nil {
			return err
		}
	}
	return nil
}

// drain waits for outstanding responses after the client's last message.
func (p *Proxy) drain() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.resending.Wait()
	p.mu.Lock()
	c := p.conn
	p.mu.Unlock()
	if c == nil {
		p.connDone.Wait()
		return
	}
	if !c.idle() && p.opts.HalfClose != nil {
		_ = p.opts.HalfClose(c.conn)
	}
	timer := time.NewTimer(p.opts.Drain)
	defer timer.Stop()
	for expired := false; !expired && !c.idle(); {
		select {
		case <-c.changed:
		case <-timer.C:
			expired = true
		}
	}
	p.quit(c)
}

// quit ends the last connection. Open requests get no response, because the client no longer reads it.
func (p *Proxy) quit(c *connection) {
	c.end()
	p.connDone.Wait()
}
