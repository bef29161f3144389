package dialer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// dial uses package net. Windows has supported Unix sockets since version 10.
func dial(path string) (Conn, error) {
	conn, err := net.Dial("unix", path)
	if err == nil {
		return conn, nil
	}
	if errors.Is(err, windows.WSAECONNREFUSED) || errors.Is(err, os.ErrNotExist) || errors.Is(err, windows.WSAENETDOWN) {
		return nil, ErrNotRunning
	}
	if _, statErr := os.Lstat(path); errors.Is(statErr, os.ErrNotExist) {
		return nil, ErrNotRunning
	}
	return nil, sandboxed(path, false, err)
}

func sandboxed(path string, directory bool, err error) error {
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.WSAEACCES) {
		return sandboxError(path, directory, err)
	}
	return err
}

// checkDirs refuses symbolic links. Write access is controlled by the access list of the profile directory, which only
// this user can change.
func (d Daemon) checkDirs() error {
	for _, dir := range []string{d.Paths.Dir, d.Paths.Run} {
		info, err := os.Lstat(dir)
		if err == nil && info.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0 {
			return unsafeError(dir, "it is a link", "Set SERVICE_CONFIG_DIR to the real directory.")
		}
	}
	return nil
}

// lockFile waits for an exclusive lock.
func lockFile(file *os.File) error {
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped))
}

// isLocked reports whether another process holds the lock.
func isLocked(file *os.File) bool {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}

// spawn starts the daemon without a console. The daemon inherits the readiness pipe as a handle and finds its number in
// the environment.
func spawn(path string, argv, env []string, stdio []*os.File, ready *os.File) (*os.Process, error) {
	handle := syscall.Handle(ready.Fd())
	if err := windows.SetHandleInformation(windows.Handle(handle), windows.HANDLE_FLAG_INHERIT,
		windows.HANDLE_FLAG_INHERIT); err != nil {
		return nil, err
	}
	return os.StartProcess(path, argv, &os.ProcAttr{
		Env:   append(env, readyPair(strconv.FormatUint(uint64(handle), 10))),
		Files: stdio,
		Sys: &syscall.SysProcAttr{
			HideWindow:                 true,
			CreationFlags:              windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS,
			AdditionalInheritedHandles: []syscall.Handle{handle},
		},
	})
}

// Exec runs another program with this process's stdio and exits with its exit code. It returns only on error.
func Exec(path string, argv []string) error {
	process, err := os.StartProcess(path, argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	state, err := process.Wait()
	if err != nil {
		return fmt.Errorf("wait for %s: %w", path, err)
	}
	os.Exit(state.ExitCode())
	return nil
}
