//go:build !unix

package descriptors

import (
	"errors"
	"syscall"
)

// limit is 0: handles are as many as memory allows.
func limit() int { return 0 }

// wsaEMFILE is Winsock's refusal for want of a socket.
const wsaEMFILE = syscall.Errno(10024)

// Exhausted reports whether an accept failed for want of a socket.
func Exhausted(err error) bool { return errors.Is(err, wsaEMFILE) }
