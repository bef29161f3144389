package term

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/proto/telemetry"
)

// Telemetry is the output of `telemetry status`. A zero time means never.
type Telemetry struct {
	Consent                        Consent
	LogFile, BackendURL, LastError string
	Notice, Uploaded, Next         time.Time
	Waiting, Count                 int
	Bytes, Cap, Dropped            int64
}

// Telemetry prints what is recorded, where it is sent, and which setting decides.
func (t *Terminal) Telemetry(s Telemetry, now time.Time) {
	upload := "off"
	if s.Consent.Upload {
		upload = "on"
	}
	notice, last := "not shown yet: it appears with the first tool result", "never"
	if !s.Notice.IsZero() {
		notice = "shown " + Ago(now.Sub(s.Notice).Milliseconds())
	}
	if !s.Uploaded.IsZero() {
		last = fmt.Sprintf("%s, %s", events(int64(s.Count)), Ago(now.Sub(s.Uploaded).Milliseconds()))
	}
	waiting := fmt.Sprintf("%s (%s of %s)", events(int64(s.Waiting)), size(s.Bytes), size(s.Cap))
	if !s.Next.IsZero() {
		waiting += ", next try in " + Span(max(0, s.Next.Sub(now)))
	}
	goes := s.BackendURL
	if goes == "" {
		goes = "nowhere: there is no backend on another machine"
	}
	rows := [][]string{
		{"upload", upload + ": " + Switch(s.Consent.By, s.Consent.Upload)},
		{"consent", s.Consent.State}, {"goes to", goes}, {"notice", notice}, {"waiting", waiting}, {"last upload", last},
	}
	if s.Dropped > 0 {
		rows = append(rows, []string{"lost", events(s.Dropped) + " since then"})
	}
	if s.LastError != "" {
		rows = append(rows, []string{"last try", s.LastError})
	}
	t.Pairs(append(rows, []string{"log", s.LogFile}))
	stop := ""
	if s.Consent.State != "declined" && s.BackendURL != "" {
		stop = "`service-mcp decline-privacy` stops the upload for good; "
	}
	t.Next("`servicectl telemetry tail` shows the events; %s`servicectl telemetry purge` erases", stop)
}

// switches describes the settings that can decide the upload, other than the user's own decision.
var switches = map[string]string{
	"SERVICE_TELEMETRY":   "SERVICE_TELEMETRY is off in this shell",
	"DO_NOT_TRACK":        "DO_NOT_TRACK is set in this shell",
	"CI":                  "CI is set in this shell",
	"SERVICE_BACKEND_URL": "SERVICE_BACKEND_URL in this shell names another backend than the daemon's configuration",
	"consent_unreadable": "your decision cannot be read; " +
		"record it again with `service-mcp accept-privacy` or `decline-privacy`",
	"embedded": "the embedded backend keeps everything on this machine",
	"notice":   "the first-run notice has not been shown yet; events wait until then",
	"default":  "nothing was declined",
}

// Switch describes the setting that decided about the upload. For an unknown setting, which a newer daemon may
// report, it returns only the name.
func Switch(by string, allowed bool) string {
	switch why, ok := switches[by]; {
	case ok:
		return why
	case by != "consent":
		return "decided by " + by
	case allowed:
		return "you agreed with accept-privacy"
	}
	return "you declined with decline-privacy"
}

// TelemetryEvent prints one line of the local log. It prints a line that is not a known event in quotes.
func (t *Terminal) TelemetryEvent(line []byte) {
	var e telemetry.Event
	if json.Unmarshal(line, &e) != nil {
		t.Row("%q", line)
		return
	}
	r, err := e.Record()
	if err != nil {
		t.Row("%q", line)
		return
	}
	at := time.UnixMilli(r.At).Local().Format("2006-01-02 15:04:05")
	var fields strings.Builder
	if d, ok := telemetry.Of(e.Name); ok {
		for _, f := range d.Fields {
			if value, ok := e.Fields[f.Name]; ok {
				fmt.Fprintf(&fields, "  %s=%s", f.Name, strings.Trim(string(value), `"`))
			}
		}
	}
	t.Row("%s  %s%s", at, e.Name, fields.String())
}

// NoTelemetry reports that no events are recorded yet.
func (t *Terminal) NoTelemetry(file string) { t.Remark("nothing is recorded yet (%s)", file) }

// Purged is the result of an erasure; Backend is erased, nothing or failed.
type Purged struct {
	Local, Waiting, Deleted int64
	Backend, Detail         string
	// Declined reports whether uploads are already declined.
	Declined bool
}

// Purged prints what was erased and what could not be erased.
func (t *Terminal) Purged(p Purged) {
	t.Say("Erased on this machine: %s from the log, %s waiting for upload.", events(p.Local), events(p.Waiting))
	switch p.Backend {
	case "erased":
		t.Say("Erased %s of this install from the backend.", events(p.Deleted))
	case "nothing":
		t.Say("No backend on another machine has events.")
	default:
		if p.Deleted > 0 {
			t.Say("Erased %s of this install from other backends.", events(p.Deleted))
		}
		t.Remark("The backend could not erase the events of this install: %s", p.Detail)
		t.Next("run `servicectl telemetry purge` again once the backend can be reached")
	}
	if p.Backend != "failed" && !p.Declined {
		t.Say("New events are still recorded; `service-mcp decline-privacy` stops their upload.")
	}
}

// Notice prints a notice after the output of a command.
func (t *Terminal) Notice(text string) {
	if text != "" {
		t.Remark("%s", block(text))
	}
}

func events(n int64) string {
	if n == 1 {
		return "1 event"
	}
	return fmt.Sprintf("%d events", n)
}

// size formats a number of bytes approximately.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
