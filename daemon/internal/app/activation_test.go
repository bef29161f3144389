//go:build unix

package app

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/service-dev/service/internal/rendezvous"
)

// given creates sockets that outlive the daemon, as a service manager does.
func given(t *testing.T, p rendezvous.Paths) Listeners {
	t.Helper()
	made := Listeners{}
	for _, path := range []string{p.Control, p.MCP} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		file, err := l.File() // the service manager's descriptor
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		made[path] = l
	}
	return made
}

func TestGivenSocketsStay(t *testing.T) {
	p := paths(t, short(t))
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	sockets := given(t, p)
	h, err := acquire(t.Context(), p, Options{Managed: true, Sockets: sockets, Notify: noopNotifier{}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if !h.activated || h.Control != net.Listener(sockets[p.Control]) || h.MCP != net.Listener(sockets[p.MCP]) ||
		h.isLost() {
		t.Errorf("the inherited sockets were not adopted: %+v", h)
	}
	h.release()
	for _, path := range []string{p.Control, p.MCP} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Errorf("the sockets must survive the daemon: %v", err)
			continue
		}
		conn.Close()
	}
}

// Inherited sockets at paths that no client uses are closed, and the daemon creates new ones.
func TestGivenSocketsThatNobodyFinds(t *testing.T) {
	spoil := map[string]func(string) error{
		"deleted": os.Remove,
		"a file":  func(path string) error { _ = os.Remove(path); return os.WriteFile(path, nil, 0o600) },
		"a dead socket": func(path string) error {
			_ = os.Remove(path)
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		},
	}
	for name, spoil := range spoil {
		t.Run(name, func(t *testing.T) {
			p := paths(t, short(t))
			if err := prepareDirs(p); err != nil {
				t.Fatal(err)
			}
			sockets := given(t, p)
			for _, path := range []string{p.Control, p.MCP} {
				if err := spoil(path); err != nil {
					t.Fatal(err)
				}
			}
			h, err := acquire(t.Context(), p, Options{Managed: true, Sockets: sockets, Notify: noopNotifier{}}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if h.activated || h.isLost() {
				t.Error("the daemon serves sockets that clients cannot reach")
			}
			if _, err := sockets[p.Control].Accept(); err == nil {
				t.Error("an unused inherited socket is still open")
			}
			h.release()
			if _, err := os.Stat(p.Control); err == nil {
				t.Error("the daemon left its own socket behind")
			}
		})
	}
}

// told records the messages to the service manager.
type told struct {
	noopNotifier
	waiting chan string
}

func (n told) Waiting(what string) { n.waiting <- what }

func TestManagedDaemonWaitsForTheOneBefore(t *testing.T) {
	p := paths(t, short(t))
	if err := prepareDirs(p); err != nil {
		t.Fatal(err)
	}
	before, err := acquire(t.Context(), p, Options{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	n := told{waiting: make(chan string, 1)}
	got := make(chan *instance, 1)
	go func() {
		h, err := acquire(t.Context(), p, Options{Managed: true, Notify: n}, time.Now())
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	<-n.waiting
	select {
	case <-got:
		t.Error("two daemons hold the lock of one directory")
	default:
	}
	before.release()
	if h := <-got; h != nil {
		h.release()
	}
}
