package pump

import (
	"context"
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
	moved   chan struct{} // capacity 1: something was answered, or the link ended

	mu       sync.Mutex
	ended    bool
	admitted bool
	inflight map[string]pending
	early    [][]byte        // what was sent before the daemon admitted us: it has not looked at it
	asked    map[string]bool // the daemon's own requests to the client
}

// maxTurned bounds how often in a row a daemon that ends while it is dialled is tried again; turnedPause is the first
// pause, doubled each time.
const (
	maxTurned   = 4
	turnedPause = 25 * time.Millisecond
)

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
	for _, part := range append(m.parts, m) {
		switch {
		case part.kind == request:
			l.inflight[part.id] = newPending(part)
		case part.kind == response: // a daemon that came later did not ask
			pass = l.asked[part.id]
			delete(l.asked, part.id)
		case part.kind == notification && part.method == "notifications/cancelled":
			delete(l.inflight, normalID(member(part.params, "requestId")))
		}
	}
	if !l.admitted && m.kind != response {
		l.early = append(l.early, append([]byte(nil), line...))
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
	_, err := l.conn.Write(line)
	return err
}

// received notes what a line of the daemon answers or asks.
func (l *link) received(m message) {
	l.mu.Lock()
	for _, part := range append(m.parts, m) {
		switch part.kind {
		case response:
			delete(l.inflight, part.id)
		case request:
			if len(l.asked) < maxAsked {
				l.asked[part.id] = true
			}
		}
	}
	l.mu.Unlock()
	l.poke()
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
	l.mu.Unlock()
	l.conn.Close()
	l.poke()
	return left, admitted
}

// reconnect makes a connection unless there is one, and keeps why it could not.
func (p *Pump) reconnect(ctx context.Context) error {
	p.connecting.Lock()
	defer p.connecting.Unlock()
	p.mu.Lock()
	standing := p.link != nil
	p.mu.Unlock()
	if standing {
		return nil
	}
	for pause := turnedPause; ; pause *= 2 {
		conn, err := p.opts.Connect(ctx)
		ending := false
		if err == nil {
			l := newLink(conn)
			if err = p.introduce(l); err == nil {
				return nil
			}
			_, wasAdmitted := l.end()
			var told *Failure
			ending = !wasAdmitted && !errors.As(err, &told)
		}
		if !ending || pause >= turnedPause<<maxTurned {
			p.fail(p.explain(err))
			return err
		}
		time.Sleep(pause) // the daemon was ending; it is gone in a moment
	}
}

// introduce sends the preface, replays what the daemon must know of an older connection, and opens the link for traffic.
func (p *Pump) introduce(l *link) error {
	if err := l.write(p.opts.Hello.preface()); err != nil {
		return err
	}
	p.mu.Lock()
	replay, again := p.initLine, p.initLine != nil && !p.initDone && p.resent
	id, noted := p.initID, p.initNote
	done := p.initDone
	p.mu.Unlock()
	switch {
	case again:
		if err := l.send(scan(replay), replay); err != nil {
			return err
		}
	case replay != nil && done:
		if err := p.replay(l, replay, id, noted); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.link, p.state, p.failure = l, up, nil
	p.mu.Unlock()
	p.linkDone.Add(1)
	go func() {
		defer p.linkDone.Done()
		p.fromDaemon(l)
	}()
	return nil
}

// replay gives a new daemon the session's initialize and swallows its answer.
func (p *Pump) replay(l *link, line []byte, id string, noted bool) error {
	timer := time.AfterFunc(p.opts.Handshake, func() { l.conn.Close() })
	defer timer.Stop()
	if err := l.write(line); err != nil {
		return err
	}
	for answered := false; !answered; {
		line, err := l.lines.next()
		if err != nil {
			return err
		}
		if !l.admitted {
			if err := admitted(line); err != nil {
				return err
			}
			l.admitted = true
			continue
		}
		m := scan(line)
		if answered = m.kind == response && m.id == id; answered {
			break
		}
		l.received(m)
		if err := p.write(line); err != nil {
			return err
		}
	}
	if !noted {
		return nil
	}
	return l.write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
}

// fromDaemon passes the daemon's lines on until the connection ends, then answers what it left open.
func (p *Pump) fromDaemon(l *link) {
	var cause *Failure
	for {
		line, err := l.lines.next()
		if err != nil {
			break
		}
		if !l.admitted {
			if err := admitted(line); err != nil {
				cause = p.explain(err)
				break
			}
			p.welcome(l)
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

func (p *Pump) welcome(l *link) {
	l.mu.Lock()
	l.admitted, l.early = true, nil
	l.mu.Unlock()
	p.mu.Lock()
	p.pause, p.turned = 0, 0
	p.mu.Unlock()
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
	if cause == nil && !wasAdmitted && p.turn() {
		go func() {
			defer p.resending.Done()
			p.resend(l.early)
		}()
		return
	}
	if cause == nil && !wasAdmitted {
		cause = &Failure{Code: "daemon_unavailable", Message: "the daemon closed the connection at once", Retryable: true, FixHint: "run `servicectl doctor`"}
	}
	p.mu.Lock()
	p.link, p.state = nil, down
	_, again := left[p.initID]
	again = again && p.initLine != nil && !p.initDone && !p.resent && cause == nil && !p.closing
	if again {
		p.resending.Add(1)
		p.resent = true
		delete(left, p.initID)
	}
	p.mu.Unlock()
	if cause != nil {
		p.fail(cause)
	} else {
		cause = restarted
	}
	for _, call := range left {
		if p.print(call.answer(cause)) != nil {
			return
		}
	}
	if again {
		go func() {
			defer p.resending.Done()
			p.resume()
		}()
	}
}

// turn counts a daemon that ended before it admitted us, and announces a resend; false when there were too many in a
// row or nobody listens any more.
func (p *Pump) turn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link, p.state = nil, down
	p.turned++
	if p.closing || p.turned > maxTurned {
		return false
	}
	p.resending.Add(1)
	return true
}

// resend gives the next daemon what the last one did not look at.
func (p *Pump) resend(lines [][]byte) {
	p.mu.Lock()
	pause := turnedPause << (p.turned - 1)
	p.mu.Unlock()
	time.Sleep(pause)
	for _, line := range lines {
		if p.forward(context.Background(), scan(line), line) != nil {
			return
		}
	}
}

// resume reaches the next daemon for an initialize that waits.
func (p *Pump) resume() {
	if p.reconnect(context.Background()) == nil {
		return
	}
	p.mu.Lock()
	m, failure := scan(p.initLine), p.failure
	p.mu.Unlock()
	_ = p.refuse(m, failure)
}

// fail keeps the reason and spaces the attempts: 1, 2, 4 ... 16 pauses.
func (p *Pump) fail(f *Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.failure = failed, f
	p.pause = min(max(2*p.pause, p.opts.Pause), 16*p.opts.Pause)
	p.retryAt = time.Now().Add(p.pause)
}

func (p *Pump) explain(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	if p.opts.Explain != nil {
		if f := p.opts.Explain(err); f != nil {
			return f
		}
	}
	return &Failure{Code: "daemon_unavailable", Message: err.Error(), Retryable: true, FixHint: "run `servicectl doctor`"}
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
