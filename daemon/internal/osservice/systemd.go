package osservice

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/problem"
)

// systemd runs the daemon under the user's instance of systemd.
type systemd struct {
	d   daemon
	dir string // the directory of the user's units
	// packaged is the directory of the units that the program's package installed; empty if install writes units.
	packaged string
	run      runner
}

func newSystemd(d daemon, configHome string, run runner) *systemd {
	if !filepath.IsAbs(configHome) {
		configHome = filepath.Join(d.home, ".config")
	}
	return &systemd{d: d, dir: filepath.Join(configHome, "systemd", "user"), packaged: packagedUnits(d), run: run}
}

func (s *systemd) socket() string  { return s.d.name + ".socket" }
func (s *systemd) service() string { return s.d.name + ".service" }

func (s *systemd) files() files {
	return files{unitSign, []file{
		{s.socketPath(), socketUnit(s.d)},
		{filepath.Join(s.dir, s.service()), serviceUnit(s.d)},
	}}
}

func (s *systemd) socketPath() string { return filepath.Join(s.dir, s.socket()) }

// install writes the units, unless a package installed them, and opens the sockets, now and at every login. A daemon
// started by a client stops when it notices that its sockets were replaced; the new daemon waits for this. If an update
// fails, install restores the previous units.
func (s *systemd) install(ctx context.Context) (Report, error) {
	if err := s.writable(); err != nil {
		return Report{}, err
	}
	if err := s.answers(ctx); err != nil {
		return Report{}, err
	}
	if err := statefile.EnsureDir(s.d.paths.Dir); err != nil {
		return Report{}, problem.New(problem.CodeServiceFile, err.Error(),
			"Correct the directory, or set SERVICE_CONFIG_DIR to another.")
	}
	if s.packaged != "" {
		return s.installPackaged(ctx)
	}
	u, err := s.files().writeOver(ctx, s.status)
	if err != nil {
		return Report{}, err
	}
	r, err := s.activate(ctx, u.change)
	if err != nil && u.change == Updated {
		return Report{}, s.restore(ctx, u, err)
	}
	return r, err
}

// restore restores the units that a failed update replaced, enables them if the update disabled them, and opens their
// sockets if they were open.
func (s *systemd) restore(ctx context.Context, u update, failure error) error {
	ctx, cancel := restoring(ctx)
	defer cancel()
	err := s.files().restore(u.before)
	if err == nil {
		err = s.all(ctx, []string{"daemon-reload"})
	}
	if err == nil && u.enable {
		err = s.all(ctx, []string{"reenable", s.socket()}) // the link may point to the units of the update
	}
	if err == nil && u.ran {
		_, err = s.start(ctx)
	}
	return restored(failure, err)
}

// activate makes systemd use the units that install wrote.
func (s *systemd) activate(ctx context.Context, change string) (Report, error) {
	if err := s.all(ctx, []string{"daemon-reload"}); err != nil {
		return Report{}, err
	}
	if seen, err := s.show(ctx); err != nil {
		return Report{}, err
	} else if seen.socket["LoadState"] != "loaded" || seen.socket["FragmentPath"] != s.expectedSocket() {
		return Report{}, s.unseen(seen.socket)
	}
	steps := [][]string{{"enable", s.socket()}}
	if change == Updated { // the daemon still runs from the old files
		steps = append(steps, []string{"stop", s.socket(), s.service()})
	}
	if err := s.all(ctx, steps...); err != nil {
		return Report{}, err
	}
	return startChanged(ctx, s.start, change)
}

// writable returns an error for paths that a unit cannot contain.
func (s *systemd) writable() error {
	if err := plain(s.d); err != nil {
		return err
	}
	if strings.ContainsAny(s.d.program, "\"'\\") {
		return problem.New(problem.CodeServiceUnsupported,
			"systemd cannot start a program with a quote or backslash in its path: "+s.d.program,
			"Move the programs to a plain path.")
	}
	return nil
}

// unseen returns the error for a written file that systemd does not use.
func (s *systemd) unseen(unit map[string]string) error {
	if unit["LoadState"] == "masked" {
		return problem.New(problem.CodeServiceManagerRefused, s.socket()+" is masked",
			"Run `systemctl --user unmask "+s.socket()+"`, then try again.")
	}
	if path := unit["FragmentPath"]; path != "" && path != s.expectedSocket() {
		return problem.New(problem.CodeServiceManagerRefused, "systemd loads "+s.socket()+" from "+path,
			"Remove that file, then try again.")
	}
	why := "systemd does not read " + s.expectedSocket()
	if unit["LoadError"] != "" {
		why += ": " + unit["LoadError"]
	}
	return problem.New(problem.CodeServiceManagerRefused, why,
		"Log out and in if you changed XDG_CONFIG_HOME; `systemctl --user show-environment` shows systemd's value.")
}

