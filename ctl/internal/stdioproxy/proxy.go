package stdioproxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/internal/mcpline"
	"github.com/service-dev/service/internal/problem"
)

// Options configure a Proxy. Zero durations mean the defaults.
type Options struct {
	In  io.Reader
	Out io.Writer
	// Connect connects to the daemon and starts it if necessary. Calls never overlap.
	Connect func(context.Context) (io.ReadWriteCloser, error)
	// HalfClose closes the sending side of a connection; it may be nil.
	HalfClose func(io.ReadWriteCloser) error
	// Running reports whether a daemon is running, so that a daemon started by another client is used immediately even if
	// Connect has just failed. It may be nil.
	Running func() bool
	// Explain translates an error of Connect for the agent; it may be nil.
	Explain   func(error) *problem.Error
	Handshake Handshake
	// ClientIO starts the process that opens pages and reads and writes files for the daemon, with the token that the
	// daemon sent. It must not block. If it is nil, no such process is started.
	ClientIO func(token string)
	// Drain is the maximum wait for responses after In ends. The default of 3 s is longer than the daemon's own wait.
	Drain time.Duration
	// HandshakeTimeout is the maximum wait for the daemon's response to the handshake and to a replayed initialize; the
	// default is 5 s. When it expires, Explain receives ErrSilent.
	HandshakeTimeout time.Duration
	// Starting reports whether a service manager accepted the connection and is still starting the daemon. The timeout is
	// then four times as long. It may be nil.
	Starting func() bool
	// Orphaned returns when the process that started this one has exited; it may be nil. The client must then send a
	// message within ProofTimeout, by default 5 s.
	Orphaned     func()
	ProofTimeout time.Duration
	// Pause is the first pause between failed attempts, by default 1 s. It doubles up to 16 times its initial length.
	Pause time.Duration
}

// Proxy forwards one client's messages. Create it with New.
type Proxy struct {
	opts  Options
	outMu sync.Mutex

	mu            sync.Mutex
	state         state
	conn          *connection    // while connected
	failure       *problem.Error // while failed
	retryAt       time.Time      // while failed: earliest next attempt
	unreached     bool           // while failed: Connect itself failed
	pause         time.Duration
	earlyEnds     int    // consecutive daemons that exited before admitting us
	initLine      []byte // initialize line of a session with a handshake, for replay
	initID        string
	initDone      bool            // the client received the response to initialize
	initConfirmed bool            // the client sent notifications/initialized
	initResent    bool            // an unanswered initialize was already sent again
	closing       bool            // In has ended, so messages are not sent again
	resending     sync.WaitGroup  // no Add after closing is set
	repeating     map[string]bool // IDs of calls that wait to be repeated with the next daemon
	connDone      sync.WaitGroup
	connecting    sync.Mutex
	alive         chan struct{} // capacity 1: receives a value on a sign of life from the client
	proofFrom     atomic.Int64  // Unix nanoseconds after which any message is a sign of life; 0 before the ping
}

type state int

const (
	down state = iota // the next message connects
	up
	failed // the last attempt failed: requests get the failure as response until retryAt
)

// New returns a Proxy. Zero durations in o are replaced by their defaults.
func New(opts Options) *Proxy {
	opts.Drain = cmp.Or(max(opts.Drain, 0), 3*time.Second)
	opts.HandshakeTimeout = cmp.Or(max(opts.HandshakeTimeout, 0), 5*time.Second)
	opts.ProofTimeout = cmp.Or(max(opts.ProofTimeout, 0), 5*time.Second)
	opts.Pause = cmp.Or(max(opts.Pause, 0), time.Second)
	return &Proxy{opts: opts, repeating: map[string]bool{}, alive: make(chan struct{}, 1)}
}

// Open makes the first connection and returns the error of Connect. After an error, Run may still be called and
// tries again.
func (p *Proxy) Open(ctx context.Context) error {
	return p.reconnect(ctx)
}

// Run forwards messages until In ends and outstanding responses are written or Drain has passed. It also returns when
// the client has died while another process holds In open. It returns an error only if Out cannot be written.
func (p *Proxy) Run(ctx context.Context) error {
	if p.opts.Orphaned == nil {
		return p.copyInput(ctx)
	}
	done, abandoned := make(chan error, 1), make(chan struct{})
	go func() { done <- p.copyInput(ctx) }()
	go p.watchClient(abandoned)
	select {
	case err := <-done:
		return err
	case <-abandoned: // the process is about to exit, which ends the pending read of In
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closing = true
		if p.conn != nil {
			p.conn.conn.Close()
		}
		return nil
	}
}

