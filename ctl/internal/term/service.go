package term

import (
	"fmt"
	"strings"
)

// Service is the state of the daemon's service according to serviced.
type Service struct {
	System         string   `json:"system"`
	Name           string   `json:"name"`
	State          string   `json:"state"` // not_installed, stopped, listening, running, failed, unknown
	Change         string   `json:"change,omitempty"`
	AtLogin        bool     `json:"atLogin"`
	Files          []string `json:"files"`
	Program        string   `json:"program,omitempty"`
	ProgramMissing bool     `json:"programMissing"`
	Outdated       bool     `json:"outdated"`
	PID            int      `json:"pid,omitempty"`
	Detail         string   `json:"detail,omitempty"`
}

// ServedBy describes the running daemon.
type ServedBy struct {
	PID             int    `json:"pid"`
	Version         string `json:"version"`
	Managed         bool   `json:"managed"`
	SocketActivated bool   `json:"socketActivated"`
}

// ServiceReport prints the result of an action, or the status, with the next step.
func (t *Terminal) ServiceReport(action string, s Service, by *ServedBy) {
	if action == "uninstall" {
		t.Say("The service is no longer installed. Clients start the daemon on demand.")
		for _, path := range s.Files {
			t.Say("  removed %s", path)
		}
		return
	}
	switch s.Change {
	case "created":
		t.Say("The service is installed.")
	case "updated":
		t.Say("The service was installed with different settings and is now updated.")
	case "unchanged":
		t.Say("The service was already installed.")
	}
	t.Pairs(serviceRows(s))
	if next := serviceFix(action, s, by); next != "" {
		t.Next("%s", next)
	}
}

func serviceRows(s Service) [][]string {
	rows := [][]string{{"service", serviceState(s)}, {"managed by", fmt.Sprintf("%s, as %s", s.System, s.Name)}}
	if s.State == "not_installed" {
		return rows
	}
	login := "no"
	if s.AtLogin {
		login = "yes"
	}
	rows = append(rows, []string{"at login", login}, []string{"program", Dash(s.Program)})
	if len(s.Files) > 0 {
		rows = append(rows, []string{"files", strings.Join(s.Files, ", ")})
	}
	return rows
}

// serviceState describes a state in words.
func serviceState(s Service) string {
	switch {
	case s.State == "not_installed":
		return "not installed"
	case s.State == "running":
		return fmt.Sprintf("running, pid %d", s.PID)
	case s.State == "listening":
		return "listening: the next client starts the daemon"
	case s.State == "stopped":
		return "stopped"
	case s.State == "failed":
		return "failed: " + Dash(s.Detail)
	case s.Detail != "":
		return "cannot tell: " + s.Detail
	}
	return "installed, not running"
}

// ServiceHealth describes the service in one line and returns the next step, or "" if there is none.
func ServiceHealth(s Service) (detail, next string) {
	if s.State == "not_installed" {
		return "not installed: clients start the daemon on demand", ""
	}
	detail = fmt.Sprintf("%s, managed by %s, as %s", serviceState(s), s.System, s.Name)
	if s.State == "unknown" && s.Detail == "" && !s.ProgramMissing && !s.Outdated { // Windows does not report the state
		return fmt.Sprintf("installed, managed by %s, as %s", s.System, s.Name), ""
	}
	return detail, serviceFix("status", s, nil)
}

// serviceFix returns the next step, or "" if there is none.
func serviceFix(action string, s Service, by *ServedBy) string {
	switch {
	case s.State == "not_installed":
		return "none is needed: clients start the daemon on demand; `servicectl service install` registers it"
	case s.ProgramMissing:
		return s.Program + " does not exist: run `servicectl service install`"
	case s.State == "unknown" && s.Detail != "":
		return "log in again (desktop or ssh), then repeat the command; until then clients start the daemon on demand"
	case s.State == "failed":
		return "read `servicectl daemon logs`, then run `servicectl service start`"
	case s.Outdated:
		return "the files differ from those of this version: run `servicectl service install`"
	case action == "stop":
		return "clients start a daemon on demand; `servicectl service start` or the next login starts the service again"
	case s.State == "stopped", s.State == "unknown" && by != nil && !by.Managed:
		return "run `servicectl service start`"
	case !s.AtLogin:
		return "it does not start at login: run `servicectl service install`"
	}
	return ""
}
