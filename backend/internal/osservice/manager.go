package osservice

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/kardianos/service"

	"github.com/service-dev/service/internal/problem"
)

// manager describes one kind of service manager.
type manager struct {
	system string // its usual name
	name   string // the service's name in this manager
	path   string // the service description's path; empty if the manager uses no file
	mode   os.FileMode
	option string // kardianos/service's key for the description's text
	text   func(spec) string
	// others lists the paths where a package would install a service of the same name.
	others []string
	// boot is a pattern for a file that exists if the service starts at boot; empty if every installed service does.
	boot string
	// links is a pattern for files that kardianos/service leaves behind when it uninstalls.
	links string
	logs  func(spec) string
}

// unitDirs lists the directories where systemd looks for units, other than the one install writes to.
var unitDirs = []string{
	"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/run/systemd/system",
	"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
}

// managers maps kardianos/service's names to the supported service managers.
func managers() map[string]manager {
	unit := Name + ".service"
	script := filepath.Join("/etc/init.d", Name)
	m := map[string]manager{
		"linux-systemd": {
			system: "systemd", path: "/etc/systemd/system/" + unit, mode: 0o644,
			option: "SystemdScript", text: describe("systemd.service"),
			boot: "/etc/systemd/system/multi-user.target.wants/" + unit,
			logs: func(spec) string { return "journalctl -u " + Name },
		},
		"linux-openrc": {
			system: "OpenRC", path: script, mode: 0o755, option: "OpenRCScript", text: describe("openrc.sh"),
			boot: "/etc/runlevels/*/" + Name, logs: func(spec) string { return logFile },
		},
		"unix-systemv": {
			system: "SysV init", path: script, mode: 0o755, option: "SysvScript", text: describe("sysv.sh"),
			boot: "/etc/rc[2-5].d/S*" + Name, links: "/etc/rc[0-6].d/[SK][0-9][0-9]" + Name,
			logs: func(spec) string { return logFile },
		},
		"darwin-launchd": {
			system: "launchd", name: launchdLabel, path: "/Library/LaunchDaemons/" + launchdLabel + ".plist", mode: 0o644,
			option: "LaunchdConfig", text: describe("launchd.plist"),
			logs: func(s spec) string { return filepath.Join(s.Data, Name+".log") },
		},
		"windows-service": {
			system: "Windows", text: describeWindows,
			logs: func(spec) string { return "Event Viewer, Windows Logs, Application, source " + Name },
		},
	}
	for key, one := range m {
		if one.name == "" {
			one.name = Name
		}
		if key == "linux-systemd" {
			for _, dir := range unitDirs {
				one.others = append(one.others, filepath.Join(dir, unit))
			}
		}
		m[key] = one
	}
	return m
}

// detect returns the service manager that is running. root is the root of the file system. platform is the manager that
// kardianos/service detected, which may be installed but not running, for example in a container.
func detect(platform, root string) (manager, error) {
	m, ok := managers()[platform]
	sign := map[string]string{"systemd": "run/systemd/system", "OpenRC": "run/openrc", "SysV init": "etc/init.d"}[m.system]
	if _, err := os.Stat(filepath.Join(root, sign)); err != nil {
		ok = false
	}
	if m.system == "SysV init" { // kardianos/service falls back to SysV init
		first, _ := os.ReadFile(filepath.Join(root, "proc/1/comm"))
		_, err := exec.LookPath("service")
		ok = ok && err == nil && string(first) == "init\n"
	}
	if !ok {
		return manager{}, problem.New(problem.CodeNoServiceManager,
			"no supported service manager is running here: systemd, OpenRC, SysV init, launchd or Windows",
			"Start `service-backend --config FILE` with your own process manager; it shuts down cleanly on SIGTERM.")
	}
	return m, nil
}

// control is kardianos/service's handle for the service. It is an interface so that tests can let each action fail.
type control interface {
	Install() error
	Uninstall() error
	Start() error
	Stop() error
	Restart() error
	Status() (service.Status, error)
}

// config returns the kardianos/service configuration of service s with the description text.
func (m manager) config(s spec, text string) *service.Config {
	c := &service.Config{
		Name: m.name, DisplayName: Name, Description: "HTTP server of the service", Executable: s.Program, UserName: s.User,
		Arguments: []string{"--config", s.Settings}, Option: service.KeyValue{},
	}
	if m.path == "" {
		c.Description = text
		c.Option["OnFailure"], c.Option["OnFailureDelayDuration"], c.Option["OnFailureResetPeriod"] = "restart", "1s", 60
		return c
	}
	c.Option[m.option] = text
	return c
}

