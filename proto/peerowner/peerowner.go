// Package peerowner tells whose process is at the other end of a TCP connection over loopback. The loopback address is
// shared by every user of a machine, so a listener there that serves one person refuses everybody else's connections
// when it accepts them, before a byte is read. It is for the daemon and the adapters alike.
//
// A connection is let in when its other end was opened by the user of this process, or by root. Refusing root would
// protect nothing, for root reads every file and every process of that user, and it would shut out relays that run as
// root on the person's behalf, such as the one that carries a Windows browser's connections into a WSL machine. So a
// browser under sudo is let in too.
//
// What a container does counts as what its user on this machine does: one that shares the host's network is refused
// when it runs as another user, and let in as root or as the same user. User namespaces change nothing about that:
// the system translates the owner into the view of this process, and one that has no name there is somebody else.
// A forwarded port (ssh -L, adb reverse) belongs to the user who runs the forwarder. A connection that no socket of
// this machine and network namespace holds, such as one that was routed here from outside, is refused.
package peerowner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

var (
	// ErrOtherUser refuses a connection of another user of this machine.
	ErrOtherUser = errors.New("the connection belongs to another user")
	// ErrNoOwner refuses a connection whose other end nobody holds: it was closed already, or is not on this machine.
	ErrNoOwner = errors.New("nobody on this machine holds the other end of the connection")
)

// Check reports whether the other end of an accepted connection belongs to the user of this process, or to root. The
// error is ErrOtherUser, ErrNoOwner, or why the system did not tell.
func Check(conn net.Conn) error {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	remote, isTCP := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !isTCP {
		return fmt.Errorf("the other end of a %s connection is no TCP address", conn.LocalAddr().Network())
	}
	if err := checkOwner(plain(remote.AddrPort()), plain(local.AddrPort())); err != nil {
		return err
	}
	return checkOpen(conn)
}

// plain is an address without what lets two spellings of one differ: an IPv4 address in IPv6 form, and a zone.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// probeWait bounds Probe's connection to itself.
const probeWait = 5 * time.Second

// Probe reports whether Check can tell owners here, by a connection of this process to itself. It is called once,
// before a listener relies on Check: whether a system tells must not hang on what a stranger does later.
func Probe() error {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("probe the owners of connections: %w", err)
	}
	defer l.Close()
	_ = l.SetDeadline(time.Now().Add(probeWait))
	client, err := (&net.Dialer{Timeout: probeWait}).DialContext(context.Background(), "tcp4", l.Addr().String())
	if err != nil {
		return fmt.Errorf("probe the owners of connections: %w", err)
	}
	defer client.Close()
	for {
		conn, err := l.Accept()
		if err != nil {
			return fmt.Errorf("probe the owners of connections: %w", err)
		}
		ours := conn.RemoteAddr().String() == client.LocalAddr().String()
		if ours {
			err = Check(conn)
		}
		conn.Close()
		if ours {
			return err
		}
	}
}

// reportEvery bounds how often a guarded listener reports refusals, so that nobody can fill a log with them.
const reportEvery = time.Minute

// Guard returns a listener that accepts only connections for which Check returns nil; it closes the others at once.
// It calls report with the reason of a refusal, at most once a minute.
func Guard(l net.Listener, report func(error)) net.Listener {
	return &guarded{Listener: l, report: report}
}

type guarded struct {
	net.Listener
	report func(error)

	mu   sync.Mutex
	last time.Time // when a refusal was reported
}

func (g *guarded) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		refused := Check(conn)
		if refused == nil {
			return conn, nil
		}
		conn.Close()
		if !errors.Is(refused, ErrNoOwner) { // a caller that left is nothing to report
			g.note(refused)
		}
	}
}

func (g *guarded) note(err error) {
	g.mu.Lock()
	due := g.last.IsZero() || time.Since(g.last) >= reportEvery
	if due {
		g.last = time.Now()
	}
	g.mu.Unlock()
	if due {
		g.report(err)
	}
}
