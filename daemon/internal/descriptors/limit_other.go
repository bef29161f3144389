//go:build !unix

package descriptors

import (
	"errors"
	"syscall"
)

// limit returns 0, because only memory limits the number of handles.
func limit() int { return 0 }

// wsaEMFILE is the Winsock error for too many open sockets.
const wsaEMFILE = syscall.Errno(10024)

// Exhausted reports whether an accept failed because there are too many open sockets.
func Exhausted(err error) bool { return errors.Is(err, wsaEMFILE) }
