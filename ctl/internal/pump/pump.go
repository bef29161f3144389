package pump

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/proto/mcpline"
)

// Options are the parts of a Pump. Zero durations mean the defaults.
type Options struct {
	In  io.Reader
	Out io.Writer
	// Connect reaches the daemon, starting it if need be. It is never called by two at a time.
	Connect func(context.Context) (io.ReadWriteCloser, error)
	// HalfClose tells the daemon that nothing more will come; it may be nil.
	HalfClose func(io.ReadWriteCloser) error
	// Running reports whether a daemon runs, so that one which another client started is used at once although Connect
	// has failed a moment ago. It may be nil.
	Running func() bool
	// Explain turns an error of Connect into words for the agent; it may be nil.
	Explain func(error) *Failure
	Hello   Hello
	// ClientIO starts the process that opens pages and reads and writes files for the daemon, with the token that the
	// daemon sent; it must not block. Nil carries nothing out.
	ClientIO func(token string)
	// Drain bounds the wait for answers after In ended; 3 s by default, which is longer than the daemon's own wait.
	Drain time.Duration
	// Handshake bounds the wait for the daemon's answers to preface and replayed initialize; 5 s by default. Explain puts
	// ErrSilent, which it then ends with, into words.
	Handshake time.Duration
	// Starting reports whether the daemon behind a connection is only being started, by a service manager that took the
	// connection for it: such a one has four times as long. It may be nil.
	Starting func() bool
	// Orphaned returns when the process that started this one has ended; nil never does. The client then has to show within
	// Proof, 5 s by default, that it lives.
	Orphaned func()
	Proof    time.Duration
	// Pause is the first pause between two attempts that fail, doubled up to 16 times; 1 s by default.
	Pause time.Duration
}

// Pump carries one client's messages. Make it with New.
type Pump struct {
	opts  Options
	outMu sync.Mutex

	mu         sync.Mutex
	state      state
	link       *link     // while up
	failure    *Failure  // while failed
	retryAt    time.Time // while failed: no attempt before
	unreached  bool      // while failed: it was Connect that failed
	pause      time.Duration
	turned     int    // daemons in a row that ended before they admitted us
	initLine   []byte // the old era's initialize, to be replayed
	initID     string
	initDone   bool            // it was answered
	initNote   bool            // the client sent notifications/initialized
	resent     bool            // an unanswered initialize was sent a second time
	closing    bool            // In has ended: nothing is sent again
	resending  sync.WaitGroup  // guarded by closing: nothing is added once it is true
	repeating  map[string]bool // calls by id that wait for the next daemon
	linkDone   sync.WaitGroup
	connecting sync.Mutex
	lives      chan struct{} // capacity 1: the client proved that it does
	proofFrom  atomic.Int64  // Unix nanoseconds from which any message of the client proves that; 0 for not asked
}

type state int

const (
	down state = iota // nobody tries: the next message makes somebody
	up
	failed // the last attempt failed: requests are answered with the reason until retryAt
)

// New prepares a pump.
func New(opts Options) *Pump {
	if opts.Drain <= 0 {
		opts.Drain = 3 * time.Second
	}
	if opts.Handshake <= 0 {
		opts.Handshake = 5 * time.Second
	}
	if opts.Proof <= 0 {
		opts.Proof = 5 * time.Second
	}
	if opts.Pause <= 0 {
		opts.Pause = time.Second
	}
	return &Pump{opts: opts, repeating: map[string]bool{}, lives: make(chan struct{}, 1)}
}

// Open makes the first connection. Its error is Connect's; Run may be called all the same and tries again.
func (p *Pump) Open(ctx context.Context) error {
	return p.reconnect(ctx)
}

// Run carries messages until In ends and the answers that were due are written, or have not come within Drain, or until
// the client has died though another process holds In open. It returns an error only when Out cannot be written.
func (p *Pump) Run(ctx context.Context) error {
	if p.opts.Orphaned == nil {
		return p.carry(ctx)
	}
	done, abandoned := make(chan error, 1), make(chan struct{})
	go func() { done <- p.carry(ctx) }()
	go p.watchClient(abandoned)
	select {
	case err := <-done:
		return err
	case <-abandoned: // the read of In goes on: it ends with the process
		p.mu.Lock()
		defer p.mu.Unlock()
		p.closing = true
		if p.link != nil {
			p.link.conn.Close()
		}
		return nil
	}
}

