//go:build unix

package descriptors

import (
	"errors"
	"math"
	"syscall"
)

// limit returns how many files the process may open; 0 if unknown. The runtime has raised it to the system's maximum.
func limit() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	if r.Cur > math.MaxInt32 { // unlimited, whichever integer type the system uses
		return math.MaxInt32
	}
	return int(r.Cur)
}

// Exhausted reports whether an accept failed because there are no more descriptors.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
