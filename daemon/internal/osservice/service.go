package osservice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/rendezvous"
)

// Codes of the errors that a person can do something about.
const (
	CodeNoManager    = "no_service_manager" // there is none, or none answers for this user
	CodeNotInstalled = "service_not_installed"
	CodeProgram      = "program_missing"
	CodeRefused      = "service_manager_refused" // it answered with an error
	CodeFile         = "service_file"            // its file cannot be written, or is another's
	CodeUnsupported  = "service_unsupported"     // not on this system, or not for this directory
)

// Error is a refusal with its next step.
type Error struct{ Code, Message, FixHint string }

func (e *Error) Error() string { return e.Message }

// States of an installed service.
const (
	StateAbsent    = "not_installed"
	StateStopped   = "stopped"   // installed; neither the daemon runs nor does anybody listen for it
	StateListening = "listening" // the next client starts the daemon
	StateRunning   = "running"
	StateFailed    = "failed"
	StateUnknown   = "unknown" // installed, but the service manager does not tell
)

// What an action did to the files.
const (
	Created   = "created"
	Updated   = "updated" // there were files with other content
	Unchanged = "unchanged"
	Removed   = "removed"
)

// Report is a service as its manager knows it.
type Report struct {
	// System is systemd, launchd or task scheduler; Name is what the service is called there.
	System string `json:"system"`
	Name   string `json:"name"`
	State  string `json:"state"`
	// Change is what install or uninstall did; empty for the other actions.
	Change string `json:"change,omitempty"`
	// AtLogin tells that it comes up with the next login.
	AtLogin bool     `json:"atLogin"`
	Files   []string `json:"files"`
	// Program is the daemon that the service names; ProgramMissing tells that it is not there any more.
	Program        string `json:"program,omitempty"`
	ProgramMissing bool   `json:"programMissing"`
	// Outdated tells that install would write something else.
	Outdated bool `json:"outdated"`
	PID      int  `json:"pid,omitempty"`
	// Detail is what the manager says of a failure.
	Detail string `json:"detail,omitempty"`
}

// manager is one system's service manager.
type manager interface {
	install(ctx context.Context) (Report, error)
	uninstall(ctx context.Context) (Report, error)
	start(ctx context.Context) (Report, error)
	stop(ctx context.Context) (Report, error)
	status(ctx context.Context) (Report, error)
}

// Actions are the words that Control takes.
var Actions = []string{"install", "uninstall", "start", "stop", "status"}

// Control does one of Actions for the daemon of the state directory that the environment names. Errors that a person can
// do something about are *Error.
func Control(ctx context.Context, action string) (Report, error) {
	m, err := system()
	if err != nil {
		return Report{}, err
	}
	do, ok := actions(m)[action]
	if !ok {
		return Report{}, fmt.Errorf("no such action: %q", action)
	}
	return do(ctx)
}

// actions are what a manager does, by the words of Actions.
func actions(m manager) map[string]func(context.Context) (Report, error) {
	return map[string]func(context.Context) (Report, error){
		"install": m.install, "uninstall": m.uninstall, "start": m.start, "stop": m.stop, "status": m.status,
	}
}

// daemon is what a service manager has to run.
type daemon struct {
	name    string // serviced, with a suffix for a directory that is not the default one
	program string
	home    string
	paths   rendezvous.Paths
	usual   bool // the default directory
}

// describe finds the daemon of this environment, with this executable as its program.
func describe() (daemon, error) {
	dir, err := rendezvous.Dir()
	if err != nil {
		return daemon{}, err
	}
	paths, err := rendezvous.PathsOf(filepath.Clean(dir))
	if err != nil {
		return daemon{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return daemon{}, fmt.Errorf("finding the own executable: %w", err)
	}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		program = real
	}
	home, err := rendezvous.Home()
	if err != nil {
		return daemon{}, &Error{CodeFile, err.Error(), "set HOME to an absolute path"}
	}
	d := daemon{name: Name, program: program, home: home, paths: paths, usual: paths.Dir == filepath.Join(home, ".service")}
	if !d.usual { // two directories are two daemons
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(paths.Dir))
		d.name = fmt.Sprintf("%s-%08x", Name, sum.Sum32())
	}
	return d, nil
}

// system is the service manager of this computer.
func system() (manager, error) {
	d, err := describe()
	if err != nil {
		return nil, err
	}
	switch runtime.GOOS {
	case "linux":
		return newSystemd(d, os.Getenv("XDG_CONFIG_HOME"), execute), nil
	case "darwin":
		return newLaunchd(d, os.Getuid(), execute), nil
	case "windows":
		return newScheduler(d, accountName(), execute), nil
	}
	return nil, &Error{CodeUnsupported, "there is no service for " + runtime.GOOS, "nothing is lost: any client starts the daemon on demand"}
}

// there tells whether a program can be run.
func there(program string) bool {
	info, err := os.Stat(program)
	return err == nil && info.Mode().IsRegular()
}

// own reads a file that install wrote, in which sign stands; fs.ErrNotExist when there is none. Any other file in that
// place is the person's: it is refused, and is neither read as ours nor written nor removed.
func own(path, sign string) ([]byte, error) {
	data, err := statefile.Read(path, maxUnit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, err
	case errors.Is(err, statefile.ErrSymlink):
		return nil, &Error{CodeFile, err.Error(), unlinkHint(path, sign)}
	case err != nil:
		return nil, &Error{CodeFile, err.Error(), "move " + path + " away, then try again"}
	case !bytes.Contains(data, []byte(sign)):
		return nil, &Error{CodeFile, path + " was not written by `servicectl service install`", "move it away, then try again"}
	}
	return data, nil
}

// unlinkHint tells what to do about a link in the place of a file of ours; systemd's masks are links.
func unlinkHint(path, sign string) string {
	if sign == unitSign {
		return "move " + path + " away, or run `systemctl --user unmask " + filepath.Base(path) + "` if that is what it is"
	}
	return "move " + path + " away, then try again"
}

// nothing is the answer when there is nothing to remove.
func nothing() error {
	return &Error{CodeNotInstalled, "the service is not installed", "nothing is left to do"}
}

// absent is the answer to an action on a service that is not installed.
func absent() error {
	return &Error{CodeNotInstalled, "the service is not installed", "run `servicectl service install`"}
}
