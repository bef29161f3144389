package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/passkey"
)

// serveOnce requests a new password for each address, and then for a canary address. It runs the service until the
// canary's mail has been sent, and drops that mail.
func (f *people) serveOnce(t *testing.T, emails ...string) error {
	t.Helper()
	canary := "canary-" + uuid.NewString()[:8]
	f.signUp(t, canary)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	for _, email := range append(emails, canary+"@example.org") {
		fatal(t, f.ForgotPassword(ctx, email))
	}
	go func() { done <- f.Serve(ctx) }()
	defer func() {
		cancel()
		noError(t, <-done)
	}()
	for {
		select {
		case <-f.box.woke:
		case <-time.After(30 * time.Second):
			return errors.New("nothing was mailed")
		}
		f.box.mu.Lock()
		last := len(f.box.sent) - 1
		if last >= 0 && f.box.sent[last].To == canary+"@example.org" {
			f.box.sent = f.box.sent[:last]
			f.box.mu.Unlock()
			return nil
		}
		f.box.mu.Unlock()
	}
}

func forgottenPassword(t *testing.T, f *people) {
	ada := f.verified(t, "ada")
	cookie := f.open(t, ada, account.ByPassword)
	want(t, "keep an identity", f.LinkIdentity(t.Context(), ada.ID, account.Identity{Provider: "acme", Subject: "1"},
		audit.Person()), nil)
	f.told(t, ada, "sign in")
	want(t, "no address", f.ForgotPassword(t.Context(), "ada"), account.ErrBadEmail)
	over, end := context.WithCancel(t.Context())
	end()
	for range 3 { // accepted requests must survive the end of the service
		want(t, "ask", f.ForgotPassword(t.Context(), "nobody@example.org"), nil)
	}
	want(t, "ask", f.ForgotPassword(t.Context(), ada.Email), nil)
	want(t, "a last round", f.Serve(over), nil)
	if n := len(f.box.take()); n != 1 {
		t.Errorf("%d mails were sent before the service ended, want 1", n)
	}
	want(t, "serve", f.serveOnce(t, "nobody@example.org", " ADA@example.org"), nil)
	token := f.token(t, ada.Email, "/reset")
	want(t, "a short password", errOf(f.ResetPassword(t.Context(), token, "short", account.Access{})),
		account.ErrBadPassword)
	must(f.ResetPassword(t.Context(), token, "another password", account.Access{}))(t)
	want(t, "a used link", errOf(f.ResetPassword(t.Context(), token, "another password", account.Access{})),
		account.ErrBadToken)
	want(t, "open browser", errOf(f.FindSession(t.Context(), cookie)), account.ErrNoSession)
	want(t, "old password", errOf(f.SignIn(t.Context(), ada.Email, password, "")), account.ErrBadCredentials)
	want(t, "new password", errOf(f.SignIn(t.Context(), ada.Email, "another password", "")), nil)
	if ids, err := f.Identities(t.Context(), ada.ID); err != nil || len(ids) != 1 {
		t.Errorf("identities of a verified account: got %v (error %v), want one", ids, err)
	}
	if sent := f.box.take(); len(sent) != 1 || sent[0].Link != "" {
		t.Errorf("got %d mails, want one notice without a link", len(sent))
	}
	late := must(f.ResetLink(t.Context(), ada.Email, audit.Operator()))(t)
	f.clock.pass(account.ResetLife)
	want(t, "an overdue link", errOf(f.ResetPassword(t.Context(), tokenOf(late), password, account.Access{})),
		account.ErrBadToken)
}

