//go:build unix

package dialer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/service-dev/service/internal/fileowner"
	"github.com/service-dev/service/internal/rendezvous"
)

// dial uses system calls, because package net adds a megabyte to service-mcp. The descriptor is non-blocking, so that
// os.File polls it and Close unblocks a Read.
func dial(path string) (Conn, error) {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, sandboxed(path, false, os.NewSyscallError("socket", err))
	}
	// connect blocks while the daemon's queue of connections is full; the send timeout limits that.
	wait := syscall.NsecToTimeval(AnswerTimeout.Nanoseconds())
	_ = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &wait)
	for {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, dialError(path, err)
	}
	if err := checkPeer(fd, path, os.Getuid()); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return nil, os.NewSyscallError("setnonblock", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// checkPeer refuses a socket on which another user listens, because that user may have replaced the socket or a
// directory above it. It accepts root, because a service manager that listens for the daemon runs as root.
func checkPeer(fd int, path string, own int) error {
	uid, ok := peerUID(fd)
	if !ok || uid == own || uid == 0 {
		return nil
	}
	return unsafeError(path, fmt.Sprintf("uid %d listens on it, not you (uid %d)", uid, own),
		"Set SERVICE_CONFIG_DIR to a directory of your own whose parent directories only you and root can write to.")
}

func dialError(path string, err error) error {
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOTDIR) {
		return ErrNotRunning
	}
	if errors.Is(err, syscall.EAGAIN) {
		return errBacklog
	}
	return sandboxed(path, false, os.NewSyscallError("connect", err))
}

// sandboxed converts a permission error of the system and an error about an impossible path to a *problem.Error. It
// returns other errors unchanged.
func sandboxed(path string, directory bool, err error) error {
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EROFS):
		return sandboxError(path, directory, err)
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return directoryError(err)
	}
	return err
}

// checkDirs returns an error for directories that other users control. It accepts missing directories.
func (d Daemon) checkDirs() error {
	dirs := []string{d.Paths.Dir, d.Paths.Run}
	if d.Paths.Sockets != d.Paths.Run {
		dirs = append(dirs, filepath.Dir(d.Paths.Sockets), d.Paths.Sockets)
	}
	for _, dir := range dirs {
		if err := cmp.Or(checkDir(dir), checkAncestors(dir)); err != nil {
			return err
		}
	}
	return nil
}

// checkAncestors returns an error if other users could replace dir.
func checkAncestors(dir string) error {
	var found *fileowner.Error
	if !errors.As(fileowner.CheckAncestors(dir), &found) {
		return nil
	}
	return unsafeError(dir, found.Reason, "Run "+found.Fix+", or set SERVICE_CONFIG_DIR to a directory "+
		"whose parent directories only you and root can write to.")
}

func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return sandboxed(dir, true, err)
	case info.Mode()&os.ModeSymlink != 0:
		return unsafeError(dir, "it is a symbolic link",
			"Set SERVICE_CONFIG_DIR to the real directory, or replace the link by a directory of your own.")
	case !info.IsDir():
		return unsafeError(dir, "it is not a directory", "Move it away, or set SERVICE_CONFIG_DIR to a directory.")
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Getuid() {
		return unsafeError(dir, fmt.Sprintf("it belongs to uid %d, not to you (uid %d)", stat.Uid, os.Getuid()),
			"Run "+fileowner.ChownHint(dir)+", if it is yours; otherwise run this program as its owner, or set "+
				"SERVICE_CONFIG_DIR to a directory of your own.")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return unsafeError(dir, fmt.Sprintf("others may write to it (mode %04o)", info.Mode().Perm()),
			"Run chmod 700 "+dir+".")
	}
	return nil
}

// lockFile waits for an exclusive kernel lock.
func lockFile(file *os.File) error {
	for {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != syscall.EINTR {
			return os.NewSyscallError("flock", err)
		}
	}
}

// isLocked reports whether another process holds the lock.
func isLocked(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == syscall.EWOULDBLOCK
}

// spawn starts the daemon in its own session, with the readiness pipe as descriptor 3.
func spawn(path string, argv, env []string, stdio []*os.File, ready *os.File) (*os.Process, error) {
	return os.StartProcess(path, argv, &os.ProcAttr{
		Dir:   "/",
		Env:   append(env, readyPair(strconv.Itoa(rendezvous.ReadyFD))),
		Files: append(stdio, ready),
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
}

// Exec replaces this process with another program, which inherits its stdio and environment. It returns only on error.
func Exec(path string, argv []string) error {
	if err := syscall.Exec(path, argv, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
