//go:build unix

package descriptors

import (
	"errors"
	"math"
	"syscall"
)

// limit returns how many files the process may open, or 0 if unknown. The runtime has raised the limit to the system's
// maximum.
func limit() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	if r.Cur > math.MaxInt32 { // unlimited, for any integer type that the system uses
		return math.MaxInt32
	}
	return int(r.Cur)
}

// Exhausted reports whether an accept failed because no descriptor is free.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