// madeByAnother tests that ada takes over, by mail, an account that mallory created with ada's address, and that
// mallory has no access left.
func madeByAnother(t *testing.T, f *people) {
	ada := f.signUp(t, "ada")
	id := account.Identity{Provider: "acme", Subject: "ada", Email: ada.Email, EmailVerified: true}
	want(t, "ada with her provider", errOf(f.SignInWith(t.Context(), id)), account.ErrUnverifiedAccount)
	want(t, "mallory's identity", f.LinkIdentity(t.Context(), ada.ID, account.Identity{Provider: "acme",
		Subject: "mallory"}, audit.Person()), nil)
	f.told(t, ada, "sign in")
	f.passkey(t, ada.ID, "mallory's")
	token := f.install(t, ada.ID)
	pending := must(f.links.Start(t.Context(), link.Requester{}))(t)
	want(t, "mallory approves", f.links.Approve(t.Context(), pending.UserCode, ada.ID), nil)
	cookie := f.open(t, ada, account.ByPassword)
	fatal(t, f.serveOnce(t, ada.Email))
	if got, err := f.ResetPassword(t.Context(), f.token(t, ada.Email, "/reset"), "ada's own password",
		account.Access{}); err != nil || !got.Verified() {
		t.Fatalf("verified %v (error %v), want true", got.Verified(), err)
	}
	want(t, "mallory's browser", errOf(f.FindSession(t.Context(), cookie)), account.ErrNoSession)
	want(t, "mallory's link", errOf(f.links.Authenticate(t.Context(), token)), link.ErrRevoked)
	want(t, "mallory's code", errOf(f.links.Poll(t.Context(), pending.DeviceCode)), link.ErrDenied)
	ids, err := f.Identities(t.Context(), ada.ID)
	keys, keyErr := f.store.PasskeyHolder(t.Context(), ada.ID)
	if len(ids)+len(keys.Passkeys) != 0 || err != nil || keyErr != nil {
		t.Errorf("identities %v and passkeys %v remain (%v, %v)", ids, keys.Passkeys, err, keyErr)
	}
	want(t, "ada with her provider, not linked", errOf(f.SignInWith(t.Context(), id)), account.ErrEmailTaken)
	want(t, "ada links it", f.LinkIdentity(t.Context(), ada.ID, id, audit.Person()), nil)
	if got, err := f.SignInWith(t.Context(), id); err != nil || got.ID != ada.ID {
		t.Errorf("sign in with ada's provider: got error %v, want ada's account", err)
	}
}

// resetRevokes tests that, for an account with a verified address, a new password revokes the selected access and keeps
// all other access.
func resetRevokes(t *testing.T, f *people) {
	for i, revoke := range []account.Access{{}, {Links: true}, {Passkeys: true}, {Identities: true}, account.AllAccess()} {
		ada := f.verified(t, "ada"+string(rune('a'+i)))
		want(t, "identity", f.LinkIdentity(t.Context(), ada.ID, account.Identity{Provider: "acme", Subject: ada.ID},
			audit.Person()), nil)
		f.passkey(t, ada.ID, "phone")
		token := f.install(t, ada.ID)
		pending := must(f.links.Start(t.Context(), link.Requester{}))(t)
		want(t, "approve", f.links.Approve(t.Context(), pending.UserCode, ada.ID), nil)
		page := must(f.ResetLink(t.Context(), ada.Email, audit.Operator()))(t)
		must(f.ResetPassword(t.Context(), tokenOf(page), "another password", revoke))(t)
		_, err := f.links.Authenticate(t.Context(), token)
		if revoked := errors.Is(err, link.ErrRevoked); revoked != revoke.Links {
			t.Errorf("%+v: the link reports %v, want ErrRevoked only if links were revoked", revoke, err)
		}
		_, err = f.links.Poll(t.Context(), pending.DeviceCode)
		if denied := errors.Is(err, link.ErrDenied); denied != revoke.Links {
			t.Errorf("%+v: the approved code reports %v, want ErrDenied only if links were revoked", revoke, err)
		}
		ids, err := f.Identities(t.Context(), ada.ID)
		keys, keyErr := f.store.PasskeyHolder(t.Context(), ada.ID)
		if err != nil || keyErr != nil || (len(ids) == 0) != revoke.Identities ||
			(len(keys.Passkeys) == 0) != revoke.Passkeys {
			t.Errorf("%+v: %d identities and %d passkeys remain (%v, %v), want only those not revoked", revoke, len(ids),
				len(keys.Passkeys), err, keyErr)
		}
		f.box.take()
	}
}

