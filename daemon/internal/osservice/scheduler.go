package osservice

import (
	"context"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// scheduler keeps the daemon as a task of Windows that runs at the person's logon, in their session and without more
// rights than they have. A Windows service would need an administrator, and could not open the person's browser.
type scheduler struct {
	d    daemon
	user string // DOMAIN\name
	run  runner
}

func newScheduler(d daemon, user string, run runner) *scheduler {
	return &scheduler{d: d, user: user, run: run}
}

// accountName is the person's account as Windows writes it.
func accountName() string {
	u, err := user.Current()
	if err != nil {
		return os.Getenv("USERDOMAIN") + `\` + os.Getenv("USERNAME")
	}
	return u.Username
}

// taskSign is in every task that install made, of whatever version.
const taskSign = "Written by servicectl service install"

// taskXML is the task's definition.
func taskXML(d daemon, user string) string {
	return `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>The service's daemon. ` + taskSign + `; servicectl service uninstall removes it.</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>` + escaped(user) + `</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>` + escaped(user) + `</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <AllowHardTerminate>true</AllowHardTerminate>
    <StartWhenAvailable>true</StartWhenAvailable>
    <Hidden>true</Hidden>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>5</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>` + escaped(d.program) + `</Command>
      <Arguments>run --managed</Arguments>
      <WorkingDirectory>` + escaped(filepath.Dir(d.program)) + `</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`
}

// wide is text as schtasks reads it: UTF-16, little end first, with a mark.
func wide(s string) []byte {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}

// taskProgram reads back which program a task starts, from what `schtasks /Query /XML` writes; empty when it cannot be
// told.
func taskProgram(data string) string {
	var task struct {
		Command string `xml:"Actions>Exec>Command"`
	}
	if i := strings.Index(data, "<Task"); i >= 0 { // the header names an encoding that the output does not have
		data = data[i:]
	}
	if xml.Unmarshal([]byte(data), &task) != nil {
		return ""
	}
	return strings.Trim(task.Command, `"`)
}

func (s *scheduler) install(ctx context.Context) (Report, error) {
	if !s.d.usual {
		return Report{}, &Error{CodeUnsupported, "a task carries no variables, so it serves the default directory only", "unset SERVICE_CONFIG_DIR, or let clients start this directory's daemon on demand"}
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
	r, err := s.start(ctx)
	r.Change = change
	return r, err
}

// create registers the task; schtasks reads it from a file.
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
	r, err := s.present(ctx, absent())
	switch {
	case err != nil:
		return r, err
	case r.ProgramMissing:
		return r, moved(r.Program)
	}
	return r, s.must(s.run(ctx, "schtasks", "/Run", "/TN", s.d.name), "/Run")
}

func (s *scheduler) stop(ctx context.Context) (Report, error) {
	r, err := s.present(ctx, absent())
	if err != nil {
		return r, err
	}
	s.run(ctx, "schtasks", "/End", "/TN", s.d.name) // one that does not run is refused, which is fine
	return r, nil
}

// present is status of a task that is there; missing is the error when there is none.
func (s *scheduler) present(ctx context.Context, missing error) (Report, error) {
	r, err := s.status(ctx)
	if err == nil && r.State == StateAbsent {
		err = missing
	}
	return r, err
}

// status cannot tell whether the daemon runs: schtasks says that in the language of the system only. The daemon itself
// can be asked.
func (s *scheduler) status(ctx context.Context) (Report, error) {
	r := Report{System: "task scheduler", Name: s.d.name, State: StateAbsent, Files: []string{}}
	o := s.run(ctx, "schtasks", "/Query", "/TN", s.d.name, "/XML")
	switch {
	case o.code < 0:
		return r, s.must(o, "/Query")
	case o.code != 0:
		return r, nil
	}
	task := strings.ReplaceAll(o.out, "\x00", "") // some versions write UTF-16 here
	if !strings.Contains(task, taskSign) {
		return r, &Error{CodeFile, "the task " + s.d.name + " was not made by `servicectl service install`", "rename or delete it in the Task Scheduler, then try again"}
	}
	r.State, r.AtLogin = StateUnknown, true
	r.Program = taskProgram(task)
	r.Outdated = r.Program != s.d.program
	r.ProgramMissing = r.Program != "" && !there(r.Program)
	return r, nil
}

func (s *scheduler) must(o outcome, what string) error {
	switch {
	case o.code == 0:
		return nil
	case errors.Is(o.err, exec.ErrNotFound):
		return &Error{CodeNoManager, "schtasks is not there", "nothing is lost: any client starts the daemon on demand"}
	}
	return &Error{CodeRefused, "schtasks " + what + ": " + o.said(), "open the Task Scheduler and look at the task " + s.d.name}
}
