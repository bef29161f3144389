package term

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Outcomes for this machine's link.
const (
	LinkNone    = "none"
	LinkRevoked = "revoked"
	LinkUnknown = "not_revoked" // the backend did not confirm the revocation
)

// UnregisteredAgent is a coding agent whose entry was removed.
type UnregisteredAgent struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	File string `json:"file"`
}

// Uninstalled is the outcome of `uninstall`.
type Uninstalled struct {
	Agents  []UnregisteredAgent `json:"agents"`
	Service bool                `json:"service"` // whether the OS service was removed
	Stopped bool                `json:"-"`       // whether a daemon was running and was stopped
	Link    string              `json:"link,omitempty"`
	// Purged is the state directory whose files were deleted. Kept lists paths in it that the service did not create.
	Purged string   `json:"purged,omitempty"`
	Kept   []string `json:"kept,omitempty"`
	// Failed are the steps that failed, with the reason.
	Failed []string `json:"failed,omitempty"`
	// RemovePrograms is the command that removes the programs, whose directory is Programs; it may be
	// empty.
	RemovePrograms string `json:"removePrograms,omitempty"`
	// ScriptURL is the address of the script that the command runs, if known. A user who installed through a pipe has
	// no copy of the script.
	ScriptURL string `json:"scriptUrl,omitempty"`
	Programs  string `json:"programs"`
}

// Fail records a step that failed.
func (u *Uninstalled) Fail(step string, err error) {
	u.Failed = append(u.Failed, step+": "+err.Error())
}

// PurgeQuestion asks whether to delete the state directory.
const PurgeQuestion = "Delete all of this?"

// losses describes the entries of a state directory.
var losses = []struct{ name, what string }{
	{"auth.json", "the link to your account; it is revoked"},
	{"config.yaml", "your settings"},
	{"backend", "the embedded backend: its accounts, projects, keys and sessions"},
	{"fonts", "the fonts that you added"},
	{"adapters.json", "the list of adapters that you added"},
	{"adapters", "the copies of these adapters that run; their own files stay"},
	{"adapter.approved", "the approval of an adapter"},
	{"glasses.json", "the real glasses that you connected"},
	{"memory.json", "what apps remember about their users in local sessions"},
	{"glasses.uncleared", "the notes on glasses that may still show a picture"},
	{"consent", "your answer to the privacy notice"},
	{"install.json", "the anonymous id of this installation"},
	{"telemetry", "the local log of usage events"},
	{"log", "the daemon's log"},
	{"run", "the daemon's sockets, and the device codes that wait for approval"},
}

// PurgeWarning lists what deleting the state directory destroys: every entry in has.
func (t *Terminal) PurgeWarning(dir string, has map[string]bool, sessions int, others []string) {
	t.Remark("this deletes from %s:", dir)
	rest := maps.Clone(has)
	for _, loss := range losses {
		if rest[loss.name] {
			t.RemarkRow("  - %s", loss.what)
		}
		delete(rest, loss.name)
	}
	if rest["sessions"] {
		t.RemarkRow("  - your projects' ids, and local sessions with events and pictures: %d", sessions)
	}
	delete(rest, "sessions")
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		t.RemarkRow("  - %s", name)
	}
	if len(others) > 0 {
		t.Remark("Not created by the service and kept: %s", strings.Join(others, ", "))
	}
}

// UninstallReport prints what was done and how to remove the programs.
func (t *Terminal) UninstallReport(u Uninstalled) {
	for _, g := range u.Agents {
		t.Say("%s: removed from %s", g.Name, g.File)
	}
	if len(u.Agents) == 0 {
		t.Say("No coding agent was registered.")
	}
	if u.Service {
		t.Say("Removed the OS service.")
	}
	if u.Stopped {
		t.Say("Stopped the daemon.")
	}
	switch u.Link {
	case LinkRevoked:
		t.Say("Revoked the link to your account.")
	case LinkUnknown:
		t.Remark("the backend did not confirm that the link is revoked: revoke it on your account's dashboard")
	}
	switch {
	case len(u.Kept) > 0:
		t.Say("Deleted from %s; kept there: %s", u.Purged, strings.Join(u.Kept, ", "))
	case u.Purged != "":
		t.Say("Deleted: %s", u.Purged)
	}
	for _, problem := range u.Failed {
		t.Remark("%s", problem)
	}
	if len(u.Failed) > 0 {
		t.Next("fix the problems above, then run the command again")
		return
	}
	t.Next("%s", removalStep(u))
}

// removalStep returns how to remove the programs. The agents must be stopped first, because a running agent would start
// the daemon again.
func removalStep(u Uninstalled) string {
	step := "close your coding agents, then "
	if u.RemovePrograms == "" {
		return step + "delete the programs in " + u.Programs
	}
	if u.ScriptURL != "" {
		step += "download " + u.ScriptURL + " and "
	}
	return fmt.Sprintf("%sremove the programs with `%s`", step, u.RemovePrograms)
}
