package term

import (
	"bytes"
	"strings"
	"testing"
)

// Every entry that a purge deletes is listed on a row of its own.
func TestPurgeWarning_NamesEverything(t *testing.T) {
	has := map[string]bool{"sessions": true, "install.lock": true, "glasses.json.corrupt-20260101T000000Z": true}
	for _, loss := range losses {
		has[loss.name] = true
	}
	var out bytes.Buffer
	(&Terminal{Err: &out}).PurgeWarning("/home/ada/.service", has, 2, []string{"backend/notes.txt"})
	if got := strings.Count(out.String(), "\n  - "); got != len(has) {
		t.Errorf("%d rows for %d entries:\n%s", got, len(has), &out)
	}
	for _, want := range []string{"  - install.lock\n", "  - glasses.json.corrupt-",
		"sessions with events and pictures: 2\n", "kept: backend/notes.txt\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 80 {
			t.Errorf("too wide: %s", line)
		}
	}
	if len(has) != len(losses)+3 {
		t.Errorf("the warning changed its argument: %v", has)
	}
}

// A user who installed through a pipe has no install.sh, so the next step contains its address.
func TestUninstallReport_NamesTheScript(t *testing.T) {
	for download, want := range map[string]string{
		"": "close your coding agents, then remove the programs with `sh install.sh --uninstall`",
		"https://example.org/install.sh": "close your coding agents, then download https://example.org/install.sh and " +
			"remove the programs with `sh install.sh --uninstall`",
	} {
		var out, errs bytes.Buffer
		(&Terminal{Out: &out, Err: &errs}).UninstallReport(Uninstalled{
			RemovePrograms: "sh install.sh --uninstall", ScriptURL: download,
		})
		if !strings.Contains(errs.String(), want) {
			t.Errorf("got %q, want %q", errs.String(), want)
		}
	}
}

func TestUninstallReport_PrintsOnlyWhatWasDone(t *testing.T) {
	done := []string{"Removed the OS service.\n", "Stopped the daemon.\n", "Revoked the link to your account.\n"}
	for _, c := range []struct {
		outcome Uninstalled
		want    []string
	}{
		{Uninstalled{Service: true, Stopped: true, Link: LinkRevoked}, done},
		{Uninstalled{Failed: []string{"stop the daemon: process 42 is still running"}}, nil},
		{Uninstalled{}, nil}, // the daemon was not running
	} {
		var out, errs bytes.Buffer
		(&Terminal{Out: &out, Err: &errs}).UninstallReport(c.outcome)
		if want := strings.Join(c.want, ""); out.String() != "No coding agent was registered.\n"+want {
			t.Errorf("%+v: printed %q, want %q", c.outcome, &out, want)
		}
	}
}
