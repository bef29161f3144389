// Package reach finds the daemon of this user, dials its sockets and starts it when it is not there.
// It is imported by the shim, whose start-up is package initialisation: no gRPC, no encoding/json, no command line
// and no net where the platform allows. It knows nothing of what is said over a socket.
package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/proto/rendezvous"
)

// StartTimeout bounds the wait for a daemon that this process starts, or that another client is starting.
const StartTimeout = 20 * time.Second

// AnswerTimeout bounds the wait for the first word of a daemon that runs.
const AnswerTimeout = 5 * time.Second

// Conn is one stream to the daemon. Close unblocks a pending Read. On Unix it is an *os.File.
type Conn = io.ReadWriteCloser

// Daemon is where the daemon of one state directory is to be met.
type Daemon struct {
	Paths rendezvous.Paths
	// Program is the path of serviced: beside the running executable.
	Program string
	// Starter is the path of a program that calls StartDetached for StarterVerb; empty for none. It starts Program and ends
	// at once, so that the daemon, which all of a person's clients share, is no descendant of the one that started it:
	// agents end the processes that they started with all that these have started.
	Starter string
}

// Find computes the places from the environment. It touches nothing on disk besides reading its own path.
func Find() (Daemon, error) {
	dir, err := rendezvous.Dir()
	if err != nil {
		return Daemon{}, err
	}
	paths, err := rendezvous.PathsOf(dir)
	if err != nil {
		return Daemon{}, err
	}
	program, err := Beside("serviced")
	if err != nil {
		return Daemon{}, err
	}
	return Daemon{Paths: paths, Program: program, Starter: starterBeside(program)}, nil
}

// Beside is the path of a program of ours that lies in the folder of the running one. It need not exist.
func Beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the own executable: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// WorkingDir is the working directory by its one real name, so that the daemon need not look at it; empty when it cannot
// be found.
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

// ErrNotRunning says that nobody listens.
var ErrNotRunning = errors.New("the daemon is not running")

// SandboxError says that this process may not use the daemon's socket or directory: a sandbox forbids it. Trying again
// or starting a daemon does not help.
type SandboxError struct {
	// Path is what has to be allowed.
	Path string
	// Directory is true when it is the state directory itself that may not be written.
	Directory bool
	Err       error
}

func (e *SandboxError) Error() string {
	if e.Directory {
		return "using the state directory " + e.Path + ": " + e.Err.Error()
	}
	return "connecting to " + e.Path + ": " + e.Err.Error()
}

func (e *SandboxError) Unwrap() error { return e.Err }

// Setting is what the person can do about it, as one sentence.
func (e *SandboxError) Setting() string {
	if e.Directory {
		return "allow writes to " + e.Path + " in the sandbox's settings (writable paths), or set SERVICE_CONFIG_DIR to a directory that may be written"
	}
	return "allow the Unix socket " + e.Path + " in the sandbox's settings (allowed Unix sockets, or network access for local commands)"
}

// NotRespondingError says that a daemon holds the directory and does not answer: it is stopped, or it hangs.
type NotRespondingError struct {
	// PID is the daemon's process; 0 when it cannot be told.
	PID int
}

func (e *NotRespondingError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("the daemon did not answer within %s", AnswerTimeout)
	}
	return fmt.Sprintf("the daemon (pid %d) did not answer within %s", e.PID, AnswerTimeout)
}

// Fix is what ends that, as one sentence.
func (e *NotRespondingError) Fix() string {
	return "run `servicectl daemon restart`: it ends the process that does not answer and starts a new daemon, with which connected agents go on"
}

// NotResponding names the daemon that does not answer.
func (d Daemon) NotResponding() *NotRespondingError { return &NotRespondingError{PID: d.PID()} }

// UnsafeError says that a directory does not belong to this user alone.
type UnsafeError struct{ Path, Reason, Fix string }

func (e *UnsafeError) Error() string { return "refusing " + e.Path + ": " + e.Reason }