func passwords(t *testing.T, f *people) {
	ada := f.verified(t, "ada")
	mine, other := f.open(t, ada, account.ByPassword), f.open(t, ada, account.ByPassword)
	change := func(current, to string) error {
		return f.ChangePassword(t.Context(), ada.ID, current, to, mine, audit.Person())
	}
	want(t, "wrong one", change("wrong horse battery", "another password"), account.ErrBadCredentials)
	want(t, "short one", change(password, "short"), account.ErrBadPassword)
	want(t, "change", change(password, "another password"), nil)
	f.told(t, ada, "password")
	want(t, "this browser", errOf(f.FindSession(t.Context(), mine)), nil)
	want(t, "the other browser", errOf(f.FindSession(t.Context(), other)), account.ErrNoSession)
	want(t, "confirm", f.CheckPassword(t.Context(), ada.ID, "another password"), nil)
	want(t, "confirm with the old one", f.CheckPassword(t.Context(), ada.ID, password), account.ErrBadCredentials)
	want(t, "first password", f.SetPassword(t.Context(), ada.ID, password, "", audit.Person()), account.ErrHasPassword)
	bob := must(f.SignUpWith(t.Context(), account.Identity{Provider: "acme", Subject: "bob", Email: "bob@example.org",
		EmailVerified: true}))(t)
	want(t, "sign in without a password", errOf(f.SignIn(t.Context(), bob.Email, "", "")), account.ErrBadCredentials)
	want(t, "first password", f.SetPassword(t.Context(), bob.ID, password, "", audit.Person()), nil)
	want(t, "sign in with it", errOf(f.SignIn(t.Context(), bob.Email, password, "")), nil)
	if got := f.actions(t, ada.ID); got != "account.email_verified account.password_changed" {
		t.Errorf("audit actions: got %s, want email_verified and password_changed", got)
	}
}

// linksApart tests that a password link mailed to the old address becomes invalid when the address changes.
func linksApart(t *testing.T, f *people) {
	ada := f.verified(t, "ada")
	want(t, "ask", f.ChangeEmail(t.Context(), ada.ID, "ada@new.example", password, audit.Person()), nil)
	change := f.token(t, "ada@new.example", "/verify")
	want(t, "serve", f.serveOnce(t, ada.Email), nil)
	reset := f.token(t, ada.Email, "/reset")
	want(t, "verify with a reset link", f.Verify(t.Context(), ada.ID, reset), account.ErrBadToken)
	want(t, "the new address", f.Verify(t.Context(), ada.ID, change), nil)
	want(t, "the old address's link", errOf(f.ResetPassword(t.Context(), reset, "another password", account.Access{})),
		account.ErrBadToken)
}

// told expects exactly one new mail: a notice without a link, with the word in its subject.
func (f *people) told(t *testing.T, to account.Account, word string) {
	t.Helper()
	if sent := f.box.take(); len(sent) != 1 || sent[0].To != to.Email || sent[0].Link != "" ||
		!strings.Contains(sent[0].Subject, word) {
		t.Errorf("got %d mails, want one notice to %s with %q: %+v", len(sent), to.Email, word, sent)
	}
}

func identities(t *testing.T, f *people) {
	ada := f.verified(t, "ada")
	with := func(subject, email string, vouched bool) (account.Account, error) {
		return f.SignInWith(t.Context(), account.Identity{Provider: "acme", Subject: subject, Email: email,
			EmailVerified: vouched})
	}
	want(t, "an address the provider did not verify", errOf(with("1", ada.Email, false)), account.ErrUnverifiedEmail)
	want(t, "no address", errOf(with("1", "", true)), account.ErrUnverifiedEmail)
	want(t, "a new person", errOf(with("9", "new@example.org", true)), account.ErrNeedsConsent)
	want(t, "ada's address", errOf(with("1", " ADA@example.org", true)), account.ErrEmailTaken)
	want(t, "ada links it", f.LinkIdentity(t.Context(), ada.ID, account.Identity{Provider: "acme", Subject: "1",
		Email: " ADA@example.org", EmailVerified: true}, audit.Person()), nil)
	f.told(t, ada, "sign in")
	f.clock.pass(time.Hour)
	// The identity is known now, so the address does not matter.
	if got, err := with("1", "else@example.org", false); err != nil || got.ID != ada.ID {
		t.Errorf("ada signs in again: got account %v (error %v), want ada's", got.ID, err)
	}
	ids, err := f.Identities(t.Context(), ada.ID)
	if err != nil || len(ids) != 1 || !ids[0].UsedAt.Equal(f.clock.now()) ||
		strings.TrimSpace(ids[0].Email) != "ADA@example.org" {
		t.Errorf("identities: got %+v (error %v), want one that was just used", ids, err)
	}
	_, err = f.SignUpWith(t.Context(), account.Identity{Provider: "acme", Subject: "2", Email: ada.Email,
		EmailVerified: true})
	want(t, "sign up with a taken address", err, account.ErrEmailTaken)
	_, err = f.SignUpWith(t.Context(), account.Identity{Provider: "acme", Subject: "1", Email: "new@example.org",
		EmailVerified: true})
	want(t, "sign up with a taken identity", err, account.ErrIdentityTaken)
	eve, err := f.SignUpWith(t.Context(), account.Identity{Provider: "acme", Subject: "9", Email: "new@example.org",
		EmailVerified: true})
	if err != nil || !eve.Verified() || eve.HasPassword() || !eve.PrivacyAccepted.Equal(f.clock.now()) {
		t.Errorf("the new account: got %+v (error %v), want a verified one without a password", eve, err)
	}
	taken := account.Identity{Provider: "acme", Subject: "9"}
	want(t, "another's identity", f.LinkIdentity(t.Context(), ada.ID, taken, audit.Person()), account.ErrIdentityTaken)
	want(t, "one's own again", f.LinkIdentity(t.Context(), eve.ID, taken, audit.Person()), nil)
	f.PasskeyAdded(t.Context(), ada.ID)
	f.told(t, ada, "passkey") // no notice about the existing identity
	want(t, "another's to unlink", f.Unlink(t.Context(), ada.ID, "acme", "9", "", audit.Person()), account.ErrNotFound)
	unlinked(t, f, ada, eve)
	if got := f.actions(t, ada.ID); got != "account.email_verified account.identity_linked account.identity_unlinked" {
		t.Errorf("audit actions: got %s, want email_verified, identity_linked and identity_unlinked", got)
	}
}

