package stdioproxy

import (
	"context"
	"errors"
	"time"

	"github.com/service-dev/service/internal/problem"
)

// maxEarlyEnds is the maximum number of consecutive retries if the daemon exits during the handshake. earlyEndPause is
// the first pause; each further pause is twice as long.
const (
	maxEarlyEnds  = 6
	earlyEndPause = 25 * time.Millisecond
)

// ErrSilent is returned if a daemon accepted the connection but never responded.
var ErrSilent = errors.New("the daemon does not respond")

// reconnect connects unless a connection exists, and stores the failure.
func (p *Proxy) reconnect(ctx context.Context) error {
	p.connecting.Lock()
	defer p.connecting.Unlock()
	p.mu.Lock()
	standing := p.conn != nil
	p.mu.Unlock()
	if standing {
		return nil
	}
	for pause := earlyEndPause; ; pause *= 2 {
		conn, err := p.opts.Connect(ctx)
		ending := false
		if err == nil {
			c := newConnection(conn)
			if err = p.handshake(c); err == nil {
				return nil
			}
			err = p.refusalAfter(c, err)
			_, wasAdmitted := c.end()
			p.mu.Lock()
			replayed := p.initDone // if set, messages that were already sent may be sent again
			p.mu.Unlock()
			ending = (!wasAdmitted || replayed) && problem.From(err) == nil
		}
		if !ending || pause >= earlyEndPause<<maxEarlyEnds {
			p.fail(p.explain(err), conn == nil)
			return err
		}
		time.Sleep(pause) // give the stopping daemon time to exit
	}
}

// handshake sends the opening line, replays the session of an earlier connection, and opens c for traffic.
func (p *Proxy) handshake(c *connection) error {
	c.startTimeout(p.opts.HandshakeTimeout, p.opts.Starting)
	if err := c.write(p.opts.Handshake.line()); err != nil {
		return err
	}
	p.mu.Lock()
	replay, again := p.initLine, p.initLine != nil && !p.initDone && p.initResent
	id, noted := p.initID, p.initConfirmed
	done := p.initDone
	p.mu.Unlock()
	switch {
	case again:
		if err := c.send(scan(replay), replay); err != nil {
			return err
		}
	case replay != nil && done:
		if err := p.replay(c, replay, id, noted); err != nil {
			if c.stopTimeout() {
				err = p.explain(ErrSilent)
			}
			return err
		}
	}
	p.mu.Lock()
	p.conn, p.state, p.failure = c, up, nil
	p.mu.Unlock()
	p.connDone.Add(1)
	go func() {
		defer p.connDone.Done()
		p.fromDaemon(c)
	}()
	return nil
}

// refusalAfter returns the daemon's refusal if the daemon sent one before it closed the connection, or err otherwise.
// A daemon that refuses further clients reads no input, so only the write fails.
func (p *Proxy) refusalAfter(c *connection, err error) error {
	if c.admitted || problem.From(err) != nil {
		return err
	}
	timer := time.AfterFunc(p.opts.HandshakeTimeout, func() { c.conn.Close() })
	defer timer.Stop()
	if line, answerUnreadable := c.lines.next(); answerUnreadable == nil {
		if refusal := admitted(line); refusal != nil {
			return refusal
		}
	}
	return err
}

// replay sends the session's initialize to a new daemon and discards the response.
func (p *Proxy) replay(c *connection, line []byte, id string, noted bool) error {
	if err := c.write(line); err != nil {
		return err
	}
	for answered := false; !answered; {
		line, err := c.lines.next()
		if err != nil {
			return err
		}
		if !c.admitted {
			if err := admitted(line); err != nil {
				return err
			}
			c.admit(line)
			continue
		}
		if p.takeClientIO(line) {
			continue
		}
		m := scan(line)
		if answered = m.kind == response && m.id == id; answered {
			c.stopTimeout()
			break
		}
		c.received(m)
		if err := p.write(line); err != nil {
			return err
		}
	}
	if !noted {
		return nil
	}
	return c.write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
}

// noteEarlyEnd counts a daemon that exited before it admitted us. It registers a resend and returns the pause before
// it. ok is false after too many early ends in a row, or if the input has ended.
func (p *Proxy) noteEarlyEnd() (pause time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conn, p.state = nil, down
	p.earlyEnds++
	if p.closing || p.earlyEnds > maxEarlyEnds {
		return 0, false
	}
	p.resending.Add(1)
	return earlyEndPause << (p.earlyEnds - 1), true
}

// resend sends messages that the previous daemon did not process to the next one.
func (p *Proxy) resend(pause time.Duration, messages []message) {
	time.Sleep(pause)
	for _, m := range messages {
		p.mu.Lock()
		first := m.kind == request && m.method == "initialize" && m.id == p.initID
		answered, again := p.initLine == nil || p.initDone, p.initResent
		p.mu.Unlock()
		switch {
		case first && answered:
			continue
		case first && again: // the handshake already sends this message
			p.resendInitialize()
			continue
		}
		if p.forward(context.Background(), m, m.line) != nil {
			return
		}
	}
}

// resendInitialize connects to the next daemon to send it the pending initialize, or answers the initialize with the
// failure.
func (p *Proxy) resendInitialize() {
	if p.reconnect(context.Background()) == nil {
		return
	}
	if line, failure := p.withdrawInitialize(); line != nil {
		_ = p.refuse(scan(line), failure)
	}
}

// withdrawInitialize removes the pending initialize and returns it with the failure to connect. It returns nil if
// there is none or a daemon has received it.
func (p *Proxy) withdrawInitialize() (line []byte, failure *problem.Error) {
	p.connecting.Lock() // prevents another goroutine from sending the line
	defer p.connecting.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil || p.initDone {
		return nil, nil
	}
	line, p.initLine = p.initLine, nil
	return line, p.failure
}

// fail stores the failure and schedules the next attempt. The delay starts at one pause and doubles with each failure,
// up to 16 pauses.
func (p *Proxy) fail(f *problem.Error, unreached bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.failure, p.unreached = failed, f, unreached
	p.pause = min(max(2*p.pause, p.opts.Pause), 16*p.opts.Pause)
	p.retryAt = time.Now().Add(p.pause)
}

func (p *Proxy) explain(err error) *problem.Error {
	if f := problem.From(err); f != nil {
		return f
	}
	if p.opts.Explain != nil {
		if f := p.opts.Explain(err); f != nil {
			return f
		}
	}
	return &problem.Error{Code: "daemon_unavailable", Message: err.Error(), Retryable: true,
		FixHint: "Run `servicectl doctor`."}
}
