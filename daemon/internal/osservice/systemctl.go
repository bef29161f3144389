package osservice

import (
	"context"
	"errors"
	"os/exec"
	"strconv"

	"github.com/service-dev/service/internal/problem"
)

// shown holds systemd's properties of the two units.
type shown struct{ socket, service map[string]string }

func stateOf(u shown) (state string, pid int, detail string) {
	pid, _ = strconv.Atoi(u.service["MainPID"])
	switch {
	case u.service["ActiveState"] == "active" || u.service["ActiveState"] == "activating" && pid > 0:
		return StateRunning, pid, ""
	case u.service["ActiveState"] == "failed":
		return StateFailed, 0, u.service["Result"]
	case u.socket["ActiveState"] == "failed":
		return StateFailed, 0, u.socket["Result"]
	case u.socket["ActiveState"] == "active":
		return StateListening, 0, ""
	}
	return StateStopped, 0, ""
}

func (s *systemd) show(ctx context.Context) (shown, error) {
	const names = "Id,LoadState,LoadError,ActiveState,SubState,UnitFileState,MainPID,Result,FragmentPath"
	o := s.run(ctx, "systemctl", "--user", "show", "--property="+names, s.socket(), s.service())
	if o.code != 0 {
		return shown{}, s.unavailable(o)
	}
	var u shown
	for _, unit := range properties(o.out) {
		switch unit["Id"] {
		case s.socket():
			u.socket = unit
		case s.service():
			u.service = unit
		}
	}
	if u.socket == nil || u.service == nil {
		return shown{}, problem.New(problem.CodeServiceManagerRefused, "systemd's response cannot be read",
			"Check `systemctl --user status "+s.service()+"`.")
	}
	return u, nil
}

// answers returns an error unless this user's systemd responds.
func (s *systemd) answers(ctx context.Context) error {
	if o := s.run(ctx, "systemctl", "--user", "show", "--property=Version"); o.code != 0 {
		return s.unavailable(o)
	}
	return nil
}

func (s *systemd) unavailable(o outcome) error {
	if o.code < 0 {
		if errors.Is(o.err, exec.ErrNotFound) {
			return problem.New(problem.CodeNoServiceManager, "this system has no systemd: systemctl was not found", onDemand)
		}
		return problem.New(problem.CodeNoServiceManager, "ask systemd: "+o.err.Error(), "Try again.")
	}
	return problem.New(
		problem.CodeNoServiceManager, "systemd does not respond for this user: "+o.message(),
		"Log in again (on the desktop or with ssh), or run `loginctl enable-linger`. "+onDemand,
	)
}

// all runs systemctl commands until one fails.
func (s *systemd) all(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		o := s.run(ctx, "systemctl", append([]string{"--user", "--quiet"}, args...)...)
		if o.code < 0 {
			return s.unavailable(o)
		}
		if o.code != 0 {
			return problem.New(problem.CodeServiceManagerRefused, "systemctl "+args[0]+": "+o.message(),
				"Check `systemctl --user status "+s.service()+"` and `journalctl --user -u "+s.service()+"`.")
		}
	}
	return nil
}
