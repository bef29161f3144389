package pump

import (
	"context"
	"errors"
	"time"
)

// maxTurned bounds how often in a row a daemon that ends while it is dialled is tried again; turnedPause is the first
// pause, doubled each time.
const (
	maxTurned   = 6
	turnedPause = 25 * time.Millisecond
)

// ErrSilent says that a daemon took the connection and said nothing.
var ErrSilent = errors.New("the daemon does not answer")

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
			err = p.lastWords(l, err)
			_, wasAdmitted := l.end()
			p.mu.Lock()
			replayed := p.initDone // what it was sent, the next one may be sent as well
			p.mu.Unlock()
			var told *Failure
			ending = (!wasAdmitted || replayed) && !errors.As(err, &told)
		}
		if !ending || pause >= turnedPause<<maxTurned {
			p.fail(p.explain(err), conn == nil)
			return err
		}
		time.Sleep(pause) // the daemon was ending; it is gone in a moment
	}
}

// introduce sends the preface, replays what the daemon must know of an older connection, and opens the link for traffic.
func (p *Pump) introduce(l *link) error {
	l.await(p.opts.Handshake, p.opts.Starting)
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
			if l.awaited() {
				err = p.explain(ErrSilent)
			}
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

// lastWords is why the daemon refused us when it said so before it closed: a daemon with too many clients reads nothing,
// and then all that fails here is a write.
func (p *Pump) lastWords(l *link, err error) error {
	var told *Failure
	if l.admitted || errors.As(err, &told) {
		return err
	}
	timer := time.AfterFunc(p.opts.Handshake, func() { l.conn.Close() })
	defer timer.Stop()
	if line, unread := l.lines.next(); unread == nil {
		if refusal := admitted(line); refusal != nil {
			return refusal
		}
	}
	return err
}

// replay gives a new daemon the session's initialize and swallows its answer.
func (p *Pump) replay(l *link, line []byte, id string, noted bool) error {
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
			l.admit(line)
			continue
		}
		if p.takeClientIO(line) {
			continue
		}
		m := scan(line)
		if answered = m.kind == response && m.id == id; answered {
			l.awaited()
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

// turn counts a daemon that ended before it admitted us, and announces a resend after a pause; false when there were too
// many in a row or nobody listens any more.
func (p *Pump) turn() (pause time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link, p.state = nil, down
	p.turned++
	if p.closing || p.turned > maxTurned {
		return 0, false
	}
	p.resending.Add(1)
	return turnedPause << (p.turned - 1), true
}

// resend gives the next daemon what the last one did not look at.
func (p *Pump) resend(pause time.Duration, messages []message) {
	time.Sleep(pause)
	for _, m := range messages {
		p.mu.Lock()
		first := m.kind == request && m.method == "initialize" && m.id == p.initID
		answered, again := p.initLine == nil || p.initDone, p.resent
		p.mu.Unlock()
		switch {
		case first && answered:
			continue
		case first && again: // introduce sends it
			p.resume()
			continue
		}
		if p.forward(context.Background(), m, m.line) != nil {
			return
		}
	}
}

// resume reaches the next daemon for an initialize that waits, or answers it; then no other daemon gets it.
func (p *Pump) resume() {
	if p.reconnect(context.Background()) == nil {
		return
	}
	if line, failure := p.withdraw(); line != nil {
		_ = p.refuse(scan(line), failure)
	}
}

// withdraw takes the initialize that waits, with why no daemon can be reached; nil when there is none, or a daemon has it.
func (p *Pump) withdraw() (line []byte, failure *Failure) {
	p.connecting.Lock() // or it were given to a daemon meanwhile
	defer p.connecting.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != nil || p.initDone {
		return nil, nil
	}
	line, p.initLine = p.initLine, nil
	return line, p.failure
}

// fail keeps the reason and spaces the attempts: 1, 2, 4 ... 16 pauses.
func (p *Pump) fail(f *Failure, unreached bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.failure, p.unreached = failed, f, unreached
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
