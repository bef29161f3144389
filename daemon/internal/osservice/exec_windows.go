package osservice

import "syscall"

// closeOnExec keeps a handle from the programs that are started later.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(syscall.Handle(fd)) }
