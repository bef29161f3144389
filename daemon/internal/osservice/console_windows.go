package osservice

import "golang.org/x/sys/windows"

// leaveConsole closes the window that the Task Scheduler opens for a program of the console.
func leaveConsole() {
	_, _, _ = windows.NewLazySystemDLL("kernel32.dll").NewProc("FreeConsole").Call()
}
