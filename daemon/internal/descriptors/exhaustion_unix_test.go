//go:build unix

package descriptors

import "syscall"

func exhaustion() error { return syscall.EMFILE }
