package osservice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/kardianos/service"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/programpath"
)

// Options are the choices made at installation. An empty field defaults to the value of the installed service, or of
// Defaults if no service is installed.
type Options struct{ Settings, User string }

// Actions lists the actions that Control accepts.
var Actions = []string{"install", "uninstall", "start", "stop", "restart", "status"}

// Control runs one of Actions. It returns a *problem.Error for a failure that the user can fix.
func Control(ctx context.Context, action string, o Options) (Report, error) {
	m, err := detect(service.Platform(), string(filepath.Separator))
	if err != nil {
		return Report{}, err
	}
	if action != "status" && !isRoot() {
		return Report{}, notRoot()
	}
	text, was, err := m.read()
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return Report{}, fileError(err)
	case action == "status":
		return m.absent(), nil
	case action != "install":
		return Report{}, problem.New(problem.CodeServiceNotInstalled, "the service is not installed",
			"Run `service-backend service install`.")
	}
	if other := m.other(); action == "install" && other != "" {
		err := problem.New(problem.CodeServiceNotOurs,
			other+" exists, which an earlier `service-backend service install` hides",
			"Run `service-backend service uninstall`, then `sudo systemctl enable --now "+m.name+"`.")
		return Report{}, err
	}
	if action == "install" {
		return m.install(ctx, text, was, o)
	}
	c, err := m.open(was, text)
	if err != nil {
		return Report{}, err
	}
	switch action {
	case "uninstall":
		return m.uninstall(ctx, c, was)
	case "start":
		err = m.start(ctx, c, was)
	case "stop":
		err = m.stop(ctx, c, was)
	case "restart":
		if err = m.stop(ctx, c, was); err == nil {
			err = m.start(ctx, c, was)
		}
	}
	if err != nil {
		return Report{}, err
	}
	return m.report(ctx, c, was, text), nil
}

func fileError(err error) error {
	var known *problem.Error
	if errors.As(err, &known) {
		return err
	}
	if errors.Is(err, fs.ErrPermission) {
		return notRoot()
	}
	return problem.New(problem.CodeServiceFile, err.Error(), "Correct the file or its directory, then try again.")
}

// install creates the files the server needs, validates the settings as the service's user, registers the service and
// starts it. If an update fails, it restores the previous service. Running install again completes an interrupted
// installation.
func (m manager) install(ctx context.Context, old string, was spec, o Options) (Report, error) {
	s, created, err := prepare(ctx, was, o)
	if err != nil {
		return Report{}, err
	}
	c, err := m.open(s, m.text(s))
	if err != nil {
		return Report{}, err
	}
	before := registered{text: old, spec: was}
	if old != "" {
		if before.control, err = m.open(was, old); err != nil {
			return Report{}, err
		}
		state, _, _ := m.state(ctx, before.control)
		before.runs = state == StateRunning || state == StateStarting
	}
	change, err := m.register(ctx, c, s, before)
	if err != nil {
		return Report{}, err
	}
	if err := finish(s, created); err != nil {
		return Report{}, problem.New(problem.CodeServiceFile, err.Error(),
			"Correct the cause, then run `service-backend service install` again.")
	}
	if err := m.start(ctx, c, s); err != nil {
		if change == Updated {
			err = m.restore(ctx, before, err)
		}
		return Report{}, err
	}
	r := m.report(ctx, c, s, m.text(s))
	r.Change, r.Created = change, created
	return r, nil
}

// prepare returns the program for the service manager to run, and the files that it created for it.
func prepare(ctx context.Context, was spec, o Options) (spec, []string, error) {
	settings, data, name := Defaults()
	s := spec{Settings: cmp.Or(o.Settings, was.Settings, settings), Data: data, User: cmp.Or(o.User, was.User, name)}
	var notFound, notAbsolute error
	s.Program, notFound = programpath.StableSelf()
	s.Settings, notAbsolute = filepath.Abs(s.Settings)
	if err := errors.Join(notFound, notAbsolute, s.validate(runtime.GOOS)); err != nil {
		return s, nil, err
	}
	u, created, err := ensureUser(ctx, s)
	if err != nil {
		return s, nil, err
	}
	files, err := ensureFiles(s, u)
	if err != nil {
		return s, nil, fileError(err)
	}
	if err := s.check(ctx, u); err != nil {
		return s, nil, err
	}
	return s, append(created, files...), s.validate(runtime.GOOS)
}

// registered is the previously installed service. Its text is empty if there was none.
type registered struct {
	text    string
	spec    spec
	control control
	runs    bool
}

