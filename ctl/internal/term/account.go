package term

// LoggedOut says what logout did.
func (t *Terminal) LoggedOut(was bool, file string) {
	if was {
		t.Say("Logged out: %s is deleted, the install id stays.", file)
		return
	}
	t.Say("There was no link; nothing was deleted.")
}

// Consent is a telemetry decision and what follows from it here.
type Consent struct {
	State  string
	Upload bool
	By     string
	File   string
}

// Consent says what was recorded, and which switch of this shell wins over it.
func (t *Terminal) Consent(c Consent) {
	if c.State == "accepted" {
		t.Say("Recorded: usage telemetry may be uploaded (%s).", c.File)
	} else {
		t.Say("Recorded: no telemetry is uploaded; events are still written to this machine's log (%s).", c.File)
	}
	if c.State == "accepted" && !c.Upload {
		t.Remark("In this shell nothing is uploaded all the same: %s says so.", c.By)
	}
}