// StartError says why a daemon did not come up.
type StartError struct {
	Reason string
	// Log is where the daemon writes.
	Log string
}

func (e *StartError) Error() string { return "starting the daemon: " + e.Reason }

// Dial connects to a socket of the daemon (Paths.MCP or Paths.Control) and starts nothing. Errors: ErrNotRunning,
// *SandboxError, *UnsafeError, or what the system said.
func (d Daemon) Dial(socket string) (Conn, error) {
	if err := d.checkDirs(); err != nil {
		return nil, err
	}
	conn, err := dial(socket)
	if errors.Is(err, errBacklog) {
		return nil, d.NotResponding()
	}
	return conn, err
}

// errBacklog says that so many connections wait for the daemon that there is no room for one more.
var errBacklog = errors.New("the daemon accepts no connection")

// maxStarts is how often in a row a daemon is started that does not come up.
const maxStarts = 3

// Connect dials and, when nobody listens, starts a daemon: many clients at once give one.
func (d Daemon) Connect(ctx context.Context, socket string) (Conn, error) {
	conn, err := d.Dial(socket)
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
		return nil, sandboxed(d.Paths.Dir, true, fmt.Errorf("taking the start lock: %w", err))
	}
	defer unlock()
	if conn, err = d.Dial(socket); !errors.Is(err, ErrNotRunning) {
		return conn, err
	}
	// A start may fail because another daemon is just ending, or because the new one is ended before it is ready.
	for try := 1; ; try++ {
		startErr := d.start(ctx)
		var failed *StartError
		if startErr != nil && (!errors.As(startErr, &failed) || failed.Log == "") {
			return nil, startErr // it never ran
		}
		if conn, err = d.dialStarted(ctx, socket, startErr); err == nil || startErr == nil || try == maxStarts {
			return conn, err
		}
	}
}

// dialStarted connects after a start. One that failed is forgiven while another daemon holds the directory: that one
// comes up (the system's service manager started it a moment ago), or it is ending, and gives way.
func (d Daemon) dialStarted(ctx context.Context, socket string, startErr error) (Conn, error) {
	late := time.Now().Add(2 * time.Second)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 160*time.Millisecond) {
		conn, err := d.Dial(socket)
		switch {
		case err == nil:
			return conn, nil
		case startErr != nil && (!errors.Is(err, ErrNotRunning) || !d.Held()):
			return nil, startErr
		case startErr == nil && (!errors.Is(err, ErrNotRunning) || time.Now().After(late)):
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), startErr)
		case <-time.After(pause):
		}
	}
}

// prepare makes the state directory and its run folder, 0700.
func (d Daemon) prepare() error {
	for _, dir := range []string{d.Paths.Dir, d.Paths.Run} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return sandboxed(d.Paths.Dir, true, err)
		}
	}
	return d.checkDirs()
}

// LogFile is where the daemon logs.
func (d Daemon) LogFile() string {
	return filepath.Join(d.Paths.Dir, rendezvous.LogDir, rendezvous.LogName)
}

// PID is the process that the running daemon wrote down; 0 when it cannot be told.
func (d Daemon) PID() int {
	data, err := os.ReadFile(filepath.Join(d.Paths.Run, rendezvous.DaemonRecord))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), `"pid":`) // encoding/json is too dear for the shim
	number, _, _ := strings.Cut(rest, ",")
	pid, err := strconv.Atoi(strings.TrimRight(strings.TrimSpace(number), "}"))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// Held tells whether a daemon holds the directory, which it does from before it serves until after it has ended. It
// answers at once.
func (d Daemon) Held() bool {
	return held(filepath.Join(d.Paths.Run, rendezvous.DaemonLock))
}

// deliver tells how waiting for a lock ended. A lock that nobody waits for any more is let go: this process may live
// long.
func deliver(ctx context.Context, got chan<- error, err error, file *os.File) {
	select {
	case got <- err:
	case <-ctx.Done():
		file.Close()
	}
}