// register registers the service described by s. If an update fails, it restores the previous service.
func (m manager) register(ctx context.Context, c control, s spec, before registered) (change string, err error) {
	if before.text == m.text(s) && m.starts() {
		return Unchanged, nil
	}
	if before.text == "" {
		if err := m.create(c); err != nil {
			return "", m.refused("install", s, err)
		}
		return Created, nil
	}
	err = m.stop(ctx, c, s)
	if err == nil {
		err = m.refused("update", s, m.remove(c))
	}
	if err == nil {
		err = m.refused("update", s, m.create(c))
	}
	if err != nil {
		return "", m.restore(ctx, before, err)
	}
	return Updated, nil
}

// restore registers the service as it was before a failed update, and starts it if it was running. It returns the
// failure of the update, joined with any error of its own.
func (m manager) restore(ctx context.Context, before registered, failure error) error {
	var err error
	if text, _, bad := m.read(); bad != nil || text != before.text || !m.starts() {
		if bad == nil {
			_ = m.remove(before.control) // it may be only partly registered
		}
		if err = m.create(before.control); err != nil && m.path != "" {
			_ = os.WriteFile(m.path, []byte(before.text), m.mode) // keep the text: the next install reads its settings
		}
	}
	if err == nil && before.runs {
		err = m.start(ctx, before.control, before.spec)
	}
	if err == nil {
		return failure
	}
	hint := "Correct the cause, then run `service-backend service install` again."
	return problem.New(problem.CodeServiceManagerRefused,
		fmt.Sprintf("%v; restoring the previous service failed as well: %v", failure, err), hint)
}

// create registers the service, and cleans up after a failed registration.
func (m manager) create(c control) error {
	err := c.Install()
	if err == nil && m.path != "" {
		err = os.Chmod(m.path, m.mode) // the file was created under the caller's umask
	}
	if err != nil && m.path != "" {
		if c.Uninstall() != nil {
			_ = os.Remove(m.path)
		}
	}
	return err
}

// remove unregisters the service.
func (m manager) remove(c control) error {
	if err := c.Uninstall(); err != nil {
		return err
	}
	links, err := filepath.Glob(m.links)
	for _, link := range links {
		err = errors.Join(err, os.Remove(link))
	}
	return err
}

// uninstall stops and removes the service, and reports the files that it keeps.
func (m manager) uninstall(ctx context.Context, c control, s spec) (Report, error) {
	if err := m.stop(ctx, c, s); err != nil {
		return Report{}, err
	}
	if err := m.remove(c); err != nil {
		return Report{}, m.refused("uninstall", s, err)
	}
	m.forgetFailure(ctx)
	r := m.absent()
	r.Change, r.File, r.Data, r.User = Removed, m.path, s.Data, s.User
	for _, path := range append(s.files(), s.Data) {
		if _, err := os.Stat(path); err == nil {
			r.Kept = append(r.Kept, path)
		}
	}
	return r, nil
}

func (m manager) start(ctx context.Context, c control, s spec) error {
	switch state, _, _ := m.state(ctx, c); {
	case state == StateRunning:
		return nil
	case m.system == "launchd":
		_ = c.Stop() // launchd refuses to load a service that is loaded but not running
	case state == StateFailed:
		m.forgetFailure(ctx)
	}
	if _, err := os.Stat(s.Program); err != nil {
		return problem.New(problem.CodeServiceFile, "the service runs "+s.Program+", which does not exist",
			"Run `service-backend service install` with the program that you use now.")
	}
	return m.refused("start", s, c.Start())
}

// forgetFailure clears a unit's failed state in systemd, so that a unit that failed too often can start again and a
// removed unit is forgotten.
func (m manager) forgetFailure(ctx context.Context) {
	if m.system == "systemd" {
		// systemctl returns an error for a unit that has not failed.
		_ = exec.CommandContext(ctx, "systemctl", "reset-failed", m.name+".service").Run()
	}
}

func (m manager) stop(ctx context.Context, c control, s spec) error {
	if state, _, _ := m.state(ctx, c); state == StateStopped || state == StateFailed {
		return nil
	}
	return m.refused("stop", s, c.Stop())
}

func (m manager) absent() Report { return Report{System: m.system, Name: m.name, State: StateAbsent} }

func (m manager) report(ctx context.Context, c control, s spec, text string) Report {
	r := Report{
		System: m.system, Name: m.name, AtBoot: m.starts(), File: m.path, Program: s.Program, Settings: s.Settings,
		Data: s.Data, User: s.User, Outdated: text != m.text(s), Logs: m.logs(s),
	}
	r.State, r.PID, r.Detail = m.state(ctx, c)
	if _, err := os.Stat(s.Program); errors.Is(err, fs.ErrNotExist) {
		r.Detail = fmt.Sprintf("%s does not exist", s.Program)
	}
	return r
}
