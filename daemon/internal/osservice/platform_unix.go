//go:build unix

package osservice

import "syscall"

func leaveConsole() {}

// closeOnExec keeps a descriptor from child processes.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(int(fd)) }
