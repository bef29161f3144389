package osservice

import (
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/xml"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"unicode/utf16"

	"github.com/service-dev/service/internal/problem"
)

// scheduler runs the daemon as a Windows task. The task starts when the user logs on, in the user's session and with
// the user's rights. A Windows service would need an administrator and could not open the user's browser.
type scheduler struct {
	d    daemon
	user string // DOMAIN\name
	run  runner
}

func newScheduler(d daemon, user string, run runner) *scheduler {
	return &scheduler{d: d, user: user, run: run}
}

// accountName returns the user's account in the form that Windows uses.
func accountName() string {
	u, err := user.Current()
	if err != nil {
		return os.Getenv("USERDOMAIN") + `\` + os.Getenv("USERNAME")
	}
	return u.Username
}

// taskSign is part of every task that install created.
const taskSign = "Written by servicectl service install"

//go:embed templates/task.xml
var taskTemplate string

// taskXML returns the task's definition.
func taskXML(d daemon, user string) string {
	return expand(taskTemplate, "user", escaped(user), "program", escaped(d.program),
		"directory", escaped(filepath.Dir(d.program)))
}

// wide encodes s as schtasks expects: UTF-16, little-endian, with a byte order mark.
func wide(s string) []byte {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}

// taskProgram returns the program that a task starts, or "" if there is none. data is the output of `schtasks /Query
// /XML`.
func taskProgram(data string) string {
	var task struct {
		Command string `xml:"Actions>Exec>Command"`
	}
	if i := strings.Index(data, "<Task"); i >= 0 { // the header declares a wrong encoding
		data = data[i:]
	}
	if xml.Unmarshal([]byte(data), &task) != nil {
		return ""
	}
	return strings.Trim(task.Command, `"`)
}

func (s *scheduler) install(ctx context.Context) (Report, error) {
	if !s.d.usual {
		return Report{}, problem.New(problem.CodeServiceUnsupported,
			"a task cannot set variables, so it supports only the default state directory",
			"Unset SERVICE_CONFIG_DIR, or let clients start this directory's daemon on demand.")
	}
	if err := plain(s.d); err != nil {
		return Report{}, err
	}
	if err := plainTask(s.d); err != nil {
		return Report{}, err
	}
	before, err := s.status(ctx)
	if err != nil {
		return Report{}, err
	}
	change := Created
	switch {
	case before.State != StateAbsent && !before.Outdated:
		change = Unchanged
	case before.State != StateAbsent:
		change = Updated
	}
	if change != Unchanged {
		if err := s.create(ctx); err != nil {
			return Report{}, err
		}
	}
	return startChanged(ctx, s.start, change)
}

// create registers the task, which schtasks reads from a file.
func (s *scheduler) create(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "task")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "task.xml")
	if err := os.WriteFile(path, wide(taskXML(s.d, s.user)), 0o600); err != nil {
		return err
	}
	return s.must(s.run(ctx, "schtasks", "/Create", "/TN", s.d.name, "/XML", path, "/F"), "/Create")
}

func (s *scheduler) uninstall(ctx context.Context) (Report, error) {
	r, err := s.present(ctx, nothing())
	if err != nil {
		return r, err
	}
	s.run(ctx, "schtasks", "/End", "/TN", s.d.name)
	if err := s.must(s.run(ctx, "schtasks", "/Delete", "/TN", s.d.name, "/F"), "/Delete"); err != nil {
		return r, err
	}
	return Report{System: r.System, Name: r.Name, State: StateAbsent, Change: Removed, Files: []string{}}, nil
}

func (s *scheduler) start(ctx context.Context) (Report, error) {
	r, err := startable(s.status(ctx))
	if err != nil {
		return r, err
	}
	return r, s.must(s.run(ctx, "schtasks", "/Run", "/TN", s.d.name), "/Run")
}

func (s *scheduler) stop(ctx context.Context) (Report, error) {
	r, err := s.present(ctx, absent())
	if err != nil {
		return r, err
	}
	s.run(ctx, "schtasks", "/End", "/TN", s.d.name) // fails if the task is not running
	return r, nil
}

// present returns the status of a task. It returns the error missing if there is none.
func (s *scheduler) present(ctx context.Context, missing error) (Report, error) {
	r, err := s.status(ctx)
	if err == nil && r.State == StateAbsent {
		err = missing
	}
	return r, err
}

// status reports whether the task exists. It does not report whether the daemon is running, because schtasks prints
// that only in the system's language. Callers must ask the daemon itself.
func (s *scheduler) status(ctx context.Context) (Report, error) {
	r := Report{System: "task scheduler", Name: s.d.name, State: StateAbsent, Files: []string{}}
	o := s.run(ctx, "schtasks", "/Query", "/TN", s.d.name, "/XML")
	switch {
	case o.code < 0:
		return r, s.must(o, "/Query")
	case o.code != 0:
		return r, nil
	}
	task := strings.ReplaceAll(o.out, "\x00", "") // some versions of Windows print UTF-16
	if !strings.Contains(task, taskSign) {
		return r, problem.New(problem.CodeServiceFile,
			"the task "+s.d.name+" was not created by `servicectl service install`",
			"Rename or delete it in the Task Scheduler, then try again.")
	}
	r.State, r.AtLogin = StateUnknown, true
	r.setProgram(taskProgram(task))
	r.Outdated = r.Program != s.d.program
	return r, nil
}

func (s *scheduler) must(o outcome, action string) error {
	return must(o, "schtasks", action, "Open the Task Scheduler and check the task "+s.d.name+".")
}
