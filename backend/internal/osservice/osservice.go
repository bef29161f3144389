// Package osservice registers service-backend with the system's service manager: systemd, OpenRC, SysV init, launchd
// or the Windows Service Control Manager. It creates the user, settings, keys and data directory that the server
// needs, and writes the service description. kardianos/service registers, starts and stops the service.
//
// kardianos/service removes a service of the same name even if it was installed by something else, may leave a partial
// installation behind, and reports few details. Every description therefore contains a mark, and this package changes
// only services with that mark.
package osservice

import (
	"errors"
	"os/user"
	"regexp"
	"runtime"
	"strings"

	"github.com/service-dev/service/internal/problem"
)

// Name is the name of the service, and of its user on Linux.
const Name = "service-backend"

// States of a service.
const (
	StateAbsent   = "not_installed"
	StateStopped  = "stopped"
	StateStarting = "starting"
	StateRunning  = "running"
	StateFailed   = "failed"
	StateUnknown  = "unknown"
)

// Values of Report.Change.
const (
	Created   = "created"
	Updated   = "updated"
	Unchanged = "unchanged"
	Removed   = "removed"
)

// Report describes the service as its manager sees it.
type Report struct {
	System   string `json:"system"`
	Name     string `json:"name"`
	State    string `json:"state"`
	Change   string `json:"change,omitempty"` // made by install or uninstall
	AtBoot   bool   `json:"atBoot"`
	File     string `json:"file,omitempty"` // the description's path; empty for the Service Control Manager
	Program  string `json:"program,omitempty"`
	Settings string `json:"settings,omitempty"`
	Data     string `json:"data,omitempty"`
	User     string `json:"user,omitempty"`
	Outdated bool   `json:"outdated"` // install would write a different description
	PID      int    `json:"pid,omitempty"`
	Detail   string `json:"detail,omitempty"` // the manager's message about a failure
	// Created lists the files and accounts that install created for the server; Kept lists the ones that uninstall
	// kept.
	Created []string `json:"created,omitempty"`
	Kept    []string `json:"kept,omitempty"`
	// Logs is the command that shows the server's log, or the place of the log.
	Logs string `json:"logs,omitempty"`
}

// spec describes the program that the service manager runs.
type spec struct {
	Program  string
	Settings string // path of the settings file
	Data     string // directory that the server writes to
	User     string
	Stop     int // seconds that the server may take to stop
}

var (
	plainPath  = regexp.MustCompile(`^/[A-Za-z0-9/._+@-]*$`)
	spacedPath = regexp.MustCompile(`^[A-Za-z0-9/\\:._+@() -]+$`)
	plainUser  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)
)

// validate rejects values with characters that have a meaning in a unit file or a shell script.
func (s spec) validate(goos string) error {
	pattern := plainPath
	if goos == "darwin" || goos == "windows" { // these descriptions are not scripts
		pattern = spacedPath
	}
	for _, path := range []string{s.Program, s.Settings, s.Data} {
		if !pattern.MatchString(path) || goos == "darwin" && strings.Contains(path, "--") { // -- would end an XML comment
			return problem.New(problem.CodeServiceUnsupported, "a service description cannot contain the path "+path,
				"Use an absolute path of letters, digits and / . _ + @ -.")
		}
	}
	if goos != "windows" && !plainUser.MatchString(s.User) {
		return problem.New(problem.CodeServiceUser, "a service cannot run as the user "+s.User,
			"Use a name of letters, digits, - and _.")
	}
	return nil
}

// Defaults returns the default settings file, data directory and user of a service on this system.
func Defaults() (settings, data, userName string) { return defaults(runtime.GOOS) }

func defaults(goos string) (settings, data, userName string) {
	switch goos {
	case "darwin":
		return "/usr/local/etc/service/backend.yaml", "/usr/local/var/service-backend", "_servicebackend"
	case "windows":
		dir := programData()
		return dir + `\service\backend.yaml`, dir + `\service\data`, `NT SERVICE\` + Name
	}
	return "/etc/service/backend.yaml", "/var/lib/" + Name, Name
}

// lookup returns the user, or nil if there is no such user.
func lookup(name string) (*user.User, error) {
	u, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if errors.As(err, &unknown) {
		return nil, nil
	}
	return u, err
}
