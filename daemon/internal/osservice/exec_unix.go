//go:build unix

package osservice

import "syscall"

// closeOnExec keeps a descriptor from the programs that are started later.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(int(fd)) }
