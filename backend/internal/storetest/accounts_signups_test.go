package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

// mailAll runs the service until all pending mail is sent, and returns the mails.
func (f *people) mailAll(t *testing.T) []mail.Message {
	t.Helper()
	over, end := context.WithCancel(t.Context())
	end()
	want(t, "a last round", f.Serve(over), nil)
	return f.box.take()
}

// mailedSignUps tests that the mailed link and the chosen password turn a sign-up into an account exactly once.
func mailedSignUps(t *testing.T, f *people) {
	ask := func(email, password string) error {
		return f.RequestSignUp(t.Context(), email, password, "/activate?code=x")
	}
	want(t, "no address", ask("ada", password), account.ErrBadEmail)
	want(t, "a short password", ask("ada@example.org", "short"), account.ErrBadPassword)
	want(t, "mallory signs up with ada's address", ask("ada@example.org", "mallory's password"), nil)
	want(t, "ada asks", ask(" ADA@example.org", password), nil)
	sent := f.mailAll(t)
	if len(sent) != 2 || sent[0].To != "ada@example.org" || !strings.Contains(sent[0].Link,
		"https://service.example/signup/confirm?token=") {
		t.Fatalf("mails: got %+v, want two with a link to confirm", sent)
	}
	want(t, "before the link is used", errOf(f.SignIn(t.Context(), "ada@example.org", password, "")),
		account.ErrBadCredentials)
	mallorys, adas := tokenOf(sent[0].Link), tokenOf(sent[1].Link)
	if dump := f.store.dump(); strings.Contains(dump, adas) || strings.Contains(dump, password) {
		t.Error("the database contains a mailed link or a password")
	}
	_, _, err := f.FinishSignUp(t.Context(), mallorys, password)
	want(t, "ada opens mallory's link", err, account.ErrBadCredentials)
	_, _, err = f.FinishSignUp(t.Context(), "sml_nonsense", password)
	want(t, "nonsense", err, account.ErrBadToken)
	ada, next, err := f.FinishSignUp(t.Context(), adas, password)
	if err != nil || !ada.Verified() || ada.Email != "ada@example.org" || next != "/activate?code=x" {
		t.Fatalf("got account %+v, next %q (error %v), want ada's verified account and the activation page", ada, next, err)
	}
	if got, err := f.SignIn(t.Context(), ada.Email, password, ""); err != nil || got.ID != ada.ID {
		t.Errorf("sign in: got error %v, want ada's account", err)
	}
	for name, token := range map[string]string{"a used link": adas, "another sign-up with the address": mallorys} {
		for _, p := range []string{password, "mallory's password"} {
			_, _, err = f.FinishSignUp(t.Context(), token, p)
			want(t, name, err, account.ErrBadToken)
		}
	}

	want(t, "bob asks", ask("bob@example.org", password), nil)
	bobs := tokenOf(f.mailAll(t)[0].Link)
	f.signUp(t, "bob")
	_, _, err = f.FinishSignUp(t.Context(), bobs, password)
	want(t, "an address that now has an account", err, account.ErrEmailTaken)
	want(t, "carl asks", ask("carl@example.org", password), nil)
	carls := tokenOf(f.mailAll(t)[0].Link)
	for range 10 {
		_, _, err = f.FinishSignUp(t.Context(), carls, wrong)
		want(t, "a wrong password", err, account.ErrBadCredentials)
	}
	_, _, err = f.FinishSignUp(t.Context(), carls, password)
	if spent := (*account.TooManyGuessesError)(nil); !errors.As(err, &spent) {
		t.Errorf("after ten wrong passwords: got %v, want TooManyGuessesError", err)
	}
	f.clock.pass(account.VerifyLife)
	_, _, err = f.FinishSignUp(t.Context(), carls, password)
	want(t, "an overdue link", err, account.ErrBadToken)
}

