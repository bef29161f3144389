package websocket

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// idlePoller watches the descriptors of all connections that wait in Await. One goroutine serves them while there are
// any. It uses its own epoll instance, because the runtime's instance wakes a goroutine for each connection.
var idlePoller = poller{calls: map[int32]func(){}}

type poller struct {
	mu        sync.Mutex
	epoll     int              // opened for the first connection and never closed
	events    *os.File         // epoll, as a file that a goroutine can wait for
	calls     map[int32]func() // functions to call, by descriptor
	isRunning bool
}

// add calls f in a new goroutine when the connection is readable, has ended, or is passed to wake. It returns false for
// a connection that cannot be polled.
func (p *poller) add(c *Conn, f func()) bool {
	conn, ok := c.raw.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	added := false
	err = raw.Control(func(fd uintptr) { // the connection keeps its descriptor during the call, even if Drop is called
		added = p.watch(c, int32(fd), f) == nil //nolint:gosec // descriptors are small numbers
		if added && c.ends() {
			p.wake(c) // the connection may have ended before the wait began
		}
	})
	return err == nil && added
}

func (p *poller) watch(c *Conn, fd int32, f func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.open(); err != nil {
		return err
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN | syscall.EPOLLRDHUP | syscall.EPOLLONESHOT, Fd: fd}
	err := syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_MOD, int(fd), &event)
	if errors.Is(err, syscall.ENOENT) { // the descriptor is added for the first time
		err = syscall.EpollCtl(p.epoll, syscall.EPOLL_CTL_ADD, int(fd), &event)
	}
	if err != nil {
		return err
	}
	c.fd, p.calls[fd] = fd, f
	if !p.isRunning {
		p.isRunning = true
		go p.run()
	}
	return nil
}

// open opens the epoll instance. The caller must hold mu.
func (p *poller) open() (err error) {
	if p.events != nil {
		return nil
	}
	if p.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if err := syscall.SetNonblock(p.epoll, true); err != nil { // otherwise a wait would block a thread
		return errors.Join(err, syscall.Close(p.epoll))
	}
	events := os.NewFile(uintptr(p.epoll), "epoll")
	if err := events.SetReadDeadline(time.Time{}); err != nil { // the runtime cannot poll it
		return errors.Join(err, events.Close())
	}
	p.events = events
	return nil
}

// wake immediately calls the function that was added for the connection.
func (p *poller) wake(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.call(c.fd)
	c.fd = 0 // a connection that is dropped twice must not wake the next one with this descriptor
	if len(p.calls) == 0 && p.isRunning {
		_ = p.events.SetReadDeadline(time.Unix(1, 0)) // makes run return
	}
}

// call calls the function added for a descriptor, and removes it. The caller must hold mu.
func (p *poller) call(fd int32) {
	if f := p.calls[fd]; f != nil {
		delete(p.calls, fd)
		go f()
	}
}

// run calls the functions of connections with events, and returns when there are no more connections. If an event was
// read before its connection closed, the descriptor may belong to a later connection, which then starts to read a
// little early.
func (p *poller) run() {
	raw, err := p.events.SyscallConn()
	if err != nil {
		panic(err) // the file is never closed
	}
	var events [64]syscall.EpollEvent
	for {
		n := 0
		err := raw.Read(func(uintptr) bool {
			n, _ = syscall.EpollWait(p.epoll, events[:], 0)
			return n > 0
		})
		p.mu.Lock()
		for _, e := range events[:max(n, 0)] {
			p.call(e.Fd)
		}
		if err != nil { // the deadline of wake
			_ = p.events.SetReadDeadline(time.Time{})
		}
		if len(p.calls) == 0 {
			p.isRunning = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}
