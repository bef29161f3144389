package term

// LoggedOut prints the result of a logout.
func (t *Terminal) LoggedOut(was bool, file string, revoked bool, revokeAt string) {
	if !was {
		t.Say("There was no link; nothing was deleted.")
		return
	}
	t.Say("Logged out. %s is deleted; the install id stays.", file)
	if revoked {
		t.Say("The backend revoked the token.")
	}
	t.stillValid(revokeAt)
}

// stillValid prints where to revoke a token that the backend could not revoke. It prints nothing if at is empty.
func (t *Terminal) stillValid(at string) {
	if at == "" {
		return
	}
	t.Remark("The backend could not be asked to revoke the old token. The daemon tries again while it runs.")
	t.Next("revoke it yourself at %s", at)
}

// Consent is a telemetry decision and its effect in this shell.
type Consent struct {
	State  string
	Upload bool
	By     string
	File   string
}

// Consent prints the recorded decision, and the setting of this shell that overrides it.
func (t *Terminal) Consent(c Consent) {
	if c.State == "accepted" {
		t.Say("Saved in %s: usage telemetry may be uploaded.", c.File)
	} else {
		t.Say("Saved in %s: no telemetry is uploaded; events are still recorded on this machine.", c.File)
	}
	if c.State == "accepted" && !c.Upload {
		t.Remark("Nothing is uploaded from this shell: %s.", Switch(c.By, false))
	}
}
