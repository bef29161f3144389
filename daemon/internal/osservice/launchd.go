package osservice

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// launchd runs the daemon as an agent of the user's login session.
type launchd struct {
	d     daemon
	label string
	path  string // path of the agent's property list
	uid   int
	run   runner
	pause time.Duration // interval between checks whether an unload has ended
}

func newLaunchd(d daemon, uid int, run runner) *launchd {
	label := "dev.service." + d.name
	path := filepath.Join(d.home, "Library", "LaunchAgents", label+".plist")
	return &launchd{d: d, label: label, path: path, uid: uid, run: run, pause: 200 * time.Millisecond}
}

// domain returns the name of the user's graphical session, in which the agent runs.
func (l *launchd) domain() string { return "gui/" + strconv.Itoa(l.uid) }
func (l *launchd) target() string { return l.domain() + "/" + l.label }

func (l *launchd) files() files {
	return files{plistSign, []file{{l.path, agentPlist(l.d, l.label)}}}
}

func (l *launchd) install(ctx context.Context) (Report, error) {
	if err := plain(l.d); err != nil {
		return Report{}, err
	}
	u, err := l.files().writeOver(ctx, l.status)
	if err != nil {
		return Report{}, err
	}
	if u.change != Updated {
		return startChanged(ctx, l.start, u.change)
	}
	err = l.bootout(ctx) // the old agent is loaded
	if err == nil {
		var r Report
		if r, err = startChanged(ctx, l.start, u.change); err == nil {
			return r, nil
		}
	}
	return Report{}, l.restore(ctx, u, err)
}

// restore restores the agent that a failed update replaced, and starts it if it was running.
func (l *launchd) restore(ctx context.Context, u update, failure error) error {
	ctx, cancel := restoring(ctx)
	defer cancel()
	err := l.files().restore(u.before)
	if err == nil && u.ran {
		_ = l.bootout(ctx) // the new agent may be loaded; if the old one still is, start finds it running
		_, err = l.start(ctx)
	}
	return restored(failure, err)
}

func (l *launchd) uninstall(ctx context.Context) (Report, error) {
	if err := l.unload(ctx, nothing()); err != nil {
		return Report{}, err
	}
	removed, err := remove(l.path)
	if err != nil {
		return Report{}, err
	}
	return Report{System: "launchd", Name: l.label, State: StateAbsent, Change: Removed, Files: removed}, nil
}

// start loads the agent if necessary and starts it if it is not running.
func (l *launchd) start(ctx context.Context) (Report, error) {
	r, err := startable(l.status(ctx))
	if err != nil || r.State == StateRunning {
		return r, err
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

// stop unloads the agent until the next login.
func (l *launchd) stop(ctx context.Context) (Report, error) {
	if err := l.unload(ctx, absent()); err != nil {
		return Report{}, err
	}
	return l.status(ctx)
}

// unload unloads the agent. It returns the error missing if none is installed.
func (l *launchd) unload(ctx context.Context, missing error) error {
	if contents, err := l.files().read(); err != nil {
		return err
	} else if len(contents) == 0 {
		return missing
	}
	return l.bootout(ctx)
}

func (l *launchd) status(ctx context.Context) (Report, error) {
	r := Report{System: "launchd", Name: l.label, State: StateAbsent, Files: []string{}}
	contents, err := l.files().read()
	if err != nil || len(contents) == 0 {
		return r, err
	}
	r.Files, r.AtLogin = []string{l.path}, true
	r.Outdated = contents[l.path] != agentPlist(l.d, l.label)
	r.setProgram(plistProgram(contents[l.path]))
	o := l.run(ctx, "launchctl", "print", l.target())
	switch {
	case o.code < 0:
		r.State, r.Detail = StateUnknown, o.message()
	case o.code != 0:
		r.State = StateStopped // the agent is not loaded
	default:
		r.State, r.PID, r.Detail = printed(o.out)
	}
	return r, nil
}

// printed parses the output of `launchctl print`, which consists of indented lines NAME = VALUE. The agent's own values
// come first.
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
	// inProgress is launchctl's exit code for an unload that is not complete yet (EINPROGRESS).
	inProgress = 36
	// unloadTime is the time limit of an unload: the agent's ExitTimeOut plus a margin.
	unloadTime = 40 * time.Second
)

// bootout unloads the agent, which stops the daemon. It waits until launchd has removed the agent, because launchd does
// not load an agent that it is still unloading. It returns nil if the agent is not loaded.
func (l *launchd) bootout(ctx context.Context) error {
	if !l.loaded(ctx) {
		return nil
	}
	if o := l.run(ctx, "launchctl", "bootout", l.target()); o.code != inProgress && (o.code <= 0 || l.loaded(ctx)) {
		if err := l.must(o, "bootout"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, unloadTime, errors.New("the agent is still loaded"))
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

// loaded reports whether launchd has loaded the agent or does not respond.
func (l *launchd) loaded(ctx context.Context) bool {
	return l.run(ctx, "launchctl", "print", l.target()).code <= 0
}

func (l *launchd) must(o outcome, action string) error {
	return must(o, "launchctl", action,
		"Log in on the desktop and try again; `launchctl print "+l.target()+"` shows more.")
}