// unlinked tests that ada's account becomes inaccessible to an identity that ada has unlinked, and to browsers that it
// signed in, except the one with which ada unlinks it.
func unlinked(t *testing.T, f *people, ada, eve account.Account) {
	byAcme, other := f.open(t, ada, account.ByOIDC+"acme"), f.open(t, ada, account.ByOIDC+"other")
	byPassword, byEve := f.open(t, ada, account.ByPassword), f.open(t, eve, account.ByOIDC+"acme")
	current := f.open(t, ada, account.ByOIDC+"acme")
	want(t, "unlink", f.Unlink(t.Context(), ada.ID, "acme", "1", current, audit.Person()), nil)
	want(t, "the provider's browser", errOf(f.FindSession(t.Context(), byAcme)), account.ErrNoSession)
	for name, cookie := range map[string]string{"current": current, "other": other, "password": byPassword, "eve's": byEve} {
		want(t, "the browser "+name, errOf(f.FindSession(t.Context(), cookie)), nil)
	}
	want(t, "sign in with the unlinked identity", errOf(f.SignInWith(t.Context(), account.Identity{Provider: "acme",
		Subject: "1", Email: ada.Email, EmailVerified: true})), account.ErrEmailTaken)
}

// answered returns the challenge of a ceremony that has had a response.
func (f *people) answered(t *testing.T) string {
	t.Helper()
	challenge := uuid.NewString()
	if ok, err := f.store.TryCeremony(t.Context(), challenge, f.clock.now().Add(time.Minute), f.clock.now(),
		5); err != nil || !ok {
		t.Fatalf("count a response: got %v (error %v), want true", ok, err)
	}
	return challenge
}

// ceremonies tests that the store counts responses, and accepts one of fifty concurrent correct ones.
func ceremonies(t *testing.T, f *people) {
	ada := f.signUp(t, "ada")
	key := f.passkey(t, ada.ID, "key")
	used := passkey.Stored{Passkey: passkey.Passkey{ID: key, UsedAt: f.clock.now()}, AccountID: ada.ID,
		Credential: []byte(`{}`)}
	challenge := f.answered(t)
	try := func() bool {
		ok, err := f.store.TryCeremony(t.Context(), challenge, f.clock.now().Add(time.Minute), f.clock.now(), 5)
		if err != nil {
			t.Error(err)
		}
		return ok
	}
	var tried, won atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if try() {
				tried.Add(1)
			}
			switch fresh, err := f.store.UsePasskey(t.Context(), used, 0, challenge); {
			case err == nil && fresh: // many devices always report the counter 0
				won.Add(1)
			case !errors.Is(err, passkey.ErrInvalid):
				t.Error(fresh, err)
			}
		})
	}
	wg.Wait()
	if tried.Load() > 4 || won.Load() != 1 {
		t.Errorf("%d more responses were counted, want at most 4; %d were accepted, want 1", tried.Load(), won.Load())
	}
	f.clock.pass(time.Minute)
	if f.answered(t); try() {
		t.Error("a finished ceremony was counted again by a machine whose clock is behind")
	}
	f.clock.pass(time.Hour)
	if f.answered(t); !try() {
		t.Error("an overdue ceremony is still stored")
	}
	want(t, "a ceremony without a response", errOf(f.store.UsePasskey(t.Context(), used, 0, "never answered")),
		passkey.ErrInvalid)
}

