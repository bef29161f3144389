package web

import (
	"net/mail"
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/internal/passwords"
)

// Modes of the account form.
const (
	signUp = "signup"
	signIn = "signin"
)

// Limits of input: passwords in characters, e-mail addresses in bytes (RFC 5321).
const (
	minPassword = passwords.Min
	maxPassword = passwords.Max
	maxEmail    = 254
)

// accountForm is the form to sign up or sign in, on its own page or on the activation page.
type accountForm struct {
	formErrors
	Mode     string
	Next     string // local path to continue to
	Email    string
	Accepted bool

	// Web.complete sets these. NeedsWord reports whether the form requires the sign-in word. SignedOut reports
	// whether it explains that all users were signed out. The other fields hold the sign-in methods of this backend.
	NeedsWord, SignedOut bool
	Providers            []providerButton
	Passkeys             string // URL to which the form posts a passkey's response
	Forgot               string

	// The method links sets these.
	Action string
	Other  string // URL of the other mode
	Min    int    // minimum length of a password, in characters
}

// links sets the URLs. here is the page that contains the form, or "" if the form has its own page.
func (f accountForm) links(here string) accountForm {
	f.Action = withNext("/"+f.Mode, f.Next)
	other := signIn
	if f.Mode == signIn {
		other = signUp
	}
	f.Other = withNext("/"+other, f.Next)
	if here != "" {
		f.Other = here + "&mode=" + other
	}
	f.Min = minPassword
	return f
}

// readForm returns the form and the password. The password is separate, so that it is never rendered into a page.
func readForm(c *call, mode string) (f accountForm, password string) {
	f = accountForm{Mode: mode, Next: nextOf(c), Accepted: c.PostFormValue("accept") != ""}
	f.Email = strings.TrimSpace(c.PostFormValue("email"))
	return f, c.PostFormValue("password")
}

func (f *accountForm) checkSignUp(password string) {
	if !isPlausibleEmail(f.Email) {
		f.add("email", badEmail)
	}
	f.checkPassword("password", password)
	if !f.Accepted {
		f.add("accept", needsConsent)
	}
}

// checkPassword checks the length of a new password.
func (f *formErrors) checkPassword(field, password string) {
	switch n := utf8.RuneCountInString(password); {
	case n < minPassword:
		f.add(field, "Use at least 10 characters. A few words in a row make a good password.")
	case n > maxPassword:
		f.add(field, "Use at most 200 characters.")
	}
}

// isPlausibleEmail reports whether s is one plain address without a display name.
func isPlausibleEmail(s string) bool {
	if len(s) > maxEmail || strings.ContainsAny(s, " \t\r\n\"<>") {
		return false
	}
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}

// passwordValue returns the posted password, or "" if it is too long.
func passwordValue(c *call) string {
	password := c.PostFormValue("password")
	if len(password) > 4*maxPassword {
		return ""
	}
	return password
}
