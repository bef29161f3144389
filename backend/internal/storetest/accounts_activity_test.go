package storetest

import (
	"testing"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// signInActivity tests that the activity log shows each way to sign up and in, signing out, and linked agents. Failed
// attempts leave no entry.
func signInActivity(t *testing.T, f *people) {
	ada := f.signUp(t, "ada")
	want(t, "a second sign-up", errOf(f.SignUp(t.Context(), ada.Email, password)), account.ErrEmailTaken)
	for _, method := range []string{account.ByPassword, account.ByPasskey, account.ByMail, account.ByOIDC + "acme"} {
		f.open(t, ada, method)
	}
	secret := must(f.OpenSession(t.Context(), ada.ID, account.Visit{Method: account.ByPassword, UserAgent: "x",
		IP: "192.0.2.1", Browser: "Firefox on Linux"}))(t)
	want(t, "sign out", f.CloseSession(t.Context(), secret), nil)
	want(t, "sign out again", f.CloseSession(t.Context(), secret), nil)
	changed := account.Visit{Method: account.ByPassword, PasswordHash: "another"}
	want(t, "with a changed password", errOf(f.OpenSession(t.Context(), ada.ID, changed)), account.ErrBadCredentials)
	f.install(t, ada.ID)
	denied := must(f.links.Start(t.Context(), link.Requester{Host: "phone"}))(t)
	want(t, "deny", f.links.Deny(t.Context(), denied.UserCode), nil)
	f.store.exec("UPDATE accounts SET state = 'suspended' WHERE id = $1", ada.ID)
	want(t, "suspended", errOf(f.OpenSession(t.Context(), ada.ID, account.Visit{})), account.ErrSuspended)
	f.hasActivity(t, ada.ID, []string{
		"account.created: signed up with a password", "account.signed_in: with a password",
		"account.signed_in: with a passkey", "account.signed_in: with a mailed link", "account.signed_in: with acme",
		"account.signed_in: with a password in Firefox on Linux", "account.signed_out: ", "link.created: laptop · test",
	})

	id := account.Identity{Provider: "acme", Subject: "1", Email: "bob@example.org", EmailVerified: true}
	bob := must(f.SignUpWith(t.Context(), id))(t)
	id.Email = "other@example.org"
	want(t, "the identity again", errOf(f.SignUpWith(t.Context(), id)), account.ErrIdentityTaken)
	f.hasActivity(t, bob.ID, []string{"account.created: signed up with acme"})

	want(t, "ask", f.RequestSignUp(t.Context(), "carl@example.org", password, "/"), nil)
	carl, _, err := f.FinishSignUp(t.Context(), tokenOf(f.mailAll(t)[0].Link), password)
	want(t, "carl", err, nil)
	f.hasActivity(t, carl.ID, []string{"account.created: signed up with a password"})
}

// hasActivity compares the account's entries, oldest first. All were made by the account holder.
func (f *people) hasActivity(t *testing.T, accountID string, wanted []string) {
	t.Helper()
	log := &audit.Service{Store: f.store.auditStore, Now: f.clock.now}
	all := must(log.List(t.Context(), accountID, audit.Filter{Actor: audit.KindPerson}))(t)
	if len(all) != len(wanted) {
		t.Fatalf("got %d entries %+v, want %d", len(all), all, len(wanted))
	}
	for i, text := range wanted {
		e := all[len(all)-1-i]
		if got := e.Action + ": " + e.Summary; got != text || !e.At.Equal(f.clock.now()) {
			t.Errorf("entry %d: got %q at %v, want %q", i, got, e.At, text)
		}
	}
}
