// Package loopback decides which hosts are this machine, and listens on one port of both loopback addresses, for the
// embedded backend or for the daemon on the backend's behalf. All users of a machine share these addresses, so the
// package also checks which user owns the other end of a connection. A listener for one user must refuse other users'
// connections when it accepts them, before it reads a byte.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// Listen listens on the port on 127.0.0.1 and, if available, on ::1, in this order. Browsers may use either address for
// localhost, so a port must be free on both. If port is 0 or in use, Listen chooses another one.
func Listen(ctx context.Context, port int) ([]net.Listener, error) {
	available := hosts(ctx)
	const tries = 10
	for try := 1; ; try++ {
		listeners, err := listenAll(ctx, available, port)
		if err == nil {
			return listeners, nil
		}
		if try == tries || ctx.Err() != nil {
			return nil, fmt.Errorf("listen on loopback: %w", err)
		}
		port = 0
	}
}

// ListenExactly is like Listen, but returns an error if the port is not free on every loopback address.
func ListenExactly(ctx context.Context, port int) ([]net.Listener, error) {
	listeners, err := listenAll(ctx, hosts(ctx), port)
	if err != nil {
		return nil, fmt.Errorf("%w; browsers use any loopback address for localhost, so the port must be free on all of "+
			"them: stop the other program, or choose another port", err)
	}
	return listeners, nil
}

// hosts returns the loopback addresses of this system.
func hosts(ctx context.Context) []string {
	if probe, err := listenOn(ctx, "::1", 0); err == nil {
		probe.Close()
		return []string{"127.0.0.1", "::1"}
	}
	return []string{"127.0.0.1"}
}

// listenAll listens on one port on every host.
func listenAll(ctx context.Context, hosts []string, port int) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, host := range hosts {
		l, err := listenOn(ctx, host, port)
		if err != nil {
			return nil, errors.Join(err, Close(listeners))
		}
		port = Port(l)
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func listenOn(ctx context.Context, host string, port int) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

// Port returns the port of a TCP listener.
func Port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// Close closes all listeners.
func Close(listeners []net.Listener) error {
	var err error
	for _, l := range listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// ReadPort reads a decimal port from a file. It returns 0 if the file does not contain a usable port.
func ReadPort(file string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || port < 1024 || port > 65535 {
		return 0
	}
	return port
}
