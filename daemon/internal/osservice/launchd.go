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

	"github.com/service-dev/service/daemon/internal/statefile"
)

// launchd keeps the daemon as an agent of the person's login session.
type launchd struct {
	d     daemon
	label string
	path  string // of the agent's property list
	uid   int
	run   runner
}

func newLaunchd(d daemon, uid int, run runner) *launchd {
	label := "dev.service." + d.name
	return &launchd{d: d, label: label, path: filepath.Join(d.home, "Library", "LaunchAgents", label+".plist"), uid: uid, run: run}
}

// domain is the person's graphical session, target the agent in it.
func (l *launchd) domain() string { return "gui/" + strconv.Itoa(l.uid) }
func (l *launchd) target() string { return l.domain() + "/" + l.label }

func (l *launchd) install(ctx context.Context) (Report, error) {
	want, change := agentPlist(l.d, l.label), Updated
	old, err := statefile.Read(l.path, maxUnit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		change = Created
	case err != nil:
		return Report{}, &Error{CodeFile, err.Error(), "move " + l.path + " away"}
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
	r := Report{System: "launchd", Name: l.label, State: StateAbsent, Files: []string{}}
	if _, err := os.Lstat(l.path); errors.Is(err, fs.ErrNotExist) {
		return r, nothing()
	}
	if err := l.bootout(ctx); err != nil {
		return Report{}, err
	}
	if _, err := statefile.Remove(l.path); err != nil {
		return Report{}, &Error{CodeFile, err.Error(), "remove it by hand"}
	}
	r.Change, r.Files = Removed, []string{l.path}
	return r, nil
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
	if l.run(ctx, "launchctl", "print", l.target()).code != 0 {
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
	if _, err := os.Lstat(l.path); errors.Is(err, fs.ErrNotExist) {
		return Report{}, absent()
	}
	if err := l.bootout(ctx); err != nil {
		return Report{}, err
	}
	return l.status(ctx)
}

func (l *launchd) status(ctx context.Context) (Report, error) {
	r := Report{System: "launchd", Name: l.label, State: StateAbsent, Files: []string{}}
	data, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	r.Files, r.AtLogin = []string{l.path}, true
	r.Outdated = err != nil || string(data) != agentPlist(l.d, l.label)
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

// bootout unloads the agent, which ends the daemon. One that is not loaded (3, 36, 113) is fine.
func (l *launchd) bootout(ctx context.Context) error {
	if l.run(ctx, "launchctl", "print", l.target()).code > 0 {
		return nil
	}
	return l.must(l.run(ctx, "launchctl", "bootout", l.target()), "bootout")
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
