package osservice

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// launchd keeps the daemon as an agent of the person's login session.
type launchd struct {
	d     daemon
	label string
	path  string // of the agent's property list
	uid   int
	run   runner
	pause time.Duration // between two looks at an unloading
}

func newLaunchd(d daemon, uid int, run runner) *launchd {
	label := "dev.service." + d.name
	return &launchd{d: d, label: label, path: filepath.Join(d.home, "Library", "LaunchAgents", label+".plist"), uid: uid, run: run, pause: 200 * time.Millisecond}
}

// domain is the person's graphical session, target the agent in it.
func (l *launchd) domain() string { return "gui/" + strconv.Itoa(l.uid) }
func (l *launchd) target() string { return l.domain() + "/" + l.label }

func (l *launchd) install(ctx context.Context) (Report, error) {
	if err := plain(l.d); err != nil {
		return Report{}, err
	}
	want, change := agentPlist(l.d, l.label), Updated
	old, err := own(l.path, plistSign)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		change = Created
	case err != nil:
		return Report{}, err
	case string(old) == want:
		change = Unchanged
	}
	if change != Unchanged {
		if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
			return Report{}, &Error{CodeFile, "making " + filepath.Dir(l.path) + ": " + err.Error(), "correct the directory"}
		}
		if err := statefile.Write(l.path, []byte(want)); err != nil {
			return Report{}, &Error{CodeFile, err.Error(), "correct the directory " + filepath.Dir(l.path)}
		}
	}
	if change == Updated { // what is loaded is the old one
		if err := l.bootout(ctx); err != nil {
			return Report{}, err
		}
	}
	r, err := l.start(ctx)
	r.Change = change
	return r, err
}

func (l *launchd) uninstall(ctx context.Context) (Report, error) {
	if err := l.unload(ctx, nothing()); err != nil {
		return Report{}, err
	}
	if _, err := statefile.Remove(l.path); err != nil {
		return Report{}, &Error{CodeFile, err.Error(), "remove it by hand"}
	}
	return Report{System: "launchd", Name: l.label, State: StateAbsent, Change: Removed, Files: []string{l.path}}, nil
}

// start loads the agent if need be and starts it; what runs already is left alone.
func (l *launchd) start(ctx context.Context) (Report, error) {
	r, err := l.status(ctx)
	switch {
	case err != nil:
		return r, err
	case r.State == StateAbsent:
		return r, absent()
	case r.ProgramMissing:
		return r, moved(r.Program)
	case r.State == StateRunning:
		return r, nil
	}
	if !l.loaded(ctx) {
		if err := l.must(l.run(ctx, "launchctl", "bootstrap", l.domain(), l.path), "bootstrap"); err != nil {
			return r, err
		}
	}
	if err := l.must(l.run(ctx, "launchctl", "kickstart", l.target()), "kickstart"); err != nil {
		return r, err
	}
	return l.status(ctx)
}

// stop unloads the agent; the next login loads it again.
func (l *launchd) stop(ctx context.Context) (Report, error) {
	if err := l.unload(ctx, absent()); err != nil {
		return Report{}, err
	}
	return l.status(ctx)
}

// unload is bootout of an agent that is ours; missing is the error when there is none.
func (l *launchd) unload(ctx context.Context, missing error) error {
	if _, err := own(l.path, plistSign); errors.Is(err, fs.ErrNotExist) {
		return missing
	} else if err != nil {
		return err
	}
	return l.bootout(ctx)
}

func (l *launchd) status(ctx context.Context) (Report, error) {
	r := Report{System: "launchd", Name: l.label, State: StateAbsent, Files: []string{}}
	data, err := own(l.path, plistSign)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	} else if err != nil {
		return r, err
	}
	r.Files, r.AtLogin = []string{l.path}, true
	r.Outdated = string(data) != agentPlist(l.d, l.label)
	r.Program = plistProgram(string(data))
	r.ProgramMissing = r.Program != "" && !there(r.Program)
	o := l.run(ctx, "launchctl", "print", l.target())
	switch {
	case o.code < 0:
		r.State, r.Detail = StateUnknown, o.said()
	case o.code != 0:
		r.State = StateStopped // it is not loaded
	default:
		r.State, r.PID, r.Detail = printed(o.out)
	}
	return r, nil
}

// printed reads the answer of `launchctl print`: indented lines NAME = VALUE, the agent's own first.
func printed(text string) (state string, pid int, detail string) {
	seen := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if _, before := seen[name]; ok && !before {
			seen[name] = value
		}
	}
	pid, _ = strconv.Atoi(seen["pid"])
	if seen["state"] == "running" || pid > 0 {
		return StateRunning, pid, ""
	}
	if code := seen["last exit code"]; code != "" && code != "0" && !strings.HasPrefix(code, "(never") {
		return StateFailed, 0, "exit code " + code
	}
	return StateStopped, 0, ""
}

const (
	// underWay is launchctl's exit code for an unloading that goes on (EINPROGRESS).
	underWay = 36
	// unloadTime bounds it: the agent's ExitTimeOut and some more.
	unloadTime = 40 * time.Second
)

// bootout unloads the agent, which ends the daemon, and waits until launchd does not know it any more: it refuses to
// load an agent that it is still unloading. One that is not loaded is fine.
func (l *launchd) bootout(ctx context.Context) error {
	if !l.loaded(ctx) {
		return nil
	}
	if o := l.run(ctx, "launchctl", "bootout", l.target()); o.code != underWay && (o.code <= 0 || l.loaded(ctx)) {
		if err := l.must(o, "bootout"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, unloadTime, errors.New("it is still loaded"))
	defer cancel()
	for l.loaded(ctx) {
		select {
		case <-ctx.Done():
			return l.must(outcome{code: -1, err: context.Cause(ctx)}, "bootout")
		case <-time.After(l.pause):
		}
	}
	return nil
}

// loaded tells whether launchd has the agent; when it does not tell, it may.
func (l *launchd) loaded(ctx context.Context) bool {
	return l.run(ctx, "launchctl", "print", l.target()).code <= 0
}

func (l *launchd) must(o outcome, what string) error {
	switch {
	case o.code == 0:
		return nil
	case errors.Is(o.err, exec.ErrNotFound):
		return &Error{CodeNoManager, "launchctl is not there", "nothing is lost: any client starts the daemon on demand"}
	}
	return &Error{CodeRefused, "launchctl " + what + ": " + o.said(), "log in on the desktop and try again; `launchctl print " + l.target() + "` tells more"}
}
