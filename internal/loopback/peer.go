package loopback

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
	// ErrOtherUser is returned for a connection that belongs to another user of this machine.
	ErrOtherUser = errors.New("the connection belongs to another user")
	// ErrNoOwner is returned for a connection whose other end has no owner because it is closed or not on this machine.
	ErrNoOwner = errors.New("the other end of the connection has no owner on this machine")
)

// CheckPeer returns nil if the other end of an accepted connection belongs to the user of this process or to root.
// Otherwise it returns ErrOtherUser, ErrNoOwner, or an error that explains why the owner is unknown.
//
// Refusing root would not protect anything, because root can read every file and process of that user. It would also
// refuse relays that run as root on the user's behalf, such as the one that forwards a Windows browser's connections
// into a WSL machine. A browser under sudo is accepted for the same reason.
//
// A container counts as the user that it runs as on this machine. A container that shares the host's network is refused
// if it runs as another user, and accepted as root or the same user. User namespaces do not change this: the kernel
// translates the owner into this process's namespace, and an owner without a mapping is another user. A forwarded port
// (ssh -L, adb reverse) belongs to the user who runs the forwarder. A connection is refused if its other end has no
// socket on this machine in this network namespace, for example if it was routed from another machine.
func CheckPeer(conn net.Conn) error {
	local, ok := conn.LocalAddr().(*net.TCPAddr)
	remote, isTCP := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !isTCP {
		return fmt.Errorf("the other end of a %s connection has no TCP address", conn.LocalAddr().Network())
	}
	if err := checkOwner(plain(remote.AddrPort()), plain(local.AddrPort())); err != nil {
		return err
	}
	return checkOpen(conn)
}

// plain normalises an address. IPv4 in IPv6 form becomes IPv4, and the zone is removed.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}

// probeWait is the maximum time that ProbePeers waits for its own connection.
const probeWait = 5 * time.Second

// ProbePeers checks that CheckPeer works on this system, using a connection of this process to itself. Call it once
// before a listener relies on CheckPeer, so that the result does not depend on later actions of another user.
func ProbePeers() error {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("probe connection owners: %w", err)
	}
	defer l.Close()
	_ = l.SetDeadline(time.Now().Add(probeWait))
	client, err := (&net.Dialer{Timeout: probeWait}).DialContext(context.Background(), "tcp4", l.Addr().String())
	if err != nil {
		return fmt.Errorf("probe connection owners: %w", err)
	}
	defer client.Close()
	for {
		conn, err := l.Accept()
		if err != nil {
			return fmt.Errorf("probe connection owners: %w", err)
		}
		ours := conn.RemoteAddr().String() == client.LocalAddr().String()
		if ours {
			err = CheckPeer(conn)
		}
		conn.Close()
		if ours {
			return err
		}
	}
}

// reportEvery is the minimum time between reports of a listener, so that refused connections cannot flood a log.
const reportEvery = time.Minute

// Guard returns a listener that accepts only connections for which CheckPeer returns nil, and closes all others. It
// calls report with the reason for a refusal, at most once a minute.
func Guard(l net.Listener, report func(error)) net.Listener {
	return &guarded{Listener: l, report: report}
}

type guarded struct {
	net.Listener
	report func(error)

	mu   sync.Mutex
	last time.Time // when the last refusal was reported
}

func (g *guarded) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		refused := CheckPeer(conn)
		if refused == nil {
			return conn, nil
		}
		conn.Close()
		if !errors.Is(refused, ErrNoOwner) { // do not report a caller that has disconnected
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
