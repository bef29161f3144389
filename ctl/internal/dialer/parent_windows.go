package dialer

import "golang.org/x/sys/windows"

// awaitExit waits until the parent exits. A process with the same id that started after this one is not the parent.
func awaitExit(parent int) bool {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false,
		uint32(parent))
	if err != nil {
		return err == windows.ERROR_INVALID_PARAMETER // the process no longer exists
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if begun(process) > begun(windows.CurrentProcess()) {
		return true
	}
	_, err = windows.WaitForSingleObject(process, windows.INFINITE)
	return err == nil
}

// begun returns a process's start time in Unix nanoseconds, or 0 if it is unknown.
func begun(process windows.Handle) int64 {
	var made, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(process, &made, &ended, &kernel, &user) != nil {
		return 0
	}
	return made.Nanoseconds()
}
