package app

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/service-dev/service/backend/internal/limit"
)

// ConnLimits limit the resources that clients can hold by not sending or not reading. The zero value means the
// defaults.
type ConnLimits struct {
	// WriteTimeout is the time a client has to read each writePart of a response, 30 s by default.
	WriteTimeout time.Duration
	// WriteBuffer limits the bytes that the kernel buffers for a client that does not read, 128 KB by default.
	// Without it, the kernel would buffer megabytes, and report a slow client's progress only after the client has
	// read a third of them.
	WriteBuffer int
	// PerAddress is the number of connections that one address may have open, 1000 by default. It does not apply
	// to trusted proxies.
	PerAddress int
	// RequestsPerAddress is the number of requests that one client may have in progress, even behind a trusted proxy,
	// 500 by default.
	RequestsPerAddress int
}

func (l ConnLimits) orDefaults() ConnLimits {
	l.WriteTimeout = cmp.Or(l.WriteTimeout, 30*time.Second)
	l.WriteBuffer = cmp.Or(l.WriteBuffer, 128<<10)
	l.PerAddress = cmp.Or(l.PerAddress, 1000)
	l.RequestsPerAddress = cmp.Or(l.RequestsPerAddress, 500)
	return l
}

// writePart is the number of bytes to which a write deadline applies. The kernel reports progress only once a third of
// its buffer is free again, so the slowest allowed client reads about 5 KB a second.
const writePart = 64 << 10

// limitedListener accepts connections that have a rolling write deadline, and limits them per address.
type limitedListener struct {
	net.Listener
	limits    ConnLimits
	addresses *clientAddresses
	open      *limit.Slots // open connections by address
	log       *slog.Logger
	refused   rate.Sometimes // limits the log
}

func (a *App) limitConnections(l net.Listener, open *limit.Slots) net.Listener {
	return &limitedListener{Listener: l, limits: a.limits, addresses: a.addresses, open: open, log: a.log,
		refused: rate.Sometimes{First: 1, Interval: time.Minute}}
}

// Accept implements net.Listener. It closes connections of an address that has too many.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp := accepted.(*net.TCPConn) //nolint:forcetypeassert // the backend listens on TCP only
		release, ok := l.take(tcp)
		if !ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
			continue
		}
		_ = tcp.SetWriteBuffer(l.limits.WriteBuffer) // fails only if the client has disconnected
		return &limitedConn{TCPConn: tcp, timeout: l.limits.WriteTimeout, release: sync.OnceFunc(release)}, nil
	}
}

// take counts a connection. It returns false if the address has too many connections.
func (l *limitedListener) take(c *net.TCPConn) (release func(), ok bool) {
	address, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil || l.addresses.isTrusted(address) {
		return func() {}, true
	}
	release, err = l.open.Enter(context.Background(), limit.Caller(address)) // never waits
	if err != nil {
		l.refused.Do(func() {
			l.log.Warn("refused connections: the address has too many open; "+
				"if it is a proxy, add it to trusted_proxies", "address", address)
		})
		return nil, false
	}
	return release, true
}

// limitedConn is a connection whose writes fail once its client stops reading or reads too slowly. All output of the
// backend passes through Write, so no handler needs its own deadline.
type limitedConn struct {
	*net.TCPConn
	withoutReadFrom //nolint:unused // its method hides ReadFrom
	timeout         time.Duration
	deadline        atomic.Pointer[time.Time] // set by a handler and earlier than the rolling one; nil if none
	release         func()
}

// withoutReadFrom hides net.TCPConn.ReadFrom, which would send a whole file under a single deadline.
type withoutReadFrom struct{} //nolint:unused // see limitedConn

//nolint:unused // see limitedConn
func (withoutReadFrom) ReadFrom(io.Reader) (int64, error) { panic("unreachable") }

// Write implements net.Conn. It extends the deadline with each part that the client reads.
func (c *limitedConn) Write(p []byte) (n int, err error) {
	for {
		part := p[n:min(n+writePart, len(p))]
		if err := c.TCPConn.SetWriteDeadline(c.writeBy(time.Now())); err != nil {
			return n, err
		}
		m, err := c.TCPConn.Write(part)
		n += m
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = c.SetLinger(0) // otherwise the kernel would keep unread data for minutes
		}
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

func (c *limitedConn) writeBy(now time.Time) time.Time {
	by := now.Add(c.timeout)
	if set := c.deadline.Load(); set != nil && set.Before(by) {
		return *set
	}
	return by
}

// SetWriteDeadline implements net.Conn. The deadline applies in addition to the rolling one.
func (c *limitedConn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.deadline.Store(nil)
	} else {
		c.deadline.Store(&t)
	}
	return c.TCPConn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *limitedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.release()
	return c.TCPConn.Close()
}