// open returns the handle for service s with the description text.
func (m manager) open(s spec, text string) (control, error) {
	return service.New(nil, m.config(s, text))
}

// read returns the registered description, or fs.ErrNotExist if there is none. It returns an error for a description
// that was not written by install. A description written by install takes precedence over one from a package.
func (m manager) read() (string, spec, error) {
	text, err := description(m.path, m.name)
	if errors.Is(err, fs.ErrNotExist) {
		if other := m.other(); other != "" {
			err = m.foreign(other)
		}
	}
	if err != nil {
		return "", spec{}, err
	}
	s, ours := parse(text)
	if !ours {
		return "", spec{}, m.foreign(m.path)
	}
	return text, s, nil
}

// other returns the path of a service of the same name that install did not write, or "".
func (m manager) other() string {
	for _, path := range m.others {
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return ""
}

// packageDirs are the directories where packages install units.
var packageDirs = []string{"/usr/lib/systemd/system", "/lib/systemd/system"}

func (m manager) foreign(path string) error {
	if path == "" {
		path = "the Windows service " + m.name
	}
	if slices.Contains(packageDirs, filepath.Dir(path)) {
		return problem.New(problem.CodeServiceNotOurs,
			path+" was not installed by `service-backend service install`, but by a package",
			"Correct the settings file that it names, then run `sudo systemctl enable --now "+m.name+"`.")
	}
	return problem.New(problem.CodeServiceNotOurs,
		path+" was not installed by `service-backend service install`, so it is not changed",
		"Manage it with "+m.system+" itself, or remove it first.")
}

// readFile reads a description. It refuses symbolic links, because systemd masks units with them.
func readFile(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", problem.New(problem.CodeServiceNotOurs,
			path+" was not written by `service-backend service install`, so it is not changed",
			"Remove it, or unmask the unit if it is masked.")
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// starts reports whether the service starts at boot.
func (m manager) starts() bool {
	if m.boot == "" {
		return true
	}
	found, _ := filepath.Glob(m.boot)
	return len(found) > 0
}

// state queries the service manager for the state of an installed service.
func (m manager) state(ctx context.Context, c control) (state string, pid int, detail string) {
	if m.system == "systemd" {
		return m.unitState(ctx) // kardianos/service reports a unit as running while systemd keeps restarting it
	}
	status, err := c.Status()
	switch {
	case status == service.StatusRunning:
		return StateRunning, 0, ""
	case status == service.StatusStopped,
		m.system == "SysV init" && errors.As(err, new(*exec.ExitError)): // its script exits with status 3
		return StateStopped, 0, ""
	case err != nil:
		return StateUnknown, 0, err.Error()
	}
	return StateUnknown, 0, "the service manager reported no state"
}

func (m manager) unitState(ctx context.Context) (state string, pid int, detail string) {
	const properties = "--property=ActiveState,SubState,MainPID,Result"
	cmd := exec.CommandContext(ctx, "systemctl", "show", properties, m.name+".service")
	out, err := cmd.Output()
	if err != nil {
		return StateUnknown, 0, "systemctl show: " + err.Error()
	}
	p := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		p[name] = value
	}
	pid, _ = strconv.Atoi(p["MainPID"])
	switch p["ActiveState"] {
	case "active", "reloading":
		return StateRunning, pid, ""
	case "activating", "deactivating":
		return StateStarting, pid, p["SubState"]
	case "failed":
		return StateFailed, 0, p["Result"]
	case "inactive":
		return StateStopped, 0, ""
	}
	return StateUnknown, 0, "cannot parse the output of systemctl show"
}

// refused wraps an error of the service manager with a fix hint. It returns nil for a nil error.
func (m manager) refused(action string, s spec, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return notRoot()
	}
	return problem.New(problem.CodeServiceManagerRefused, m.system+" could not "+action+" the service: "+err.Error(),
		"Read the log: "+m.logs(s)+".")
}

func notRoot() error {
	hint := "Run it with sudo."
	if runtime.GOOS == "windows" {
		hint = "Run it in a terminal that you opened as administrator."
	}
	return problem.New(problem.CodeNotRoot, "only an administrator can change a system service", hint)
}
