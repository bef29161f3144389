package osservice

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// leaveConsole closes the window that the Task Scheduler opens for a console program.
func leaveConsole() {
	_, _, _ = windows.NewLazySystemDLL("kernel32.dll").NewProc("FreeConsole").Call()
}

// closeOnExec prevents child processes from inheriting a handle.
func closeOnExec(fd uintptr) { syscall.CloseOnExec(syscall.Handle(fd)) }