// whoHasAnAddress tests that signing up with an address, or changing to it, has the same result whether or not the
// address has an account: only the mail to the address differs. It also tests that no user is flooded with mail.
func whoHasAnAddress(t *testing.T, f *people) {
	ada, bob := f.verified(t, "ada"), f.verified(t, "bob")
	for _, email := range []string{ada.Email, "nobody@example.org"} {
		for range 2 * account.MaxMails {
			want(t, "sign up as "+email, f.RequestSignUp(t.Context(), email, password, "/"), nil)
		}
		sent := f.mailAll(t)
		if len(sent) != account.MaxMails {
			t.Errorf("%s: %d mails within an hour, want account.MaxMails", email, len(sent))
		}
		for _, m := range sent {
			has := strings.Contains(m.Subject, "have an account")
			if m.To != email || has != (email == ada.Email) || strings.Contains(m.Link, "token=") == has {
				t.Errorf("wrong mail to %s: %s, %s", m.To, m.Subject, m.Link)
			}
		}
	}
	f.clock.pass(2 * time.Hour)

	want(t, "another's address", f.ChangeEmail(t.Context(), bob.ID, ada.Email, password, audit.Person()), nil)
	if sent := f.box.take(); len(sent) != 1 || sent[0].To != ada.Email || sent[0].Link != "" {
		t.Errorf("want one notice without a link to the owner: %+v", sent)
	}
	want(t, "nobody's address", f.ChangeEmail(t.Context(), bob.ID, "nobody@example.org", password, audit.Person()), nil)
	f.token(t, "nobody@example.org", "/verify")
	// Password links must not reveal whether an address has an account either.
	f.clock.pass(2 * time.Hour)
	for range account.MaxMails {
		want(t, "forgot", f.ForgotPassword(t.Context(), ada.Email), nil)
	}
	f.mailAll(t)
	want(t, "an address at its mail limit", f.ChangeEmail(t.Context(), bob.ID, ada.Email, password, audit.Person()),
		nil)
	if sent := f.box.take(); len(sent) != 0 {
		t.Errorf("%d mails were sent beyond the limit, want none", len(sent))
	}
}

// floodedAddress tests that concurrent sign-ups and address changes send no more mail to an address than sequential
// ones.
func floodedAddress(t *testing.T, f *people) {
	const email, asking = "victim@example.org", 4 * account.MaxMails
	now := f.clock.now()
	count := func(what string, ask func(i int) error) {
		t.Helper()
		var passed atomic.Int32
		var all sync.WaitGroup
		for i := range asking {
			all.Go(func() {
				switch err := ask(i); {
				case err == nil:
					passed.Add(1)
				case !errors.Is(err, account.ErrTooManyMails) && !errors.Is(err, account.ErrAddressMailed):
					t.Errorf("%s: got %v, want an error about too many mails", what, err)
				}
			})
		}
		all.Wait()
		if n := int(passed.Load()); n != account.MaxMails {
			t.Errorf("%s: %d mails to one address, want %d", what, n, account.MaxMails)
		}
	}
	count("signing up", func(i int) error {
		return f.store.InsertSignUp(t.Context(), account.PendingSignUp{Hash: fmt.Sprint("s", i), Email: email, CreatedAt: now,
			ExpiresAt: now.Add(account.VerifyLife)}, now.Add(-time.Hour), account.MaxMails)
	})
	var ids []string
	for i := range asking {
		a := account.Account{ID: fmt.Sprint("sender-", i), Email: fmt.Sprintf("sender-%d@example.org", i), Active: true,
			CreatedAt: now}
		want(t, "insert", f.store.InsertAccount(t.Context(), a), nil)
		ids = append(ids, a.ID)
	}
	count("changing to it", func(i int) error {
		return f.store.InsertMailToken(t.Context(), account.MailToken{Hash: fmt.Sprint("m", i), AccountID: ids[i],
			Purpose: "email", Email: email,
			CreatedAt: now, ExpiresAt: now.Add(account.VerifyLife)}, now.Add(-time.Hour), account.MaxMails)
	})
}