func (p *Pump) carry(ctx context.Context) error {
	lines := newLineReader(p.opts.In, maxClientLine)
	for {
		line, err := lines.next()
		p.noteLife()
		switch {
		case errors.Is(err, errTooLong):
			if err := p.unread(ctx, lines.head, tooLong); err != nil {
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

// fromClient sends one line on, or answers it when the daemon cannot be reached. While the daemon is being reached the
// line waits here and those behind it wait in the client's pipe.
func (p *Pump) fromClient(ctx context.Context, line []byte) error {
	m := scan(line)
	switch m.kind {
	case misnamed:
		return p.print(rejection(echoed(m.rawID), badID))
	case response:
		if m.id == normalID([]byte(proofID)) {
			p.proved()
			return nil
		}
	case invalid:
		if h := mcpline.Of(line); h.ID() != nil {
			return p.unread(ctx, h, unreadable)
		}
	}
	p.remember(m, line)
	p.forget(m)
	return p.forward(ctx, m, line)
}

// unread deals with a message of which only the head can be read: the one who waits for it hears that it is lost. That
// is the client, or the daemon when the message answers one of its requests.
func (p *Pump) unread(ctx context.Context, h *mcpline.Head, why string) error {
	if !h.IsResponse() {
		return p.print(rejection(h.ID(), why))
	}
	if h.ID() == nil {
		return nil
	}
	line := []byte(rejected(h.ID(), why))
	return p.forward(ctx, scan(line), line)
}

func (p *Pump) forward(ctx context.Context, m message, line []byte) error {
	for try := 0; ; try++ {
		l, failure := p.live(ctx)
		if l == nil && failure == nil && try < maxTurned && ctx.Err() == nil {
			time.Sleep(turnedPause) // it ended before it could be used: nothing was sent, the next one takes it
			continue
		}
		if l == nil {
			return p.refuse(m, failure)
		}
		switch err := l.send(m, line); {
		case err == nil:
			return nil
		case errors.Is(err, errEnded): // nothing was sent: the next connection takes it
			if ctx.Err() != nil {
				return p.refuse(m, restarted)
			}
		default:
			p.hearOut(l)
			return nil
		}
	}
}

// hearOut leaves a link to its reader once a write has failed: the daemon has closed its end, and what it said before is
// still to be read: that it took us in or why it refused us, and answers. The reader then answers what was in flight.
func (p *Pump) hearOut(l *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hangUp == nil && !l.ended {
		l.hangUp = time.AfterFunc(p.opts.Handshake, func() { l.conn.Close() })
	}
}

// remember keeps what a daemon that comes later must be told.
func (p *Pump) remember(m message, line []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case m.kind == request && m.method == "initialize":
		p.initLine = append([]byte(nil), line...)
		p.initID, p.initDone, p.initNote, p.resent = m.id, false, false, false
	case m.kind == notification && m.method == "notifications/initialized":
		p.initNote = true
	}
}

// live returns the connection, making one when there is none and it is time to try.
func (p *Pump) live(ctx context.Context) (*link, *Failure) {
	p.mu.Lock()
	l, failure, wait := p.link, p.failure, p.state == failed && time.Now().Before(p.retryAt)
	look := p.unreached && p.opts.Running != nil
	p.mu.Unlock()
	if l != nil {
		return l, nil
	}
	if wait && (!look || !p.opts.Running()) {
		return nil, failure
	}
	_ = p.reconnect(ctx) // the failure is kept
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link, p.failure
}

// refuse answers every request of a message that cannot be sent.
func (p *Pump) refuse(m message, f *Failure) error {
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

// array is the line that answers a batch.
func array(answers []string) string { return "[" + strings.Join(answers, ",") + "]\n" }

func (p *Pump) print(line string) error { return p.write([]byte(line)) }

func (p *Pump) write(line []byte) error {
	p.outMu.Lock()
	defer p.outMu.Unlock()
	_, err := p.opts.Out.Write(line)
	return err
}
