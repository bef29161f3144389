package term

import (
	"fmt"
	"time"
)

// Never is what stands where a token has no end.
const Never = "never"

// Dash stands for what is not known.
func Dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Ago tells an age given in milliseconds; -1 is "not yet".
func Ago(ms int64) string {
	if ms < 0 {
		return "not yet"
	}
	return Span(time.Duration(ms)*time.Millisecond) + " ago"
}

// Checked tells how long ago a link was checked, in milliseconds; -1 for never.
func Checked(ms int64) string {
	if ms < 0 {
		return "not checked yet"
	}
	return "checked " + Ago(ms)
}

// Span tells a length of time roughly.
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

// LinkState tells a link's state in words.
func LinkState(state string) string {
	switch state {
	case "linked":
		return "linked"
	case "not_linked":
		return "not linked"
	case "revoked":
		return "revoked by the backend"
	case "expired":
		return "expired"
	case "corrupt":
		return "not linked (auth.json cannot be read)"
	case "other_backend":
		return "not linked at this backend"
	}
	return state
}

// NextStep is what a person does about a link's state; empty when all is well.
func NextStep(state string) string {
	switch state {
	case "linked":
		return ""
	case "corrupt":
		return "run `servicectl login` to replace auth.json, or `servicectl logout` to delete it"
	}
	return "run `servicectl login`"
}
