// Package dialer finds this user's daemon, connects to its sockets and starts it if necessary. service-mcp imports it
// and must start fast, so it does not use gRPC, encoding/json, a command-line library or, where possible, net. It is
// independent of the protocols on the sockets.
package dialer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/service-dev/service/internal/fileowner"
	"github.com/service-dev/service/internal/programpath"
	"github.com/service-dev/service/internal/rendezvous"
)

// StartTimeout is the maximum wait for a daemon that this process or another client starts.
const StartTimeout = 20 * time.Second

// AnswerTimeout is the maximum wait for the first message of a running daemon.
const AnswerTimeout = 5 * time.Second

// Conn is one stream to the daemon. Close unblocks a pending Read. On Unix it is an *os.File.
type Conn = io.ReadWriteCloser

// Daemon describes the daemon of one state directory.
type Daemon struct {
	Paths rendezvous.Paths
	// Program is the path of serviced of this installation.
	Program string
	// Starter is the path of a program that calls StartDetached for StarterVerb, or empty if there is none. It starts
	// Program and exits immediately, so that the daemon is not a descendant of the client that started it. All of a
	// user's clients share the daemon, but agents kill the processes that they start together with all descendants.
	Starter string
}

// Find returns the daemon of this environment. Find it again for each connection: after an upgrade, its program may be
// in another folder.
func Find() (Daemon, error) {
	dir, err := rendezvous.Dir()
	if err != nil {
		return Daemon{}, directoryError(err)
	}
	paths, err := rendezvous.PathsOf(dir)
	if err != nil {
		return Daemon{}, directoryError(err)
	}
	program, err := programpath.Beside("serviced")
	if err != nil {
		return Daemon{}, err
	}
	return Daemon{Paths: paths, Program: program, Starter: starterBeside(program)}, nil
}

// WorkingDir returns the working directory with symbolic links resolved, so that the daemon need not resolve them, or
// "" if it is unknown.
func WorkingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// Dial connects to a socket of a running daemon (Paths.MCP or Paths.Control). It also finds the socket if it has
// another path in the environment in which the daemon was started. It returns ErrNotRunning,
// another *problem.Error or a system error.
func (d Daemon) Dial(socket string) (Conn, error) {
	if err := d.checkDirs(); err != nil {
		return nil, err
	}
	conn, err := dial(socket)
	if errors.Is(err, ErrNotRunning) {
		conn, err = d.dialRecorded(socket)
	}
	if errors.Is(err, errBacklog) {
		return nil, d.NotResponding()
	}
	return conn, err
}

// errBacklog means that the daemon's queue of pending connections is full.
var errBacklog = errors.New("the daemon does not accept connections")

// maxStarts is the maximum number of attempts to start a daemon.
const maxStarts = 3

// Connect dials the daemon and starts one if none is listening. Concurrent clients start only one daemon between them.
func (d Daemon) Connect(ctx context.Context, socket string) (Conn, error) {
	conn, err := d.dialPatiently(ctx, socket)
	if !errors.Is(err, ErrNotRunning) {
		return conn, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*StartTimeout)
	defer cancel()
	if err := d.prepare(); err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, filepath.Join(d.Paths.Run, rendezvous.StartLock))
	if err != nil {
		return nil, sandboxed(d.Paths.Dir, true, fmt.Errorf("acquire start lock: %w", err))
	}
	defer unlock()
	if conn, err = d.dialPatiently(ctx, socket); !errors.Is(err, ErrNotRunning) {
		return conn, err
	}
	// A start may fail because another daemon is still stopping, or because the new one is stopped before it is ready.
	for try := 1; ; try++ {
		startErr := d.start(ctx)
		if startErr != nil && !errors.Is(startErr, errNotReady) {
			return nil, startErr // the program could not be started
		}
		if conn, err = d.dialStarted(ctx, socket, startErr); err == nil || startErr == nil || try == maxStarts {
			return conn, err
		}
	}
}

// dialStarted connects after a start. It ignores a failed start while another daemon holds the directory: the service
// manager may just have started that daemon, or it may be about to stop.
func (d Daemon) dialStarted(ctx context.Context, socket string, startErr error) (Conn, error) {
	late := time.Now().Add(2 * time.Second)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 160*time.Millisecond) {
		conn, err := d.Dial(socket)
		switch {
		case err == nil:
			return conn, nil
		case startErr != nil && (!errors.Is(err, ErrNotRunning) || !d.Held()):
			return nil, startErr
		case startErr == nil && !errors.Is(err, ErrNotRunning):
			return nil, err
		case startErr == nil && time.Now().After(late):
			return nil, d.unreachable()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), startErr)
		case <-time.After(pause):
		}
	}
}

// prepare creates the state directory and its run directory with mode 0700.
func (d Daemon) prepare() error {
	var refused *fileowner.Error
	if err := fileowner.CheckNew(d.Paths.Dir); errors.As(err, &refused) {
		return unsafeError(d.Paths.Dir, refused.Reason, refused.Fix)
	}
	for _, dir := range []string{d.Paths.Dir, d.Paths.Run} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return sandboxed(d.Paths.Dir, true, err)
		}
	}
	return d.checkDirs()
}

// LogFile returns the path of the daemon's log.
func (d Daemon) LogFile() string {
	return filepath.Join(d.Paths.Dir, rendezvous.LogDir, rendezvous.LogName)
}

// PID returns the process id that the running daemon recorded, or 0.
func (d Daemon) PID() int { return d.record().pid() }

// Held reports whether a daemon holds the state directory. A daemon holds it from before it serves until it exits. Held
// does not block.
func (d Daemon) Held() bool {
	file, err := os.OpenFile(filepath.Join(d.Paths.Run, rendezvous.DaemonLock), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer file.Close() // releases the lock if it was free
	return isLocked(file)
}

// lock creates path and waits for an exclusive lock on it. The system releases the lock when the process exits.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	got := make(chan error)
	go func() { // ends when it acquires the lock, or with the process
		err := lockFile(file)
		select {
		case got <- err:
		case <-ctx.Done(): // release the lock: it is no longer wanted, and this process may run for a long time
			file.Close()
		}
	}()
	select {
	case err = <-got:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}
