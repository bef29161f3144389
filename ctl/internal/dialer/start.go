package dialer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/service-dev/service/internal/rendezvous"
)

// maxCrashLog is the size in bytes above which the crash log is truncated.
const maxCrashLog = 1 << 20

// start runs `serviced run` in its own session and waits until it is ready. The caller must hold the start lock.
func (d Daemon) start(ctx context.Context) error {
	if _, err := os.Stat(d.Program); errors.Is(err, os.ErrNotExist) {
		return d.Missing()
	} else if err != nil {
		return startError(err, true)
	}
	ready, told, err := os.Pipe()
	if err != nil {
		return startError(err, false)
	}
	defer ready.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		told.Close()
		return startError(err, false)
	}
	defer null.Close()
	stderr := d.crashLog(null)
	err = d.run(daemonEnv(d.Paths.Dir), []*os.File{null, null, stderr}, told)
	told.Close()
	if stderr != null {
		stderr.Close()
	}
	if err != nil {
		return startError(err, true)
	}
	return d.awaitReady(ctx, ready)
}

// run starts the daemon through the starter, or directly if the starter is missing or fails. It returns an error only
// if the direct start fails.
func (d Daemon) run(env []string, stdio []*os.File, ready *os.File) error {
	if d.Starter != "" {
		starter, err := spawn(d.Starter, []string{d.Starter, StarterVerb, d.Program}, env, stdio, ready)
		if err == nil {
			if state, err := starter.Wait(); err == nil && state.Success() {
				return nil
			}
		}
	}
	process, err := spawn(d.Program, []string{d.Program, "run"}, env, stdio, ready)
	if err != nil {
		return err
	}
	go func() { _, _ = process.Wait() }() // service-mcp may outlive the daemon, which must not become a zombie
	return nil
}

// crashLog opens the file for the daemon's stderr, such as a panic. If that fails it returns the null device.
func (d Daemon) crashLog(null *os.File) *os.File {
	dir := filepath.Dir(d.LogFile())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return null
	}
	path := filepath.Join(dir, "serviced.stderr")
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxCrashLog {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return null
	}
	return file
}

// awaitReady reads the readiness line (rendezvous.ReadyFD).
func (d Daemon) awaitReady(ctx context.Context, ready io.ReadCloser) error {
	line := make(chan string, 1)
	go func() { line <- readLine(ready) }()
	timer := time.NewTimer(StartTimeout)
	defer timer.Stop()
	select {
	case text := <-line:
		return d.verdict(text)
	case <-timer.C:
		ready.Close()
		return d.notReady(fmt.Sprintf("not ready within %s", StartTimeout), false)
	case <-ctx.Done():
		ready.Close()
		return ctx.Err()
	}
}

func (d Daemon) verdict(text string) error {
	if text == "ready" {
		return nil
	}
	if reason, ok := strings.CutPrefix(text, "error: "); ok {
		return d.notReady(reason, true)
	}
	return d.notReady("it exited before it was ready", false)
}

// readLine reads up to the first newline, at most 4 KB.
func readLine(r io.Reader) string {
	var buf [4096]byte
	n := 0
	for n < len(buf) {
		m, err := r.Read(buf[n:])
		if i := strings.IndexByte(string(buf[n:n+m]), '\n'); i >= 0 {
			return string(buf[:n+i])
		}
		n += m
		if err != nil {
			break
		}
	}
	return string(buf[:n])
}

// kept lists the environment variables that a daemon inherits at its start, in addition to LC_* and XDG_*. Each
// request contains the values of all other variables.
var kept = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "SHELL",
	"DBUS_SYSTEM_BUS_ADDRESS", // set for Bluetooth if the bus is not at the usual address
	// Windows
	"SystemRoot", "SystemDrive", "USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA", "ProgramData", "TEMP", "TMP",
	"PATHEXT", "ComSpec",
}

// daemonEnv returns the daemon's environment: its state directory and the variables that every program needs.
func daemonEnv(dir string) []string {
	env := []string{"SERVICE_CONFIG_DIR=" + dir}
	for _, name := range kept {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, pair := range os.Environ() {
		if strings.HasPrefix(pair, "LC_") || strings.HasPrefix(pair, "XDG_") {
			env = append(env, pair)
		}
	}
	return env
}

// readyPair returns the variable assignment that names the daemon's readiness descriptor.
func readyPair(fd string) string { return rendezvous.ReadyVar + "=" + fd }
