package pump

import (
	"errors"
	"io"
	"sync"
	"time"
)

// link is one connection to one daemon.
type link struct {
	conn    io.ReadWriteCloser
	lines   *lineReader
	writeMu sync.Mutex
	broken  error         // what the first write that failed answered
	moved   chan struct{} // capacity 1: something was answered, or the link ended

	mu       sync.Mutex
	ended    bool
	admitted bool
	inflight map[string]pending
	batches  int // how many were sent
	kept     int // bytes of the lines in inflight
	// repeatable are tools whose calls the next daemon may have, when this one dies.
	repeatable map[string]bool
	early      []message       // what was sent before the daemon admitted us: it has not looked at it
	asked      map[string]bool // the daemon's own requests to the client
	hangUp     *time.Timer     // set when a write has failed
	patience   *time.Timer     // runs out when the daemon says nothing
	silent     bool            // it did
}

// errEnded says that the connection is gone and the message was not sent.
var errEnded = errors.New("the connection has ended")

// maxAsked bounds the daemon's requests that are remembered; answers to others are not passed on.
const maxAsked = 1024

func newLink(conn io.ReadWriteCloser) *link {
	return &link{
		conn: conn, lines: newLineReader(conn, maxDaemonLine), moved: make(chan struct{}, 1),
		inflight: map[string]pending{}, asked: map[string]bool{},
	}
}

// send notes what the message asks for and writes it. After any error but errEnded it may or may not have arrived.
func (l *link) send(m message, line []byte) error {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return errEnded
	}
	pass := true
	if m.kind == batch {
		l.batches++
	}
	for _, part := range append(m.parts, m) {
		switch {
		case part.kind == request:
			l.expect(part, m.kind == batch)
		case part.kind == response: // a daemon that came later did not ask
			pass = l.asked[part.id]
			delete(l.asked, part.id)
		case part.kind == notification && part.method == "notifications/cancelled":
			id := normalID(member(part.params, "requestId"))
			l.kept -= len(l.inflight[id].line)
			delete(l.inflight, id)
		}
	}
	switch {
	case l.admitted:
		l.keep(m, line)
	case m.kind != response:
		l.early = append(l.early, scanAgain(append([]byte(nil), line...), m.again))
	}
	l.mu.Unlock()
	if !pass && m.kind == response {
		return nil
	}
	return l.write(line)
}

func (l *link) write(line []byte) error {
	l.writeMu.Lock()
	defer l.writeMu.Unlock()
	if n := len(line); n == 0 || line[n-1] != '\n' {
		line = append(line[:n:n], '\n')
	}
	if l.broken == nil { // what follows half a line would not be a line
		_, l.broken = l.conn.Write(line)
	}
	return l.broken
}

// received notes what a line of the daemon answers or asks.
func (l *link) received(m message) {
	l.mu.Lock()
	for _, part := range append(m.parts, m) {
		switch part.kind {
		case response:
			l.answered(part.id)
		case request:
			if len(l.asked) < maxAsked {
				l.asked[part.id] = true
			}
		}
	}
	l.mu.Unlock()
	l.poke()
}

// expect notes a request that is about to be sent. l.mu is held.
func (l *link) expect(m message, batched bool) {
	call, before := newPending(m), l.inflight[m.id]
	call.asked += before.asked
	l.kept -= len(before.line) // of two calls under one id neither is repeated
	if batched {
		call.batch = l.batches
	}
	l.inflight[m.id] = call
}

// answered notes an answer of the daemon. l.mu is held.
func (l *link) answered(id string) {
	call, ok := l.inflight[id]
	if call.asked--; !ok || call.asked == 0 {
		l.kept -= len(call.line)
		delete(l.inflight, id)
		return
	}
	l.inflight[id] = call
}

func (l *link) poke() {
	select {
	case l.moved <- struct{}{}:
	default:
	}
}

func (l *link) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended || len(l.inflight) == 0
}

// end marks the link as gone and hands over what was not answered.
func (l *link) end() (left map[string]pending, admitted bool) {
	l.mu.Lock() // before the close: whoever ends the link first has what is left
	left, admitted = l.inflight, l.admitted
	l.ended, l.inflight = true, nil
	if l.hangUp != nil {
		l.hangUp.Stop()
	}
	l.mu.Unlock()
	l.conn.Close()
	l.poke()
	return left, admitted
}

