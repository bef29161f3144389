package term

import (
	"strings"
	"testing"
	"time"
)

// Control characters in the log are never printed to the terminal.
func TestTelemetryEvent_StripsControlCharacters(t *testing.T) {
	const event = `{"id":"01939d3a-6a53-7c4e-8f00-0123456789ab","at":"2026-01-02T03:04:05.678Z",` +
		`"name":"account.login_completed","fields":{"outcome":"success"}}`
	term, out := plain(0)
	term.TelemetryEvent([]byte(event))
	if got := out.String(); !strings.HasSuffix(got, "account.login_completed  outcome=success\n") ||
		strings.Contains(got, `"`) {
		t.Errorf("unexpected output %q", got)
	}
	for _, bad := range []string{
		strings.Replace(event, "2026-01-02T03:04:05.678Z", `\u001b[2J`, 1),
		strings.Replace(event, "account.login_completed", `\u001b[2J`, 1),
		strings.Replace(event, "success", "\u009b2J", 1),
		"\x1b[2J", `{"name":"\u001b[2J"}`, "null",
	} {
		term, out := plain(0)
		term.TelemetryEvent([]byte(bad))
		if got := out.String(); strings.ContainsAny(got, "\x1b\u009b") || got == "" {
			t.Errorf("%q was printed as %q, want no control characters", bad, got)
		}
	}
}

// The suggested next step must be possible: an upload that is permanently disabled cannot be stopped.
func TestTelemetry_NextSteps(t *testing.T) {
	for _, c := range []struct {
		state, url string
		stops      bool
	}{{"unset", "https://b.example", true}, {"accepted", "https://b.example", true},
		{"declined", "https://b.example", false}, {"unset", "", false}} {
		term, out := plain(0)
		term.Telemetry(Telemetry{Consent: Consent{State: c.state, By: "default"}, BackendURL: c.url}, time.Now())
		if got := strings.Contains(out.String(), "`service-mcp decline-privacy`"); got != c.stops {
			t.Errorf("%+v: unexpected next step:\n%s", c, out)
		}
	}
	if got := Switch("consent_unreadable", false); !strings.Contains(got, "cannot be read") ||
		strings.Contains(got, "declined") {
		t.Error(got)
	}
}