// uninstall stops the daemon, disables its socket and removes the files that install wrote, even if systemd does not
// respond. It keeps units that a package installed.
func (s *systemd) uninstall(ctx context.Context) (Report, error) {
	r := Report{System: "systemd", Name: s.d.name, State: StateAbsent, Files: []string{}}
	was, err := s.status(ctx)
	if err != nil {
		return Report{}, err
	}
	alive := s.answers(ctx) == nil
	if was.State != StateAbsent && alive {
		if err := s.all(ctx, []string{"stop", s.socket(), s.service()}, []string{"disable", s.socket()}); err != nil {
			return Report{}, err
		}
	}
	if r.Files, err = s.removeFiles(); err != nil {
		return Report{}, err
	}
	if was.State == StateAbsent && len(r.Files) == 0 {
		return r, nothing()
	}
	r.Change = Removed
	if alive {
		// Ignore the error, because a unit that is no longer loaded cannot be reset.
		_ = s.all(ctx, []string{"daemon-reload"}, []string{"reset-failed", s.socket(), s.service()})
	}
	return r, nil
}

// removeFiles removes the units that install wrote and the link that enables the socket. It returns the paths that
// existed.
func (s *systemd) removeFiles() ([]string, error) {
	paths := []string{s.socketPath(), filepath.Join(s.dir, s.service())}
	if s.isLinked() {
		paths = append(paths, s.link())
	}
	removed, err := remove(paths...)
	if err == nil {
		_ = os.Remove(filepath.Dir(s.link())) // fails if it contains other units
	}
	return removed, err
}

// link returns the path of the link that enables the socket for this user.
func (s *systemd) link() string { return filepath.Join(s.dir, "sockets.target.wants", s.socket()) }

// isLinked reports whether the link points to install's or the package's socket unit.
func (s *systemd) isLinked() bool {
	target, err := os.Readlink(s.link())
	if err == nil && !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(s.link()), target)
	}
	return err == nil && (target == s.socketPath() || target == s.expectedSocket())
}

// start restarts the socket unit unless the daemon already uses its sockets. A restart is needed because the socket
// files may have been replaced, after the directory was deleted or a client started a daemon.
func (s *systemd) start(ctx context.Context) (Report, error) {
	r, err := startable(s.status(ctx))
	if err != nil || r.State == StateRunning {
		return r, err
	}
	if r.State == StateFailed {
		_ = s.all(ctx, []string{"reset-failed", s.socket(), s.service()})
	}
	if err := s.all(ctx, []string{"restart", s.socket()}); err != nil {
		return r, err
	}
	return s.status(ctx)
}

// stop stops the daemon and closes the sockets until the next login or start.
func (s *systemd) stop(ctx context.Context) (Report, error) {
	if units, err := s.files().read(); err != nil {
		return Report{}, err
	} else if len(units) == 0 && s.packaged == "" {
		return Report{}, absent()
	}
	if err := s.answers(ctx); err != nil {
		return Report{}, err
	}
	if err := s.all(ctx, []string{"stop", s.socket(), s.service()}); err != nil {
		return Report{}, err
	}
	return s.status(ctx)
}

// status compares the files with install's output, and asks systemd for the state of the units.
func (s *systemd) status(ctx context.Context) (Report, error) {
	r := Report{System: "systemd", Name: s.d.name, State: StateAbsent, Files: []string{}}
	units, err := s.files().read()
	if err == nil && len(units) == 0 && s.packaged != "" {
		return s.statusPackaged(ctx)
	}
	if err != nil || len(units) == 0 {
		return r, err
	}
	r.Outdated = s.packaged != "" // these units override the package's units
	for _, f := range s.files().list {
		unit, ok := units[f.path]
		r.Outdated = r.Outdated || unit != f.content
		if ok {
			r.Files = append(r.Files, f.path)
		}
		if program := programOf(unit); program != "" {
			r.setProgram(program)
		}
	}
	return s.ask(ctx, r)
}

// ask adds the units' state according to systemd to a report. If systemd does not respond, the link shows whether the
// socket is enabled.
func (s *systemd) ask(ctx context.Context, r Report) (Report, error) {
	seen, err := s.show(ctx)
	if err != nil {
		var known *problem.Error
		if errors.As(err, &known) {
			r.State, r.Detail, r.AtLogin = StateUnknown, known.Message, s.isLinked()
			return r, nil
		}
		return r, err
	}
	r.AtLogin = seen.socket["UnitFileState"] == "enabled"
	r.State, r.PID, r.Detail = stateOf(seen)
	return r, nil
}
