package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Questions about a new password and what it revokes.
const (
	PasswordAgainQuestion  = "The same password again: "
	PasswordsDifferMessage = "the two passwords differ"
)

// PasswordQuestion asks for the new password of an account.
func PasswordQuestion(email string) string { return "New password for " + email + ": " }

// RevokeLinksQuestion asks whether a new password also unlinks agents.
func RevokeLinksQuestion(links int) string {
	return fmt.Sprintf("The account has %s, perhaps this machine's. Unlink as well?", Count(links, "linked agent"))
}

// RemovePasskeysQuestion asks whether a new password also removes passkeys.
func RemovePasskeysQuestion(passkeys int) string {
	return fmt.Sprintf("The account has %s. Remove as well?", Count(passkeys, "passkey"))
}

// PasswordReset is the outcome of a password reset. HadLinks and HadPasskeys are the numbers before the reset.
type PasswordReset struct {
	Email, SignInURL          string
	Browsers, Links, Passkeys int
	HadLinks, HadPasskeys     int
}

// PasswordReset prints what a password reset ended, and the access that remains.
func (t *Terminal) PasswordReset(r PasswordReset) {
	t.Say("Changed the password of %s.", r.Email)
	ended := []string{"browsers signed out: " + fmt.Sprint(r.Browsers)}
	if r.HadLinks > 0 {
		ended = append(ended, endedOr(r.Links, r.HadLinks, "linked agents", "unlinked", "stay linked"))
	}
	if r.HadPasskeys > 0 {
		ended = append(ended, endedOr(r.Passkeys, r.HadPasskeys, "passkeys", "removed", "stay valid"))
	}
	for _, line := range ended {
		t.Say("  %s", line)
	}
	if r.SignInURL != "" {
		t.Next("sign in at %s", r.SignInURL)
	}
}

// endedOr returns the number of items that were ended or, if none were, the number that remain.
func endedOr(ended, had int, what, did, still string) string {
	if ended > 0 {
		return fmt.Sprintf("%s %s: %d", what, did, ended)
	}
	return fmt.Sprintf("%s that %s: %d", what, still, had)
}

// PasswordRefused prints the reason why a password is not accepted, before the next attempt.
func (t *Terminal) PasswordRefused(why string) {
	first, size := utf8.DecodeRuneInString(why)
	t.Remark("%s. Try again.", string(unicode.ToUpper(first))+strings.TrimSuffix(why[size:], "."))
}