func (p *Proxy) copyInput(ctx context.Context) error {
	lines := newLineReader(p.opts.In, maxClientLine)
	for {
		line, err := lines.next()
		p.noteActivity()
		switch {
		case errors.Is(err, errTooLong):
			if err := p.answerUnreadable(ctx, lines.head, tooLong); err != nil {
				return err
			}
		case err != nil:
			p.drain()
			return nil
		default:
			if err := p.fromClient(ctx, line); err != nil {
				return err
			}
		}
	}
}

// fromClient forwards one line, or responds to it if the daemon cannot be reached. It blocks while it connects. Later
// lines wait in the client's pipe.
func (p *Proxy) fromClient(ctx context.Context, line []byte) error {
	m := scan(line)
	switch m.kind {
	case misnamed:
		return p.print(rejection(echoed(m.rawID), badID))
	case response:
		if m.id == normalID([]byte(proofID)) {
			p.markAlive()
			return nil
		}
	case invalid:
		if h := mcpline.Of(line); h.ID() != nil {
			return p.answerUnreadable(ctx, h, unreadable)
		}
	}
	p.remember(m, line)
	p.forgetRepeat(m)
	return p.forward(ctx, m, line)
}

// answerUnreadable reports a message of which only the head can be read. It informs the side that waits for a
// response: the client, or the daemon if the message responds to one of the daemon's requests.
func (p *Proxy) answerUnreadable(ctx context.Context, h *mcpline.Head, why string) error {
	if !h.IsResponse() {
		return p.print(rejection(h.ID(), why))
	}
	if h.ID() == nil {
		return nil
	}
	line := []byte(rejected(h.ID(), why))
	return p.forward(ctx, scan(line), line)
}

func (p *Proxy) forward(ctx context.Context, m message, line []byte) error {
	for try := 0; ; try++ {
		c, failure := p.connection(ctx)
		if c == nil && failure == nil && try < maxEarlyEnds && ctx.Err() == nil {
			time.Sleep(earlyEndPause) // the connection ended before the message was sent: use the next one
			continue
		}
		if c == nil {
			return p.refuse(m, failure)
		}
		switch err := c.send(m, line); {
		case err == nil:
			return nil
		case errors.Is(err, errEnded): // the message was not sent: use the next connection
			if ctx.Err() != nil {
				return p.refuse(m, restarted)
			}
		default:
			p.closeAfterRead(c)
			return nil
		}
	}
}

// closeAfterRead leaves a connection to its reader after a failed write. The reader must still read data that the
// daemon sent before it closed: its response to the handshake, the reason of a refusal, and results. The reader then
// responds to the open requests.
func (p *Proxy) closeAfterRead(c *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closeTimer == nil && !c.ended {
		c.closeTimer = time.AfterFunc(p.opts.HandshakeTimeout, func() { c.conn.Close() })
	}
}

// remember stores the messages that a later daemon must receive.
func (p *Proxy) remember(m message, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case m.kind == request && m.method == "initialize":
		p.initLine = append([]byte(nil), line...)
		p.initID, p.initDone, p.initConfirmed, p.initResent = m.id, false, false, false
	case m.kind == notification && m.method == "notifications/initialized":
		p.initConfirmed = true
	}
}

// connection returns the current connection, or connects if the next attempt is due.
func (p *Proxy) connection(ctx context.Context) (*connection, *problem.Error) {
	p.mu.Lock()
	c, failure, wait := p.conn, p.failure, p.state == failed && time.Now().Before(p.retryAt)
	look := p.unreached && p.opts.Running != nil
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	if wait && (!look || !p.opts.Running()) {
		return nil, failure
	}
	_ = p.reconnect(ctx) // reconnect stores the failure
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn, p.failure
}

// refuse sends an error response to every request in a message that cannot be sent.
func (p *Proxy) refuse(m message, f *problem.Error) error {
	if f == nil {
		f = restarted
	}
	var answers []string
	for _, part := range append(m.parts, m) {
		switch part.kind {
		case request:
			answers = append(answers, newPending(part).answer(f))
		case misnamed:
			answers = append(answers, rejected(echoed(part.rawID), badID))
		}
	}
	if len(answers) == 0 {
		return nil
	}
	if m.kind == batch {
		return p.print(array(answers))
	}
	return p.print(answers[0] + "\n")
}

// array returns the line with the responses to a batch.
func array(answers []string) string { return "[" + strings.Join(answers, ",") + "]\n" }

func (p *Proxy) print(line string) error { return p.write([]byte(line)) }

func (p *Proxy) write(line []byte) error {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	_, err := p.opts.Out.Write(line)
	return err
}
