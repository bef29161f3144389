package storetest

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

const wrong = "wrong horse battery"

// allowed returns the number of n wrong passwords that are checked, by processes that share only the database.
func (f *people) allowed(t *testing.T, n int, email, browser string) int {
	t.Helper()
	checked := 0
	for range n {
		another := account.New(account.Options{Store: f.store.accountStore, Hasher: hash, Log: slog.New(slog.DiscardHandler),
			Now: f.clock.now})
		_, err := another.SignIn(t.Context(), email, wrong, browser)
		var spent *account.TooManyGuessesError
		switch {
		case errors.Is(err, account.ErrBadCredentials):
			checked++
		case !errors.As(err, &spent) || spent.Wait <= 0 || spent.Wait > time.Hour:
			t.Fatalf("a wrong password: got %v, want a wait of at most an hour", err)
		}
	}
	return checked
}

// guesses tests that wrong passwords are counted per account, across processes, and that a stranger's wrong passwords
// do not lock the owner out.
func guesses(t *testing.T, f *people) {
	ada := f.signUp(t, "ada")
	for range 12 { // correct passwords do not count
		want(t, "the right password", errOf(f.SignIn(t.Context(), ada.Email, password, "")), nil)
	}
	for _, email := range []string{ada.Email, "nobody@example.org"} {
		if n := f.allowed(t, 30, email, ""); n != 10 {
			t.Errorf("%s: %d of 30 wrong passwords were checked, want 10", email, n)
		}
	}
	_, err := f.SignIn(t.Context(), " ADA@example.org", password, "")
	var spent *account.TooManyGuessesError
	if !errors.As(err, &spent) {
		t.Errorf("the right password after too many wrong ones: got %v, want the same error", err)
	}
	want(t, "a browser that signed in before", errOf(f.SignIn(t.Context(), ada.Email, password, "laptop")), nil)
	if n := f.allowed(t, 30, ada.Email, "phone"); n != 10 {
		t.Errorf("%d wrong passwords of a known browser were checked, want 10", n)
	}
	want(t, "another such browser", errOf(f.SignIn(t.Context(), ada.Email, password, "laptop")), nil)
	want(t, "another account", errOf(f.SignIn(t.Context(), f.signUp(t, "bob").Email, password, "")), nil)
	if err := f.serveOnce(t, ada.Email); err != nil || f.token(t, ada.Email, "/reset") == "" {
		t.Errorf("no reset link was mailed: %v", err)
	}

	f.clock.pass(spent.Wait)
	want(t, "after the announced wait", errOf(f.SignIn(t.Context(), ada.Email, password, "")), nil)
	f.clock.pass(time.Hour)
	if n := f.allowed(t, 12, ada.Email, ""); n != 10 {
		t.Errorf("an hour later %d wrong passwords were checked, want 10", n)
	}
	f.clock.pass(2 * time.Hour)
	want(t, "sweep", f.store.SweepGuesses(t.Context(), f.clock.now()), nil)
	if dump := f.store.dump(); strings.Contains(dump, "address:") || strings.Contains(dump, "browser:") {
		t.Error("counts are still stored after they have expired")
	}
}

// guessesAtOnce tests that every concurrent guess is counted.
func guessesAtOnce(t *testing.T, f *people) {
	errNone := errors.New("no guess is left")
	taken, _ := race(t, 50, isAny(errNone), func(int) error {
		wait, err := f.store.TakeGuess(t.Context(), "k", f.clock.now(), time.Minute, 10)
		if err == nil && wait > 0 {
			return errNone
		}
		return err
	})
	if taken != 10 {
		t.Errorf("%d of 50 concurrent guesses were allowed, want 10", taken)
	}
	for i, pass := range []time.Duration{0, 59 * time.Second, time.Second} {
		f.clock.pass(pass)
		wait, err := f.store.TakeGuess(t.Context(), "k", f.clock.now(), time.Minute, 10)
		if err != nil || (wait == 0) != (i == 2) {
			t.Errorf("step %d: got wait %s (error %v), want a wait except in step 2", i, wait, err)
		}
	}
	want(t, "return", f.store.ReturnGuess(t.Context(), "k", f.clock.now(), time.Minute), nil)
	if wait, err := f.store.TakeGuess(t.Context(), "k", f.clock.now(), time.Minute, 10); err != nil || wait != 0 {
		t.Errorf("after a guess was returned: got wait %s (error %v), want none", wait, err)
	}
}

// ownGuesses tests that someone at a signed-in browser gets no more guesses at the password than a stranger. All forms
// share one count.
func ownGuesses(t *testing.T, f *people) {
	ada := f.verified(t, "ada")
	forms := []func(password string) error{
		func(p string) error { return f.CheckPassword(t.Context(), ada.ID, p) },
		func(p string) error {
			return f.ChangePassword(t.Context(), ada.ID, p, "another password", "", audit.Person())
		},
		func(p string) error {
			return f.ChangeEmail(t.Context(), ada.ID, "new@example.org", p, audit.Person())
		},
	}
	for i := range 10 {
		want(t, fmt.Sprintf("guess %d", i), forms[i%3](wrong), account.ErrBadCredentials)
	}
	for i, form := range forms {
		var spent *account.TooManyGuessesError
		if err := form(password); !errors.As(err, &spent) {
			t.Errorf("form %d after ten wrong passwords: got %v, want TooManyGuessesError", i, err)
		}
	}
	f.clock.pass(time.Hour)
	want(t, "an hour later", forms[0](password), nil)
}
