package osservice

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// systemd keeps the daemon with the user's own systemd.
type systemd struct {
	d   daemon
	dir string // where the user's units lie
	run runner
}

// maxUnit bounds in bytes the unit files that are read.
const maxUnit = 64 << 10

func newSystemd(d daemon, configHome string, run runner) *systemd {
	if !filepath.IsAbs(configHome) {
		configHome = filepath.Join(d.home, ".config")
	}
	return &systemd{d: d, dir: filepath.Join(configHome, "systemd", "user"), run: run}
}

func (s *systemd) socket() string  { return s.d.name + ".socket" }
func (s *systemd) service() string { return s.d.name + ".service" }

// file is one unit.
type file struct{ path, content string }

func (s *systemd) files() []file {
	return []file{
		{filepath.Join(s.dir, s.socket()), socketUnit(s.d)},
		{filepath.Join(s.dir, s.service()), serviceUnit(s.d)},
	}
}

// install writes the units, makes the sockets come up with every login and now. A daemon that a client started sees that
// its sockets were replaced, and ends in order; the new one waits for it.
func (s *systemd) install(ctx context.Context) (Report, error) {
	if err := s.writable(); err != nil {
		return Report{}, err
	}
	if err := s.answers(ctx); err != nil {
		return Report{}, err
	}
	if err := statefile.EnsureDir(s.d.paths.Dir); err != nil {
		return Report{}, &Error{CodeFile, err.Error(), "correct the directory, or set SERVICE_CONFIG_DIR to another"}
	}
	change, err := s.write()
	if err != nil {
		return Report{}, err
	}
	if err := s.all(ctx, []string{"daemon-reload"}); err != nil {
		return Report{}, err
	}
	if seen, err := s.show(ctx); err != nil {
		return Report{}, err
	} else if seen.socket["LoadState"] != "loaded" || seen.socket["FragmentPath"] != s.files()[0].path {
		return Report{}, s.unseen(seen.socket)
	}
	steps := [][]string{{"enable", s.socket()}}
	if change == Updated { // what runs was started by the old files
		steps = append(steps, []string{"stop", s.socket(), s.service()})
	}
	if err := s.all(ctx, steps...); err != nil {
		return Report{}, err
	}
	r, err := s.start(ctx)
	r.Change = change
	return r, err
}

// writable refuses paths that no unit can hold.
func (s *systemd) writable() error {
	if err := plain(s.d); err != nil {
		return err
	}
	if strings.ContainsAny(s.d.program, "\"'\\") {
		return &Error{CodeUnsupported, "systemd starts no program with a quote or backslash in its path: " + s.d.program, "move the programs to a plain path"}
	}
	return nil
}

// unseen tells why systemd uses another file than the one that was written.
func (s *systemd) unseen(unit map[string]string) error {
	if unit["LoadState"] == "masked" {
		return &Error{CodeRefused, s.socket() + " is masked", "run `systemctl --user unmask " + s.socket() + "`, then try again"}
	}
	if path := unit["FragmentPath"]; path != "" && path != s.files()[0].path {
		return &Error{CodeRefused, "systemd takes " + s.socket() + " from " + path, "remove that file, then try again"}
	}
	why := "systemd does not read " + s.files()[0].path
	if unit["LoadError"] != "" {
		why += ": " + unit["LoadError"]
	}
	return &Error{CodeRefused, why, "log out and in, if XDG_CONFIG_HOME was changed; `systemctl --user show-environment` tells systemd's"}
}

// found reads the units that are there, by path; one that is another's is an error.
func (s *systemd) found() (map[string]string, error) {
	units := map[string]string{}
	for _, f := range s.files() {
		data, err := own(f.path, unitSign)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		units[f.path] = string(data)
	}
	return units, nil
}

// write brings the files to what they should be; none, when one of them is another's.
func (s *systemd) write() (change string, err error) {
	units, err := s.found()
	if err != nil {
		return "", err
	}
	change = Unchanged
	for _, f := range s.files() {
		switch old, ok := units[f.path]; {
		case ok && old == f.content:
			continue
		case ok:
			change = Updated
		case change == Unchanged:
			change = Created
		}
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return "", &Error{CodeFile, "making " + s.dir + ": " + err.Error(), "correct the directory"}
		}
		if err := statefile.Write(f.path, []byte(f.content)); err != nil {
			return "", &Error{CodeFile, err.Error(), "correct the directory " + s.dir}
		}
	}
	return change, nil
}

