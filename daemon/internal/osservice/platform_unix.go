//go:build unix

package osservice

import "syscall"

func leaveConsole() {}

// closeOnExec prevents child processes from inheriting a descriptor.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(int(fd)) }
