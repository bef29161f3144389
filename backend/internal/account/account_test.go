package account

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
)

func TestPasswordHash(t *testing.T) {
	const password = "correct horse battery"
	one, err := hashPassword(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	two, err := hashPassword(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	if one == two || strings.Contains(one, password) || !strings.HasPrefix(one, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Error("the hashes are not salted argon2id hashes with m=19456, t=2, p=1")
	}
	for given, want := range map[string]bool{password: true, "Correct horse battery": false, password + " ": false,
		"": false} {
		if ok, err := checkPassword(t.Context(), one, given); err != nil || ok != want {
			t.Errorf("check %q: got %v (error %v), want the opposite", given, ok, err)
		}
	}
}

func TestCheckPassword_RefusesUnreadableHash(t *testing.T) {
	for _, stored := range []string{"", "x", "$argon2i$v=19$m=1,t=1,p=1$AAAA$AAAA", "$argon2id$v=19$m=1$AAAA",
		"$argon2id$v=19$m=1,t=1,p=1$!$AAAA", "$argon2id$v=19$m=1,t=1,p=1$AAAA$!"} {
		if ok, err := checkPassword(t.Context(), stored, "anything"); ok || err == nil {
			t.Errorf("check against %q: got %v (error %v), want an error", stored, ok, err)
		}
	}
}

// The decoy hash costs as much as a real one: it has the same parameters and lengths, and no known password.
func TestDecoyHash_HasRealParameters(t *testing.T) {
	hashed, err := hashPassword(t.Context(), "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	decoy, own := strings.Split(decoyHash, "$"), strings.Split(hashed, "$")
	for i := range own {
		if i < 4 && decoy[i] != own[i] || len(decoy[i]) != len(own[i]) {
			t.Errorf("part %d of the hash: decoy has %q, real hash has %q; want the same form", i, decoy[i], own[i])
		}
	}
	if ok, err := checkPassword(t.Context(), decoyHash, ""); ok || err != nil {
		t.Errorf("empty password against the decoy: got match %v, error %v, want no match", ok, err)
	}
}

func TestHashPassword_EndsWithContext(t *testing.T) {
	for _, ip := range []string{"192.0.2.1", "198.51.100.1"} {
		defer mustHash(t, WithAddress(t.Context(), ip))()
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := hashPassword(ended, "correct horse battery"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	// A sign-in with an unknown address waits in the same queue as one with a known address, because the service also
	// hashes its password, against the decoy.
	s := newService(t)
	dbtest.AddAccount(t, s.store.DB, "ada")
	dbtest.Exec(t, s.store.DB, "UPDATE accounts SET password_hash = $1", decoyHash)
	for _, email := range []string{"ada@example.org", "nobody@example.org"} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.SignIn(ctx, email, "correct horse battery", "")
			done <- err
		}()
		awaitQueued(1)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("sign-in as %s: got %v, want context.Canceled from the hashing queue", email, err)
		}
	}
}

// awaitQueued returns once n strangers wait for a hashing slot.
func awaitQueued(n int) {
	for _, now := strangers.Used(); now < n; _, now = strangers.Used() {
		runtime.Gosched()
	}
}

// mustHash occupies a hashing slot until the returned function is called.
func mustHash(t *testing.T, ctx context.Context) (leave func()) {
	t.Helper()
	leave, err := enterHashing(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

// An attacker who sends passwords from many addresses gets only a share of the hashing per network, and cannot delay
// users who have signed in before. A password that was not checked does not count as a wrong guess.
func TestHashing_IsShared(t *testing.T) {
	s := newService(t)
	const email, password = "ada@example.org", "correct horse battery"
	if _, err := s.SignUp(t.Context(), email, password); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waits sync.WaitGroup
	defer waits.Wait()
	defer cancel()
	from := func(network, n int) context.Context {
		return WithAddress(ctx, fmt.Sprintf("2001:db8:%x:%x::1", network, n))
	}
	flood := func(network int) {
		for n := range strangers.WaitingEach {
			waits.Go(func() {
				if leave, err := enterHashing(from(network, n)); err == nil {
					leave()
				}
			})
		}
	}
	defer mustHash(t, from(0, 0))()
	flood(0)
	awaitQueued(strangers.WaitingEach)
	if _, err := s.SignIn(from(0, 1000), email, password, ""); !errors.Is(err, ErrBusy) {
		t.Errorf("a network with its share in progress: got error %v, want ErrBusy", err)
	}
	if _, err := s.SignIn(from(1, 0), email, password, ""); err != nil {
		t.Errorf("another network: got error %v, want none", err)
	}
	defer mustHash(t, from(1, 0))()
	networks := strangers.Waiting / strangers.WaitingEach
	for network := 1; network < networks; network++ {
		flood(network)
	}
	awaitQueued(strangers.Waiting)
	if _, err := s.SignIn(from(networks, 0), email, password, ""); !errors.Is(err, ErrBusy) {
		t.Errorf("a new network in a flood from %d others: got error %v, want ErrBusy", networks, err)
	}
	guesses, err := db.QueryValue[int](t.Context(), s.store, "SELECT COUNT(*) FROM password_guesses")
	if err != nil || guesses != 0 {
		t.Errorf("%d guesses were spent (error %v), want none", guesses, err)
	}
	if _, err := s.SignIn(from(networks, 0), email, password, "known"); err != nil {
		t.Errorf("a browser that has signed in before: got error %v, want none", err)
	}
}

func TestSignUpRules(t *testing.T) {
	s := newService(t)
	for _, tc := range []struct {
		email, password string
		err             error
	}{
		{"ada@example.org", "123456789", ErrBadPassword},
		{"ada@example.org", strings.Repeat("x", 201), ErrBadPassword},
		{"ada@example.org", "ööööööööö", ErrBadPassword},
		{"", "correct horse", ErrBadEmail},
		{"ada", "correct horse", ErrBadEmail},
		{"ada@", "correct horse", ErrBadEmail},
		{"Ada <ada@example.org>", "correct horse", ErrBadEmail},
		{"ada@example.org, bob@example.org", "correct horse", ErrBadEmail},
		{"ada@example.org\r\nBcc: x@y", "correct horse", ErrBadEmail},
		{strings.Repeat("a", 250) + "@example.org", "correct horse", ErrBadEmail},
		{" ADA@Example.org", "0123456789", nil},
		{"bob+x@example.org", strings.Repeat("ö", 200), nil},
	} {
		a, err := s.SignUp(t.Context(), tc.email, tc.password)
		if !errors.Is(err, tc.err) {
			t.Errorf("sign up as %q: got error %v, want %v", tc.email, err, tc.err)
		}
		if err == nil && (a.Email != strings.ToLower(strings.TrimSpace(tc.email)) || !a.Active ||
			a.PrivacyAccepted.IsZero() || len(a.ID) != 36) {
			t.Errorf("%q: got %+v, want an active account with the normalised address", tc.email, a)
		}
	}
}

func TestSuspendedAccount(t *testing.T) {
	s := newService(t)
	ada, err := s.SignUp(t.Context(), "ada@example.org", "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	cookie, err := s.OpenSession(t.Context(), ada.ID, Visit{Method: ByPassword})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.store.WebSessions(t.Context(), ada.ID, s.now())
	if err != nil || len(stored) != 1 || strings.Contains(stored[0].Hash, cookie) {
		t.Errorf("stored sessions %+v (error %v), want one without the cookie", stored, err)
	}
	if got, err := s.FindSession(t.Context(), cookie); err != nil || got.ID != ada.ID {
		t.Fatalf("find session: got account %v, error %v, want ada", got, err)
	}
	if _, err := s.Suspend(t.Context(), ada.ID, audit.Operator()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SignIn(t.Context(), ada.Email, "wrong horse", ""); !errors.Is(err, ErrBadCredentials) {
		t.Errorf("wrong password for a suspended account: got %v, want ErrBadCredentials", err)
	}
	if _, err := s.SignIn(t.Context(), ada.Email, "correct horse", ""); !errors.Is(err, ErrSuspended) {
		t.Errorf("sign in to a suspended account: got %v, want ErrSuspended", err)
	}
	if _, err := s.FindSession(t.Context(), cookie); !errors.Is(err, ErrNoSession) {
		t.Errorf("session of a suspended account: got %v, want ErrNoSession", err)
	}
	if _, err := s.FindSession(t.Context(), "swb_nonsense"); !errors.Is(err, ErrNoSession) {
		t.Errorf("unknown cookie: got %v, want ErrNoSession", err)
	}
}

// Two addresses that differ only in lookalike letters belong to two accounts. Accounts stored with the old folding are
// still found.
func TestFoldEmail_KeepsLookalikesApart(t *testing.T) {
	const password = "correct horse battery"
	s := newService(t)
	kim, err := s.SignUp(t.Context(), "Kim@Example.org", password)
	if err != nil || kim.Email != "kim@example.org" {
		t.Fatalf("got %+v (error %v), want kim's account", kim, err)
	}
	const kelvin = "\u212Aim@example.org" // strings.ToLower converts this to kim@example.org
	if _, err := s.SignIn(t.Context(), kelvin, password, ""); !errors.Is(err, ErrBadCredentials) {
		t.Errorf("sign in with a lookalike address: got %v, want ErrBadCredentials", err)
	}
	if a, err := s.Find(t.Context(), kelvin); !errors.Is(err, ErrNotFound) {
		t.Errorf("find a lookalike address: got account %q, error %v, want ErrNotFound", a.Email, err)
	}
	if _, err := s.ResetLink(t.Context(), kelvin, audit.Operator()); !errors.Is(err, ErrNotFound) {
		t.Errorf("reset link for a lookalike address: got %v, want ErrNotFound", err)
	}
	_, err = s.SignInWith(t.Context(), Identity{Provider: "acme", Subject: "1", Email: kelvin, EmailVerified: true})
	if !errors.Is(err, ErrNeedsConsent) {
		t.Errorf("provider sign-in with a lookalike address: got %v, want ErrNeedsConsent", err)
	}
	other, err := s.SignUp(t.Context(), kelvin, password)
	if err != nil || other.Email != kelvin || other.ID == kim.ID {
		t.Errorf("got %+v (error %v), want a second account", other, err)
	}
	for typed, id := range map[string]string{"KIM@example.ORG": kim.ID, kelvin: other.ID} {
		if a, err := s.SignIn(t.Context(), typed, password, ""); err != nil || a.ID != id {
			t.Errorf("sign in as %s: got %q (error %v), want the account of this address", typed, a.Email, err)
		}
	}
	// Earlier versions folded every letter and stored the address in this form.
	dbtest.AddAccount(t, s.store.DB, "old")
	dbtest.Exec(t, s.store.DB, "UPDATE accounts SET email = $1, password_hash = $2 WHERE id = 'old'",
		"\u00e4da@example.org", kim.PasswordHash)
	for _, typed := range []string{"\u00c4da@example.org", "\u00e4DA@example.org"} {
		if a, err := s.SignIn(t.Context(), typed, password, ""); err != nil || a.ID != "old" {
			t.Errorf("sign in as %s: got %q (error %v), want the old account", typed, a.Email, err)
		}
		if a, err := s.Find(t.Context(), typed); err != nil || a.ID != "old" {
			t.Errorf("find %s: got %q (error %v), want the old account", typed, a.Email, err)
		}
	}
	_, err = s.SignInWith(t.Context(), Identity{Provider: "acme", Subject: "2", Email: "\u00c4da@example.org",
		EmailVerified: true})
	if !errors.Is(err, ErrNeedsConsent) {
		t.Errorf("provider sign-in with the other spelling: got %v, want ErrNeedsConsent", err)
	}
}