// uninstall stops the daemon and removes what install wrote, even where no service manager answers.
func (s *systemd) uninstall(ctx context.Context) (Report, error) {
	r := Report{System: "systemd", Name: s.d.name, State: StateAbsent, Files: []string{}}
	units, err := s.found()
	if err != nil {
		return Report{}, err
	}
	alive := s.answers(ctx) == nil
	if len(units) > 0 && alive {
		if err := s.all(ctx, []string{"stop", s.socket(), s.service()}, []string{"disable", s.socket()}); err != nil {
			return Report{}, err
		}
	}
	wants := filepath.Join(s.dir, "sockets.target.wants")
	remove := []string{s.files()[0].path, s.files()[1].path}
	if link := filepath.Join(wants, s.socket()); s.leadsHere(link) {
		remove = append(remove, link)
	}
	for _, path := range remove {
		was, err := statefile.Remove(path)
		if err != nil {
			return Report{}, &Error{CodeFile, err.Error(), "remove it by hand"}
		}
		if was {
			r.Change, r.Files = Removed, append(r.Files, path)
		}
	}
	_ = os.Remove(wants) // fails when others' units are in it
	if r.Change == "" {
		return r, nothing()
	}
	if alive {
		_ = s.all(ctx, []string{"daemon-reload"}, []string{"reset-failed", s.socket(), s.service()}) // what is not loaded cannot be reset
	}
	return r, nil
}

// leadsHere tells whether a link is that of an enabled socket of ours.
func (s *systemd) leadsHere(link string) bool {
	target, err := os.Readlink(link)
	if err == nil && !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(link), target)
	}
	return err == nil && target == s.files()[0].path
}

// start opens the sockets anew unless the daemon runs on them: a directory that was deleted, or a daemon that a client
// started meanwhile, has others at the same paths.
func (s *systemd) start(ctx context.Context) (Report, error) {
	r, err := s.status(ctx)
	if err != nil {
		return Report{}, err
	}
	switch {
	case r.State == StateAbsent:
		return r, absent()
	case r.ProgramMissing:
		return r, moved(r.Program)
	case r.State == StateRunning:
		return r, nil
	}
	if r.State == StateFailed {
		_ = s.all(ctx, []string{"reset-failed", s.socket(), s.service()})
	}
	if err := s.all(ctx, []string{"restart", s.socket()}); err != nil {
		return r, err
	}
	return s.status(ctx)
}

func moved(program string) error {
	return &Error{CodeProgram, "the service names " + program + ", which is not there", "run `servicectl service install` with the servicectl that you use now"}
}

// stop ends the daemon and closes the sockets until the next login or start.
func (s *systemd) stop(ctx context.Context) (Report, error) {
	if units, err := s.found(); err != nil {
		return Report{}, err
	} else if len(units) == 0 {
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

// status compares the files with what install would write, and asks systemd about the units.
func (s *systemd) status(ctx context.Context) (Report, error) {
	r := Report{System: "systemd", Name: s.d.name, State: StateAbsent, Files: []string{}}
	units, err := s.found()
	if err != nil || len(units) == 0 {
		return r, err
	}
	for _, f := range s.files() {
		unit, ok := units[f.path]
		r.Outdated = r.Outdated || unit != f.content
		if ok {
			r.Files = append(r.Files, f.path)
		}
		if program := programOf(unit); program != "" {
			r.Program, r.ProgramMissing = program, !there(program)
		}
	}
	seen, err := s.show(ctx)
	if err != nil {
		var known *Error
		if errors.As(err, &known) {
			r.State, r.Detail = StateUnknown, known.Message
			return r, nil
		}
		return r, err
	}
	r.AtLogin = seen.socket["UnitFileState"] == "enabled"
	r.State, r.PID, r.Detail = stateOf(seen)
	return r, nil
}
