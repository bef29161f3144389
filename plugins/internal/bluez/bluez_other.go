//go:build !linux

package bluez

import (
	"context"

	"github.com/service-dev/service/internal/problem"
)

// Radio is a connection to BlueZ, which exists only on Linux.
type Radio struct{}

// Open fails with CodeNoBluetooth.
func Open(context.Context, Options) (*Radio, error) {
	return nil, &problem.Error{Code: problem.CodeNoBluetooth,
		Message: "on this system the service can use Bluetooth only through a browser",
		FixHint: "Connect the glasses through a browser: set via to browser."}
}

// Close does nothing.
func (*Radio) Close() {}

// Scan fails.
func (*Radio) Scan(context.Context, Filter, func(Found)) error { return ErrClosed }

// Searched returns "".
func (*Radio) Searched(context.Context) string { return "" }

// Connect fails.
func (*Radio) Connect(context.Context, Target) (*Conn, error) { return nil, ErrClosed }

// Conn is a connection. It cannot be created on this system.
type Conn struct{}

// Notifications returns nil.
func (*Conn) Notifications() <-chan []byte { return nil }

// Done returns nil.
func (*Conn) Done() <-chan struct{} { return nil }

// Err returns ErrClosed.
func (*Conn) Err() error { return ErrClosed }

// MTU returns the minimum.
func (*Conn) MTU() int { return minMTU }

// Dropped returns 0.
func (*Conn) Dropped() int { return 0 }

// Write fails.
func (*Conn) Write(context.Context, []byte, bool) error { return ErrClosed }

// Close does nothing.
func (*Conn) Close() {}