// fromDaemon passes the daemon's lines on until the connection ends, then answers what it left open.
func (p *Pump) fromDaemon(l *link) {
	var cause *Failure
	for {
		line, err := l.lines.next()
		if err != nil {
			if l.awaited() {
				cause = p.explain(ErrSilent)
			}
			break
		}
		if !l.admitted {
			if err := admitted(line); err != nil {
				cause = p.explain(err)
				break
			}
			p.welcome(l, line)
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
		l.received(m)
	}
	p.lost(l, cause)
}

// takeClientIO acts on the daemon's private frame; false for every other line.
func (p *Pump) takeClientIO(line []byte) bool {
	token, ok := clientIOToken(line)
	if token != "" && p.opts.ClientIO != nil {
		p.opts.ClientIO(token)
	}
	return ok
}

// welcome takes up a link whose daemon took us in.
func (p *Pump) welcome(l *link, line []byte) {
	l.awaited()
	l.admit(line)
	p.mu.Lock()
	p.pause, p.turned = 0, 0
	p.mu.Unlock()
}

// startFactor is how much longer a daemon has that is only being started.
const startFactor = 4

// await closes a link whose daemon says nothing for so long.
func (l *link) await(limit time.Duration, starting func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waits := 0
	l.patience = time.AfterFunc(limit, func() {
		waits++
		more := waits < startFactor && starting != nil && starting()
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.ended:
		case more && !l.admitted:
			l.patience.Reset(limit)
		default:
			l.silent = true
			l.conn.Close()
		}
	})
}

// awaited ends the wait; it reports whether the daemon was silent for too long.
func (l *link) awaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.patience.Stop()
	return l.silent
}

// admit notes the daemon's answer to the handshake.
func (l *link) admit(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admitted, l.repeatable = true, repeatableTools(line)
	for _, m := range l.early {
		l.keep(m, m.line)
	}
	l.early = nil
}

func (p *Pump) noteInitialized(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.kind == response && p.initLine != nil && m.id == p.initID {
		p.initDone = true
	}
}

// lost closes the books of a link. An initialize that nobody answered goes to the next daemon, once: it changes
// nothing, and a client whose first message fails gives up for good. So does everything that was sent to a daemon which
// ended before it took us in: it cannot have looked at it.
func (p *Pump) lost(l *link, cause *Failure) {
	left, wasAdmitted := l.end()
	if cause == nil && !wasAdmitted {
		if pause, ok := p.turn(); ok {
			go func() {
				defer p.resending.Done()
				p.resend(pause, l.early)
			}()
			return
		}
	}
	if cause == nil && !wasAdmitted {
		cause = &Failure{Code: "daemon_unavailable", Message: "the daemon closed the connection at once", Retryable: true, FixHint: "run `servicectl doctor`"}
	}
	p.mu.Lock()
	p.link, p.state = nil, down
	_, open := left[p.initID]
	open = open && p.initLine != nil && !p.initDone
	again := open && !p.resent && cause == nil && !p.closing
	switch {
	case again:
		p.resent = true
		delete(left, p.initID)
	case open:
		p.initLine = nil // it is answered below, so no other daemon gets it
	}
	var repeats [][]byte
	if cause == nil && !p.closing {
		repeats = p.repeats(left)
	}
	if again || len(repeats) > 0 {
		p.resending.Add(1)
	}
	closing := p.closing
	p.mu.Unlock()
	switch {
	case cause != nil:
		p.fail(cause, false)
	case closing:
		cause = inputEnded
	default:
		cause = restarted
	}
	_ = p.answerAll(left, cause) // Run sees that nobody reads
	if again || len(repeats) > 0 {
		go func() {
			defer p.resending.Done()
			if again {
				p.resume()
			}
			p.repeat(repeats)
		}()
	}
}

// answerAll tells the client that calls are lost, those of one batch in one line.
func (p *Pump) answerAll(left map[string]pending, cause *Failure) error {
	batches := map[int][]string{}
	for _, call := range left {
		answer := call.answer(cause)
		for range call.asked {
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

// drain waits for the answers that are due after the client's last message.
func (p *Pump) drain() {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.resending.Wait()
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	if l == nil {
		p.linkDone.Wait()
		return
	}
	if !l.idle() && p.opts.HalfClose != nil {
		_ = p.opts.HalfClose(l.conn)
	}
	timer := time.NewTimer(p.opts.Drain)
	defer timer.Stop()
	for expired := false; !expired && !l.idle(); {
		select {
		case <-l.moved:
		case <-timer.C:
			expired = true
		}
	}
	p.quit(l)
}

// quit ends the last link without answers to what is still open: nobody reads them.
func (p *Pump) quit(l *link) {
	l.end()
	p.linkDone.Wait()
}
