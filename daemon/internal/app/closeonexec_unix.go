//go:build unix

package app

import "syscall"

// closeOnExec prevents child processes from inheriting the descriptor.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(int(fd)) }
