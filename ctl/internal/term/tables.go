package term

import (
	"cmp"
	"fmt"
	"time"
)

// Never is printed for a token that does not expire.
const Never = "never"

// Dash returns "-" for an unknown value.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Ago formats an age in milliseconds; -1 means not yet.
func Ago(ms int64) string {
	if ms < 0 {
		return "not yet"
	}
	return Span(time.Duration(ms)*time.Millisecond) + " ago"
}

// Checked formats the time since a link was last checked, in milliseconds; -1 means never.
func Checked(ms int64) string {
	if ms < 0 {
		return "not checked yet"
	}
	return "checked " + Ago(ms)
}

// Span formats a duration approximately.
func Span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// linkStates maps the states of a link to descriptions.
var linkStates = map[string]string{
	"not_linked":    "not linked",
	"revoked":       "revoked by the backend",
	"corrupt":       "not linked (auth.json cannot be read)",
	"other_backend": "not linked at this backend",
}

// LinkState describes the state of a link.
func LinkState(state string) string { return cmp.Or(linkStates[state], state) }

// NextStep returns the next step for a state of a link, or "" if there is none.
func NextStep(state string) string {
	switch state {
	case "linked":
		return ""
	case "corrupt":
		return "run `servicectl login` to replace auth.json, or `servicectl logout` to delete it"
	}
	return "run `servicectl login`"
}
