//go:build !unix

package descriptors

import (
	"errors"
	"syscall"
)

// limit is 0: the number of handles is limited by memory only.
func limit() int { return 0 }

// wsaEMFILE is Winsock's error when there are no more sockets.
const wsaEMFILE = syscall.Errno(10024)

// Exhausted reports whether an accept failed because there are no more sockets.
func Exhausted(err error) bool { return errors.Is(err, wsaEMFILE) }
