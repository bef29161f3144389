package osservice

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/programpath"
	"github.com/service-dev/service/internal/rendezvous"
)

// States of an installed service.
const (
	StateAbsent    = "not_installed"
	StateStopped   = "stopped"   // installed, but the daemon is not running and its sockets are not open
	StateListening = "listening" // the next client starts the daemon
	StateRunning   = "running"
	StateFailed    = "failed"
	StateUnknown   = "unknown" // installed, but the service manager does not report the state
)

// Changes that install and uninstall report.
const (
	Created   = "created"
	Updated   = "updated" // the content was different
	Unchanged = "unchanged"
	Removed   = "removed"
)

// Report is the state of the service according to its manager.
type Report struct {
	// System is systemd, launchd or task scheduler. Name is the service's name in that system.
	System string `json:"system"`
	Name   string `json:"name"`
	State  string `json:"state"`
	// Change is the change made by install or uninstall; empty for other actions.
	Change string `json:"change,omitempty"`
	// AtLogin reports whether the service starts at login.
	AtLogin bool     `json:"atLogin"`
	Files   []string `json:"files"`
	// Program is the daemon that the service starts. ProgramMissing reports that its file does not exist.
	Program        string `json:"program,omitempty"`
	ProgramMissing bool   `json:"programMissing"`
	// Outdated reports whether install would write different content.
	Outdated bool `json:"outdated"`
	PID      int  `json:"pid,omitempty"`
	// Detail is the manager's message about a failure.
	Detail string `json:"detail,omitempty"`
}

// manager is the service manager of one operating system.
type manager interface {
	install(ctx context.Context) (Report, error)
	uninstall(ctx context.Context) (Report, error)
	start(ctx context.Context) (Report, error)
	stop(ctx context.Context) (Report, error)
	status(ctx context.Context) (Report, error)
}

// Actions are the valid actions of Control.
var Actions = []string{"install", "uninstall", "start", "stop", "status"}

// Control runs one of Actions for the daemon of the environment's state directory. It returns a *problem.Error if the
// user can fix the problem.
func Control(ctx context.Context, action string) (Report, error) {
	m, err := system()
	if err != nil {
		return Report{}, err
	}
	do, ok := actions(m)[action]
	if !ok {
		return Report{}, fmt.Errorf("unknown action %q", action)
	}
	return do(ctx)
}

// actions maps Actions to the methods of a manager.
func actions(m manager) map[string]func(context.Context) (Report, error) {
	return map[string]func(context.Context) (Report, error){
		"install": m.install, "uninstall": m.uninstall, "start": m.start, "stop": m.stop, "status": m.status,
	}
}

// daemon describes the daemon that the service manager runs.
type daemon struct {
	name    string // serviced, with a suffix if the state directory is not the default one
	program string
	home    string
	paths   rendezvous.Paths
	usual   bool // this is the default state directory
}

// describe returns the daemon for the environment's state directory, with this program under its stable path.
func describe() (daemon, error) {
	dir, err := rendezvous.Dir()
	if err != nil {
		return daemon{}, err
	}
	paths, err := rendezvous.PathsOf(filepath.Clean(dir))
	if err != nil {
		return daemon{}, err
	}
	program, err := programpath.StableSelf()
	if err != nil {
		return daemon{}, err
	}
	home, err := rendezvous.Home()
	if err != nil {
		return daemon{}, problem.New(problem.CodeServiceFile, err.Error(), "Set HOME to an absolute path.")
	}
	usual := paths.Dir == filepath.Join(home, ".service")
	d := daemon{name: Name, program: program, home: home, paths: paths, usual: usual}
	if !d.usual { // each directory has a separate daemon
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(paths.Dir))
		d.name = fmt.Sprintf("%s-%08x", Name, sum.Sum32())
	}
	return d, nil
}

// system returns the service manager of this computer.
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
	return nil, problem.New(problem.CodeServiceUnsupported, "services are not supported on "+runtime.GOOS, onDemand)
}

// setProgram records the program that the service starts.
func (r *Report) setProgram(program string) {
	r.Program, r.ProgramMissing = program, program != "" && !isRegular(program)
}

// startChanged starts the service after install and reports the change.
func startChanged(ctx context.Context, start func(context.Context) (Report, error), change string) (Report, error) {
	r, err := start(ctx)
	r.Change = change
	return r, err
}

// restoreWait is the time limit for restoring a service.
const restoreWait = 30 * time.Second

// restoring returns a context for restoring a service. Ctrl-C does not cancel this context, because Ctrl-C may have
// caused the update to fail.
func restoring(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), restoreWait)
}

// restored returns the error of a failed update after which the service was restored. If restoring failed with err, the
// error includes err.
func restored(failure, err error) error {
	if err == nil {
		return failure
	}
	return problem.New(problem.CodeServiceManagerRefused,
		failure.Error()+"; restoring the previous service also failed: "+err.Error(),
		"Correct the cause, then run `servicectl service install` again.")
}

// runs reports whether the service manager runs the daemon or will start it for the next client.
func (r Report) runs() bool { return r.State == StateRunning || r.State == StateListening }

// startable returns r if the service can be started, or an error with the reason why it cannot.
func startable(r Report, err error) (Report, error) {
	switch {
	case err != nil:
		return r, err
	case r.State == StateAbsent:
		return r, absent()
	case r.ProgramMissing:
		return r, problem.New(problem.CodeProgramMissing, "the service runs "+r.Program+", which does not exist",
			"Run `servicectl service install` with the servicectl that you use now.")
	}
	return r, nil
}

// onDemand is the hint for systems without a usable service manager.
const onDemand = "Let clients start the daemon on demand: a service is optional."

// nothing returns the error of uninstall for a service that is not installed.
func nothing() error {
	return problem.New(problem.CodeServiceNotInstalled, "the service is not installed", "Do nothing.")
}

// absent returns the error of the other actions for a service that is not installed.
func absent() error {
	return problem.New(problem.CodeServiceNotInstalled, "the service is not installed",
		"Run `servicectl service install`.")
}
