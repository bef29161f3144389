//go:build unix

package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Mailed links, received by a real SMTP server, verify an address and reset a password. Each link works only once.
func TestMailedLinks_WorkOnce(t *testing.T) {
	t.Parallel()
	mail := startMail(t)
	b := startBackend(t, newPostgres(t), "SERVICE_BACKEND_SMTP_HOST=127.0.0.1", "SERVICE_BACKEND_SMTP_PORT="+mail.port,
		"SERVICE_BACKEND_SMTP_FROM=Service <service@example.org>", "SERVICE_BACKEND_SMTP_TLS=none")
	ada := newPerson(t)
	ada.mail = mail
	ada.open(b.url + "/signup?next=/account/settings")
	ada.signUp("ada@example.org")
	if ada.at.Path != "/account/settings" || strings.Contains(strings.ToLower(ada.text()), "not confirmed") {
		t.Errorf("after sign-up: at %s, want /account/settings with a confirmed address\n%s", ada.at, ada.text())
	}
	reader := newPerson(t)
	signUpTellsNobodyWhoHasAnAccount(t, b, mail, reader)
	confirmNeedsSignIn(t, b, mail, ada, reader)
	resetWorksOnce(t, b, mail, ada)
}

// signUpTellsNobodyWhoHasAnAccount checks that the page does not reveal whether an address has an account. Only the
// mail does, and completing the sign-up requires the chosen password.
func signUpTellsNobodyWhoHasAnAccount(t *testing.T, b *remoteBackend, mail *mailbox, reader *person) {
	t.Helper()
	var told []string
	for _, email := range []string{"ada@example.org", "nobody@example.org"} {
		someone := newPerson(t)
		someone.open(b.url + "/signup")
		someone.submit("/signup", "email", email, "password", "mallory's battery", "accept", "yes")
		told = append(told, someone.at.String()+"\n"+strings.ReplaceAll(someone.text(), email, "ADDRESS"))
	}
	if told[0] != told[1] {
		t.Errorf("sign-up responds differently to a known and an unknown address:\n%s\n%s", told[0], told[1])
	}
	must(t, "the owner receives a mail", func() bool { return mail.told("ada@example.org", "have an account") })
	reader.open(b.url + "/signup/confirm?token=" + mail.token(t, "/confirm"))
	reader.submit("/signup/confirm", "password", password)
	if reader.status != http.StatusUnprocessableEntity || reader.at.RawQuery != "" {
		t.Errorf("sign-up completed without the chosen password: status %d at %s", reader.status, reader.at)
	}
}

// confirmNeedsSignIn checks that a new address can be confirmed only by a user who is signed in to the account,
// because someone else may read the mail.
func confirmNeedsSignIn(t *testing.T, b *remoteBackend, mail *mailbox, ada, reader *person) {
	t.Helper()
	ada.submit("/account/settings/email", "email", "ada@new.example", "password", password)
	verify := b.url + "/verify?token=" + mail.token(t, "/verify")
	reader.open(verify)
	if reader.at.Path != "/verify" || reader.at.RawQuery != "" ||
		!strings.Contains(reader.text(), "Sign in to confirm") {
		t.Errorf("signed out, the link leads to %s, want a request to sign in:\n%s", reader.at, reader.text())
	}
	stranger := newPerson(t)
	stranger.mail = mail
	stranger.open(b.url + "/signup")
	stranger.signUp("bob@example.org")
	stranger.open(verify)
	stranger.submit("/verify")
	if stranger.status != http.StatusUnprocessableEntity || !strings.Contains(stranger.text(),
		"signed in as bob@example.org") {
		t.Errorf("confirmation by another account: status %d, want 422\n%s", stranger.status, stranger.text())
	}
	reader.open(b.url + "/signin?next=/verify")
	reader.submit("/signin", "email", "ada@example.org", "password", password)
	reader.submit("/verify")
	ada.open(b.url + "/account/settings")
	if !strings.Contains(ada.text(), "ada@new.example") {
		t.Errorf("after the confirmation the page lacks the new address:\n%s", ada.text())
	}
	again := newPerson(t)
	again.open(verify)
	if again.page != nil && strings.Contains(again.at.RawQuery, "token") {
		t.Errorf("the token stays in the page's URL: %s", again.at)
	}
}

// resetWorksOnce checks that a reset link ends other sessions, replaces the password, and works only once.
func resetWorksOnce(t *testing.T, b *remoteBackend, mail *mailbox, ada *person) {
	t.Helper()
	elsewhere := newPerson(t)
	elsewhere.open(b.url + "/forgot")
	elsewhere.submit("/forgot", "email", "nobody@example.org")
	unknown := elsewhere.text()
	elsewhere.open(b.url + "/forgot")
	elsewhere.submit("/forgot", "email", "ada@new.example")
	if known := elsewhere.text(); strings.ReplaceAll(known, "ada@new.example", "nobody@example.org") != unknown {
		t.Errorf("the reset page responds differently to a known and an unknown address:\n%s\n%s", known, unknown)
	}
	reset := b.url + "/reset?token=" + mail.token(t, "/reset")
	elsewhere.open(reset)
	elsewhere.submit("/reset", "password", "another horse battery")
	ada.open(b.url + "/account/settings")
	if ada.at.Path != "/signin" {
		t.Errorf("after the reset, the old browser session is at %s, want /signin", ada.at)
	}
	for secret, want := range map[string]string{password: "/signin", "another horse battery": "/account/settings"} {
		someone := newPerson(t)
		someone.open(b.url + "/signin?next=" + url.QueryEscape("/account/settings"))
		someone.submit("/signin", "email", "ada@new.example", "password", secret)
		if someone.at.Path != want {
			t.Errorf("sign-in with %q led to %s, want /account/settings only with the new password", secret, someone.at)
		}
	}
	twice := newPerson(t)
	twice.open(reset)
	if twice.status == 200 {
		twice.submit("/reset", "password", "a third horse battery")
	}
	someone := newPerson(t)
	someone.open(b.url + "/signin")
	someone.submit("/signin", "email", "ada@new.example", "password", "a third horse battery")
	if someone.at.Path != "/signin" {
		t.Error("a used reset link worked a second time")
	}
}

// newSecrets creates the other secrets: a second browser session, a reset link, a rotated key, a new password.
func newSecrets(t *testing.T, b *remoteBackend, someone *person, mail *mailbox, secrets map[string]string) {
	t.Helper()
	other := newPerson(t)
	other.seen = someone.seen
	other.open(b.url + "/forgot")
	other.submit("/forgot", "email", "canary@example.org")
	secrets["reset link"] = mail.token(t, "/reset")
	other.open(b.url + "/reset?token=" + secrets["reset link"])
	other.submit("/reset", "password", secrets["second password"])
	someone.open(b.url + "/signin")
	someone.submit("/signin", "email", "canary@example.org", "password", secrets["second password"])
}
