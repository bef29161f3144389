package osservice

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// packagedUnits returns the directory of the units that a package installed for this daemon, or "" if there are none.
// It is systemd/user next to the directory of the programs (/usr/lib/service and /usr/lib/systemd/user). The units
// serve only the default state directory.
func packagedUnits(d daemon) string {
	if !d.usual {
		return ""
	}
	dir := filepath.Join(filepath.Dir(filepath.Dir(d.program)), "systemd", "user")
	if !isRegular(filepath.Join(dir, d.name+".socket")) {
		return ""
	}
	unit, err := os.ReadFile(filepath.Join(dir, d.name+".service"))
	if err != nil {
		return ""
	}
	text := string(unit)
	if !strings.Contains(text, "\nExecStart="+d.program+" ") && programOf(text) != d.program {
		return ""
	}
	return dir
}

// expectedSocket returns the path from which systemd should load the socket unit: the package's file, or the file
// written by install.
func (s *systemd) expectedSocket() string {
	if s.packaged != "" {
		return filepath.Join(s.packaged, s.socket())
	}
	return s.socketPath()
}

// installPackaged enables the package's units and opens their sockets. It removes units written by an earlier install,
// because they would override the package's units. It restores them if systemd refuses the package's units.
func (s *systemd) installPackaged(ctx context.Context) (Report, error) {
	was, err := s.status(ctx)
	if err != nil {
		return Report{}, err
	}
	switch {
	case was.Outdated: // units of an earlier install
		return s.replaceOwn(ctx, was)
	case !was.AtLogin:
		return s.activate(ctx, Created)
	}
	return s.activate(ctx, Unchanged)
}

// replaceOwn replaces the units written by install with the package's units.
func (s *systemd) replaceOwn(ctx context.Context, was Report) (Report, error) {
	before, err := s.files().read()
	if err != nil {
		return Report{}, err
	}
	var r Report
	if _, err = s.removeFiles(); err == nil {
		r, err = s.activate(ctx, Updated)
	}
	if err != nil {
		return Report{}, s.restore(ctx, update{Updated, before, was.runs(), was.AtLogin}, err)
	}
	return r, nil
}

// statusPackaged reports the state of the package's units according to systemd. Units that are neither enabled nor in
// use are reported as not installed. If systemd does not respond, units are reported as enabled only if the user's link
// exists, because an administrator may have enabled them for all users.
func (s *systemd) statusPackaged(ctx context.Context) (Report, error) {
	absent := Report{System: "systemd", Name: s.d.name, State: StateAbsent, Files: []string{}}
	r, err := s.ask(ctx, absent)
	if err != nil || !r.AtLogin && !r.runs() && r.State != StateFailed {
		return absent, err
	}
	r.setProgram(s.d.program)
	r.Files = []string{s.expectedSocket(), filepath.Join(s.packaged, s.service())}
	return r, nil
}