// passkey stores a passkey as package passkey would.
func (f *people) passkey(t *testing.T, accountID, name string) string {
	t.Helper()
	id := uuid.NewString()
	p := passkey.Stored{Passkey: passkey.Passkey{ID: id, Name: name, Host: "host.example", CreatedAt: f.clock.now()},
		AccountID: accountID, CredentialID: "credential-" + id, Credential: []byte(`{}`)}
	if err := f.store.InsertPasskey(t.Context(), p, passkey.MaxPasskeys, f.answered(t), audit.New(f.clock.now(), accountID,
		audit.Person(), "account.passkey_added", "", name)); err != nil {
		t.Fatal(err)
	}
	stored := must(f.store.PasskeyHolder(t.Context(), accountID))(t).Passkeys
	if last := stored[len(stored)-1]; last.ID == id && last.Host != p.Host {
		t.Errorf("passkey %s has the host %q, want %q", name, last.Host, p.Host)
	}
	return id
}

func lastWayIn(t *testing.T, f *people) {
	eve := must(f.SignUpWith(t.Context(), account.Identity{Provider: "acme", Subject: "1", Email: "eve@example.org",
		EmailVerified: true}))(t)
	unlink := func() error { return f.Unlink(t.Context(), eve.ID, "acme", "1", "", audit.Person()) }
	remove := func(id string) error {
		return f.store.DeletePasskey(t.Context(), id, audit.New(f.clock.now(), eve.ID, audit.Person(),
			"account.passkey_removed", "", "x"))
	}
	want(t, "the only one", unlink(), account.ErrLastWayIn)
	key := f.passkey(t, eve.ID, "phone")
	// Removing both concurrently must leave one.
	gone, kept := race(t, 2, isAny(account.ErrLastWayIn, passkey.ErrLastWayIn), func(i int) error {
		if i == 0 {
			return unlink()
		}
		return remove(key)
	})
	if gone != 1 || kept != 1 {
		t.Errorf("%d were removed and %d kept, want one each", gone, kept)
	}
	want(t, "a password", f.SetPassword(t.Context(), eve.ID, password, "", audit.Person()), nil)
	want(t, "an unknown passkey", remove("none"), passkey.ErrUnknown)
}

func passkeysOfMany(t *testing.T, f *people) {
	ada, bob := f.signUp(t, "ada"), f.signUp(t, "bob")
	var key string
	for range passkey.MaxPasskeys {
		key = f.passkey(t, ada.ID, "key")
	}
	more := passkey.Stored{Passkey: passkey.Passkey{ID: "more", CreatedAt: f.clock.now()}, AccountID: ada.ID,
		CredentialID: "more", Credential: []byte(`{}`)}
	entry := func(a account.Account) audit.Entry {
		return audit.New(f.clock.now(), a.ID, audit.Person(), "account.passkey_added", "", "more")
	}
	want(t, "one too many", f.store.InsertPasskey(t.Context(), more, passkey.MaxPasskeys, f.answered(t), entry(ada)),
		passkey.ErrTooMany)
	more.AccountID, more.CredentialID = bob.ID, "credential-"+key
	want(t, "a known credential", f.store.InsertPasskey(t.Context(), more, passkey.MaxPasskeys, f.answered(t), entry(bob)),
		passkey.ErrInvalid)
	want(t, "another's passkey", f.store.DeletePasskey(t.Context(), key, entry(bob)), passkey.ErrUnknown)
	used := passkey.Stored{Passkey: passkey.Passkey{ID: key, UsedAt: f.clock.now()}, AccountID: ada.ID,
		Credential: []byte(`{"a":1}`), SignCount: 4}
	for i, fresh := range []bool{true, false} {
		if got, err := f.store.UsePasskey(t.Context(), used, 0, f.answered(t)); err != nil || got != fresh {
			t.Errorf("use %d: got %v (error %v), want the first use to succeed", i, got, err)
		}
	}
	want(t, "no account", errOf(f.store.PasskeyHolder(t.Context(), "none")), passkey.ErrUnknown)
}
