package term

import (
	"strings"
	"testing"
)

// TestServiceHealth checks that doctor reports the service in one line, with a next step only if there is something
// to do.
func TestServiceHealth(t *testing.T) {
	base := Service{System: "systemd", Name: "serviced", State: "running", PID: 7, AtLogin: true, Program: "/bin/serviced"}
	for name, c := range map[string]struct {
		change       func(*Service)
		detail, next string
	}{
		"running":       {func(*Service) {}, "running, pid 7, managed by systemd, as serviced", ""},
		"not installed": {func(s *Service) { *s = Service{State: "not_installed"} }, "not installed", ""},
		"failed":        {func(s *Service) { s.State, s.Detail = "failed", "exit-code" }, "failed: exit-code", "daemon logs"},
		"moved":         {func(s *Service) { s.ProgramMissing = true }, "running", "service install"},
		"outdated":      {func(s *Service) { s.Outdated = true }, "running", "service install"},
		"no bus": {func(s *Service) { s.State, s.Detail = "unknown", "no bus" }, "cannot tell: no bus",
			"log in again"},
		"Windows": {func(s *Service) { s.State = "unknown" }, "installed, managed by", ""},
	} {
		s := base
		c.change(&s)
		detail, next := ServiceHealth(s)
		if !strings.Contains(detail, c.detail) || !strings.Contains(next, c.next) || (next == "") != (c.next == "") {
			t.Errorf("%s: got %q, next step %q, want %q, %q", name, detail, next, c.detail, c.next)
		}
	}
}
