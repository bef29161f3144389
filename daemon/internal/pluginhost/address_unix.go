//go:build unix

package pluginhost

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/service-dev/service/internal/loopback"
)

// address is the address of the embedded backend. The daemon listens on it and the adapter inherits the listeners, so
// that connections wait while the adapter is not running. Only the adapter's supervisor uses address. Its zero value is
// closed.
type address struct {
	listeners []net.Listener
	waiting   []*os.File // copies of listeners, used to wait for connections
	release   func()     // ends hold and waits for it
}

// open returns copies of the listeners for a process. The caller closes them. If necessary it first listens on the port
// that the embedded backend stored in its directory. If that port was free for a while, open chooses another one. A
// program that used the port in the meantime may have left a service worker in a browser, which would continue to serve
// pages at the backend's origin.
func (a *address) open(ctx context.Context, dir string) ([]*os.File, error) {
	if len(a.listeners) == 0 {
		file := filepath.Join(dir, portFile)
		if !wasHeld(file) {
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		}
		listeners, err := loopback.Listen(ctx, loopback.ReadPort(file))
		if err != nil {
			return nil, err
		}
		a.listeners = listeners
		if a.waiting, err = copies(listeners); err != nil {
			a.close()
			return nil, err
		}
		a.release = hold(file, a.port())
	}
	return copies(a.listeners)
}

// touchEvery is the interval at which hold touches the port file.
const touchEvery = heldFor / 3

// port returns the port of the listeners.
func (a *address) port() int { return loopback.Port(a.listeners[0]) }

// hold touches the port file until release is called. It does not touch a file with a different port, because another
// program wrote that file.
func hold(file string, port int) (release func()) {
	touch := func() {
		if loopback.ReadPort(file) == port {
			_ = os.Chtimes(file, time.Time{}, time.Now())
		}
	}
	ended, end := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(touchEvery)
		defer ticker.Stop()
		for {
			touch()
			select {
			case <-ended.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return func() {
		end()
		done.Wait()
		touch()
	}
}

func copies(listeners []net.Listener) ([]*os.File, error) {
	var files []*os.File
	for _, l := range listeners {
		f, err := l.(*net.TCPListener).File()
		if err != nil {
			closeFiles(files)
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// wait returns when a connection is waiting to be accepted, or ctx ends. It does not accept connections.
func (a *address) wait(ctx context.Context) {
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for _, f := range a.waiting {
		all.Go(func() {
			if conn, err := f.SyscallConn(); err == nil && conn.Read(isReadable) == nil {
				cancel()
			}
		})
	}
	<-ended.Done()
	for _, f := range a.waiting {
		_ = f.SetReadDeadline(time.Unix(1, 0)) // ends the wait for the other listener
	}
	all.Wait()
	for _, f := range a.waiting {
		_ = f.SetReadDeadline(time.Time{})
	}
}

// isReadable reports whether a connection is in a listener's queue. If it returns false, the runtime's poller waits for
// a connection and calls isReadable again.
func isReadable(fd uintptr) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if !errors.Is(err, unix.EINTR) {
			return n > 0 && err == nil
		}
	}
}

// close closes the address. Waiting connections are reset and later ones refused.
func (a *address) close() {
	_ = loopback.Close(a.listeners)
	closeFiles(a.waiting)
	if a.release != nil {
		a.release()
	}
	a.listeners, a.waiting, a.release = nil, nil, nil
}
