package reach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// dial uses net: Windows 10 and later have Unix sockets, and Winsock is not worth speaking by hand.
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
		return &SandboxError{Path: path, Directory: directory, Err: err}
	}
	return err
}

// checkDirs refuses links; who may write is the profile directory's access list, which is the user's own.
func (d Daemon) checkDirs() error {
	for _, dir := range []string{d.Paths.Dir, d.Paths.Run} {
		info, err := os.Lstat(dir)
		if err == nil && info.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0 {
			return &UnsafeError{Path: dir, Reason: "it is a link", Fix: "set SERVICE_CONFIG_DIR to the real directory"}
		}
	}
	return nil
}

func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	got := make(chan error)
	go func() { // ends with the lock, at the latest with the process
		deliver(ctx, got, windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped)), file)
	}()
	select {
	case err = <-got:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// held tells whether another process has the lock on path, which it does not create.
func held(path string) bool {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer file.Close() // which lets go
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return errors.Is(windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, new(windows.Overlapped)), windows.ERROR_LOCK_VIOLATION)
}

// spawn starts the daemon without a console. The readiness pipe is inherited as a handle whose number it is told.
func spawn(path string, argv, env []string, stdio []*os.File, ready *os.File) (*os.Process, error) {
	handle := syscall.Handle(ready.Fd())
	if err := windows.SetHandleInformation(windows.Handle(handle), windows.HANDLE_FLAG_INHERIT, windows.HANDLE_FLAG_INHERIT); err != nil {
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

// Exec runs another program with this one's stdio and ends with its exit code. It returns only on error.
func Exec(path string, argv []string) error {
	process, err := os.StartProcess(path, argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return fmt.Errorf("running %s: %w", path, err)
	}
	state, err := process.Wait()
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", path, err)
	}
	os.Exit(state.ExitCode())
	return nil
}
