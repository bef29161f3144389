package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/term"
)

// uninstall --purge lists what will be lost and asks for confirmation. Without it, nothing changes; with it, the link
// is revoked first.
func TestUninstall_AsksOnATerminal(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	login := onTerminal(t, l.home, 80, nil, "login")
	login.await("Waiting for approval")
	found := activateURL.FindStringSubmatch(login.text())
	if found == nil {
		t.Fatalf("there is no URL on the terminal:\n%s", login.text())
	}
	l.approve(newPerson(t), found[0], "ada@example.org")
	login.exits(command.ExitYes)

	p := onTerminal(t, l.home, 80, nil, "uninstall", "--purge")
	p.answer("Delete all of this? [y/N] ", "")
	wantText(t, p.exits(command.ExitNo), "the link to your account; it is revoked", "the embedded backend",
		"nothing was changed")
	if _, err := os.Stat(filepath.Join(l.home, ".service", "auth.json")); err != nil {
		t.Fatalf("after the answer no: %v", err)
	}
	p = onTerminal(t, l.home, 80, nil, "uninstall", "--purge")
	p.answer("Delete all of this? [y/N] ", "y")
	shown := p.exits(command.ExitYes)
	wantText(t, shown, "Revoked the link to your account.", "Stopped the daemon.",
		"Deleted: "+filepath.Join(l.home, ".service"), "close your coding agents")
	if wide := tooWide(shown, 80); len(wide) > 0 {
		t.Errorf("lines are broken by the terminal:\n%v", wide)
	}
	if _, err := os.Stat(filepath.Join(l.home, ".service")); !os.IsNotExist(err) {
		t.Errorf("the state directory after the answer yes: %v", err)
	}
}

// An installed service that cannot be removed is reported with the reason. A missing service manager is not reported.
func TestUninstall_ReportsAServiceThatStays(t *testing.T) {
	t.Parallel()
	const noManager = `{"error":{"code":"no_service_manager","message":"systemd does not respond for this user"}}`
	for name, c := range map[string]struct {
		status  string
		reports bool
	}{
		"installed":  {`{"report":{"state":"unknown"}}`, true},
		"no manager": {noManager, false},
	} {
		program := filepath.Join(t.TempDir(), "serviced")
		script := "#!/bin/sh\ncase $2 in status) echo '" + c.status + "' ;; *) echo '" + noManager + "'; exit 2 ;; esac\n"
		if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		var done term.Uninstalled
		(&app{}).removeService(t.Context(), dialer.Daemon{Program: program}, &done)
		if done.Service || len(done.Failed) > 0 != c.reports {
			t.Errorf("%s: %+v, want a failure: %t", name, done, c.reports)
		}
	}
}
