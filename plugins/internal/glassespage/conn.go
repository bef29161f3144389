package glassespage

import (
	"context"
	"sync"
	"time"

	"github.com/service-dev/service/internal/problem"
)

const (
	maxNotifications = 1024 // maximum number that wait to be received; further ones are dropped
	confirmTime      = 5 * time.Second
)

// Conn is an open link. Close must be called even if the link was lost.
type Conn struct {
	page *Page
	link *link
	name string

	notifications chan []byte
	written       chan string // receives the problem of each write, or "" on success
	done          chan struct{}

	mu  sync.Mutex
	err error // reason for the end of the link; nil while it is open
}

func newConn(p *Page, l *link) *Conn {
	return &Conn{page: p, link: l, name: l.name, notifications: make(chan []byte, maxNotifications),
		written: make(chan string, 1), done: make(chan struct{})}
}

// Notifications returns the values that the peripheral sends, in order. It is closed when the link ends.
func (c *Conn) Notifications() <-chan []byte { return c.notifications }

// Err returns nil while the link is open, and then a *problem.Error.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Name returns the advertised name of the peripheral.
func (c *Conn) Name() string { return c.name }

// MTU returns 0, because browsers do not report it.
func (c *Conn) MTU() int { return 0 }

// Write writes one value and waits until the browser confirms it. Only one goroutine may call Write.
func (c *Conn) Write(ctx context.Context, data []byte, withResponse bool) error {
	p := c.page
	p.mu.Lock()
	if c.link.conn != c || p.tab == nil {
		p.mu.Unlock()
		return linkProblem(problem.CodeLost)
	}
	p.tab.send(writeMessage(c.link.index, data, withResponse))
	p.mu.Unlock()
	timer := time.NewTimer(confirmTime)
	defer timer.Stop()
	select {
	case code := <-c.written:
		if code != "" {
			return linkProblem(code)
		}
		return nil
	case <-timer.C: // a later confirmation would be mistaken for the next value's
		c.Close()
		return linkProblem(problem.CodeTimeout)
	case <-c.done:
		return c.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the link.
func (c *Conn) Close() {
	p := c.page
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.link.conn == c {
		p.tell(toPage{Type: typeDrop, Link: c.link.spec.Key})
		c.link.conn = nil
	}
	c.finish(problem.CodeLost)
}

// finish ends the link with a problem, unless it has already ended.
func (c *Conn) finish(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = linkProblem(code)
		close(c.done)
		close(c.notifications)
	}
}

func (c *Conn) wrote(code string) {
	select {
	case c.written <- code:
	default: // no write is pending
	}
}

func (c *Conn) deliver(data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && len(c.notifications) < cap(c.notifications) { // only this function adds notifications
		c.notifications <- data
	}
}
