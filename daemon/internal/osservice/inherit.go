package osservice

import (
	"fmt"
	"net"
	"os"
	"strconv"
)

// Variables in which systemd describes the descriptors that it passes (sd_listen_fds(3)).
const (
	listenPID   = "LISTEN_PID"
	listenFDs   = "LISTEN_FDS"
	listenNames = "LISTEN_FDNAMES"
	firstFD     = 3
	maxFDs      = 64
)

// Inherited returns the Unix sockets on which the service manager listens for this process, by path. The map is empty
// without socket activation. Child processes inherit neither the sockets nor the variables. It returns an error for a
// descriptor that is not a listening Unix socket, because the unit then does not match the program. Closing a listener
// does not remove its file, which belongs to the service manager.
func Inherited() (map[string]*net.UnixListener, error) {
	pid, n := os.Getenv(listenPID), os.Getenv(listenFDs)
	for _, name := range []string{listenPID, listenFDs, listenNames} {
		_ = os.Unsetenv(name)
	}
	count, ok := passed(pid, n, os.Getpid())
	if !ok {
		return nil, nil
	}
	found := make(map[string]*net.UnixListener, count)
	for fd := firstFD; fd < firstFD+count; fd++ {
		closeOnExec(uintptr(fd))
		l, err := listener(fd)
		if err != nil {
			for _, open := range found {
				_ = open.Close()
			}
			return nil, fmt.Errorf("use descriptor %d of the service manager: %w", fd, err)
		}
		found[l.Addr().String()] = l
	}
	return found, nil
}

// passed returns the number of descriptors that the service manager passed to the process self.
func passed(pid, n string, self int) (count int, ok bool) {
	if p, err := strconv.Atoi(pid); err != nil || p != self {
		return 0, false
	}
	count, err := strconv.Atoi(n)
	return count, err == nil && count > 0 && count <= maxFDs
}

// listener returns a listener on a copy of the descriptor, and closes the original.
func listener(fd int) (*net.UnixListener, error) {
	file := os.NewFile(uintptr(fd), "inherited")
	if file == nil {
		return nil, os.ErrInvalid
	}
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	u, ok := l.(*net.UnixListener)
	if !ok {
		_ = l.Close()
		return nil, fmt.Errorf("%s must be a Unix socket", l.Addr().Network())
	}
	u.SetUnlinkOnClose(false)
	return u, nil
}
