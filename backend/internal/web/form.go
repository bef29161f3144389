package web

import (
	"net/http"
	"net/mail"
	"strings"
	"unicode/utf8"
)

// Modes of the account form.
const (
	signUp = "signup"
	signIn = "signin"
)

// Bounds of what people type: passwords by length only, in characters; e-mail addresses in bytes (RFC 5321).
const (
	minPassword = 10
	maxPassword = 200
	maxEmail    = 254
)

// accountForm is the form to sign up or in, on its own page or on the activation page.
type accountForm struct {
	Mode     string
	Next     string // local path to go to afterwards
	Email    string
	Accepted bool
	Problem  string            // about the form as a whole
	Errors   map[string]string // by field: email, password, accept, word
	// NeedsWord shows the field for the sign-in word, SignedOut why the person must sign in again; set by Web.ways.
	NeedsWord, SignedOut bool

	// Other ways in; set by Web.ways, empty where the backend has none.
	Providers []wayIn
	Passkeys  string // address of the form that a passkey's answer goes to
	Forgot    string

	Action string // set by links
	Other  string // address of the other mode; set by links
	Limits struct{ Min, Max int }
}

// links fills in the addresses. here is the page that shows the form: "" when it is the form's own page.
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
	f.Limits.Min, f.Limits.Max = minPassword, maxPassword
	return f
}

// Failed says whether the form comes back with something to mend.
func (f accountForm) Failed() bool { return f.Problem != "" || len(f.Errors) > 0 }

// readForm takes the posted fields; the password is returned apart and never goes back into a page.
func readForm(r *http.Request, mode string) (accountForm, string) {
	f := accountForm{Mode: mode, Next: nextOf(r), Errors: map[string]string{}}
	f.Email = strings.TrimSpace(r.PostFormValue("email"))
	f.Accepted = r.PostFormValue("accept") != ""
	return f, r.PostFormValue("password")
}

// checkSignUp notes beside each field what is wrong with it.
func (f *accountForm) checkSignUp(password string) {
	if !plausibleEmail(f.Email) {
		f.Errors["email"] = badEmail
	}
	switch n := utf8.RuneCountInString(password); {
	case n < minPassword:
		f.Errors["password"] = "Use at least 10 characters. A few words in a row make a good password."
	case n > maxPassword:
		f.Errors["password"] = "Use at most 200 characters."
	}
	if !f.Accepted {
		f.Errors["accept"] = "An account needs your agreement to the privacy policy."
	}
}

// plausibleEmail is a first look only: one plain address, no display name.
func plausibleEmail(s string) bool {
	if len(s) > maxEmail || strings.ContainsAny(s, " \t\r\n\"<>") {
		return false
	}
	a, err := mail.ParseAddress(s)
	return err == nil && a.Address == s
}
