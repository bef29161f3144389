// Package storetest is the conformance suite of the store: what every database engine must do for the features. It
// tests through the features' own services, so that the rules and the SQL are proved together. It knows no engine.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
)

// Store is what the suite needs; each feature's store and what tells whether the backend is busy.
type Store interface {
	link.CodeStore
	link.TokenStores
	account.Store
	PendingCodes(ctx context.Context, now time.Time) (int, error)
}

// Engine opens stores of one database engine.
type Engine struct {
	// Open gives a store on an empty database, and reopen, which closes it and opens the same database again.
	Open func(t *testing.T) (store Store, reopen func() Store)
	// Rounds is how often the races are run.
	Rounds int
}

// RunLinks holds the engine against the device-code machine.
func RunLinks(t *testing.T, e Engine) {
	t.Run("one winner of fifty polls", e.oneWinner)
	t.Run("states", e.states)
	t.Run("a taken code is drawn again", e.collisions)
	t.Run("grace", e.grace)
	t.Run("pacing is kept over a restart", e.pacing)
	t.Run("a token nobody received is revoked", e.unclaimed)
	t.Run("a first use and the sweep never both win", e.firstUse)
	t.Run("revocation", e.revocation)
	t.Run("suspended between approve and poll", e.suspended)
	t.Run("legacy tokens end", e.legacy)
	t.Run("trail", e.trail)
	t.Run("trail of revocations", e.trailRevokes)
	t.Run("trail is bounded", e.trailBounds)
	t.Run("accounts", e.accounts)
}

var hash = secret.NewHasher([]byte("a key of thirty-two bytes or more"))

// fixture is a service over a store, on a clock that the test holds.
type fixture struct {
	*link.Service
	clock *clock
	store Store
	ctx   context.Context
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newFixture(t *testing.T, store Store) *fixture {
	f := &fixture{clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, store: store, ctx: t.Context()}
	f.on(store)
	return f
}

func (f *fixture) on(store Store) {
	f.store = store
	f.Service = link.NewService(store, store, hash, link.Settings{
		CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second, Grace: 30 * time.Second, UnusedAfter: time.Minute,
	}, slog.New(slog.DiscardHandler), f.clock.now)
}

func (f *fixture) person(t *testing.T, name string) account.Account {
	t.Helper()
	a := account.Account{ID: name + "-id", Email: name + "@example.org", PasswordHash: "x", Active: true,
		PrivacyAccepted: f.clock.now(), CreatedAt: f.clock.now()}
	if err := f.store.InsertAccount(f.ctx, a); err != nil {
		t.Fatal(err)
	}
	return a
}

func (f *fixture) start(t *testing.T) link.Issued {
	t.Helper()
	issued, err := f.Start(f.ctx, link.Requester{Host: "laptop", OS: "linux", Client: "test", IP: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

func want(t *testing.T, what string, got, wanted error) {
	t.Helper()
	if !errors.Is(got, wanted) {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// oneWinner is S1: fifty polls of an approved code at once give one token, and a restart in between changes nothing.
func (e Engine) oneWinner(t *testing.T) {
	store, reopen := e.Open(t)
	f := newFixture(t, store)
	ada := f.person(t, "ada")
	for round := range e.Rounds {
		issued := f.start(t)
		if err := f.Approve(f.ctx, issued.UserCode, ada.ID); err != nil {
			t.Fatal(err)
		}
		if round%20 == 7 {
			f.on(reopen())
		}
		var mu sync.Mutex
		var tokens []string
		unknown := 0
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				poll, err := f.Poll(f.ctx, issued.DeviceCode)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && poll.Token != nil:
					tokens = append(tokens, poll.Token.AuthToken)
				case errors.Is(err, link.ErrUnknown):
					unknown++
				default:
					t.Errorf("round %d: %v, %v", round, poll, err)
				}
			})
		}
		wg.Wait()
		if len(tokens) != 1 || unknown != 49 {
			t.Fatalf("round %d: %d tokens and %d times unknown", round, len(tokens), unknown)
		}
		if who, err := f.Authenticate(f.ctx, tokens[0]); err != nil || who.AccountID != ada.ID {
			t.Fatalf("round %d: the winner's token: %v, %v", round, who, err)
		}
	}
	// One token a round and no more: revoking them all counts them.
	if n, err := f.RevokeAll(f.ctx, ada.ID, audit.Operator()); err != nil || n != e.Rounds {
		t.Errorf("%d token rows after %d rounds (%v)", n, e.Rounds, err)
	}
}

func (e Engine) states(t *testing.T) {
	store, _ := e.Open(t)
	f := newFixture(t, store)
	ada := f.person(t, "ada")

	issued := f.start(t)
	if poll, err := f.Poll(f.ctx, issued.DeviceCode); err != nil || poll.Token != nil || poll.Interval != 5*time.Second {
		t.Errorf("pending: %v, %v", poll, err)
	}
	if n, err := store.PendingCodes(f.ctx, f.clock.now()); err != nil || n != 1 {
		t.Errorf("%d pending codes (%v)", n, err)
	}
	// Any case, with or without the dash.
	loose := fmt.Sprintf(" %s %s", issued.UserCode[:4], issued.UserCode[5:])
	if code, err := f.View(f.ctx, loose); err != nil || code.Requester.Host != "laptop" {
		t.Errorf("view: %v, %v", code, err)
	}
	want(t, "deny", f.Deny(f.ctx, issued.UserCode), nil)
	want(t, "approve after deny", f.Approve(f.ctx, issued.UserCode, ada.ID), link.ErrNotPending)
	_, err := f.Poll(f.ctx, issued.DeviceCode)
	want(t, "poll after deny", err, link.ErrDenied)

	late := f.start(t)
	f.clock.pass(11 * time.Minute)
	want(t, "approve too late", f.Approve(f.ctx, late.UserCode, ada.ID), link.ErrNotPending)
	_, err = f.Poll(f.ctx, late.DeviceCode)
	want(t, "poll too late", err, link.ErrExpired)
	_, err = f.View(f.ctx, late.UserCode)
	want(t, "view too late", err, link.ErrNotPending)

	_, err = f.Poll(f.ctx, secret.New(secret.DeviceCode))
	want(t, "poll of a code never issued", err, link.ErrUnknown)
	_, err = f.Poll(f.ctx, "sdc_nonsense")
	want(t, "poll of nonsense", err, link.ErrUnknown)
	_, err = f.View(f.ctx, "ZZZZ-ZZZZ")
	want(t, "view of a code never issued", err, link.ErrUnknown)
}

// unclaimed is S13: polled again after redemption and still unused a minute later.
func (e Engine) unclaimed(t *testing.T) {
	store, _ := e.Open(t)
	f := newFixture(t, store)
	ada := f.person(t, "ada")
	redeem := func() (link.Issued, string) {
		t.Helper()
		issued := f.start(t)
		want(t, "approve", f.Approve(f.ctx, issued.UserCode, ada.ID), nil)
		p, err := f.Poll(f.ctx, issued.DeviceCode)
		if err != nil || p.Token == nil {
			t.Fatalf("redeem: %v, %v", p, err)
		}
		return issued, p.Token.AuthToken
	}
	lost, lostToken := redeem()
	used, usedToken := redeem()
	_, quietToken := redeem() // never polled again: it may be used next year
	for _, code := range []link.Issued{lost, used} {
		_, err := f.Poll(f.ctx, code.DeviceCode)
		want(t, "poll again", err, link.ErrUnknown)
	}
	if _, err := f.Authenticate(f.ctx, usedToken); err != nil {
		t.Fatal(err)
	}
	f.clock.pass(59 * time.Second)
	want(t, "sweep", f.Sweep(f.ctx), nil)
	if l, err := store.LinkByToken(f.ctx, hash.Hash("token", lostToken)); err != nil || !l.RevokedAt.IsZero() {
		t.Errorf("revoked too early: %v, %v", l, err)
	}
	f.clock.pass(2 * time.Second)
	want(t, "sweep", f.Sweep(f.ctx), nil)
	_, err := f.Authenticate(f.ctx, lostToken)
	want(t, "the lost token", err, link.ErrRevoked)
	for _, token := range []string{usedToken, quietToken} {
		_, err := f.Authenticate(f.ctx, token)
		want(t, "a token that arrived", err, nil)
	}
}

func (e Engine) revocation(t *testing.T) {
	store, _ := e.Open(t)
	f := newFixture(t, store)
	ada, bob := f.person(t, "ada"), f.person(t, "bob")
	tokens := map[string]string{}
	for _, who := range []account.Account{ada, bob} {
		issued := f.start(t)
		want(t, "approve", f.Approve(f.ctx, issued.UserCode, who.ID), nil)
		p, err := f.Poll(f.ctx, issued.DeviceCode)
		if err != nil {
			t.Fatal(err)
		}
		tokens[who.ID] = p.Token.AuthToken
	}
	if n, err := f.RevokeAll(f.ctx, ada.ID, audit.Operator()); err != nil || n != 1 {
		t.Fatalf("revoked %d (%v)", n, err)
	}
	if n, err := f.RevokeAll(f.ctx, ada.ID, audit.Operator()); err != nil || n != 0 {
		t.Errorf("revoked %d again (%v)", n, err)
	}
	_, err := f.Authenticate(f.ctx, tokens[ada.ID])
	want(t, "ada's token", err, link.ErrRevoked)
	_, err = f.Authenticate(f.ctx, tokens[bob.ID])
	want(t, "bob's token", err, nil)
	_, err = f.Authenticate(f.ctx, secret.New(secret.Token))
	want(t, "a token never minted", err, link.ErrUnknown)
}

func (e Engine) accounts(t *testing.T) {
	store, _ := e.Open(t)
	f := newFixture(t, store)
	s := account.NewService(store, hash, slog.New(slog.DiscardHandler), f.clock.now)
	ada, err := s.SignUp(f.ctx, " Ada@Example.org ", "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.SignUp(f.ctx, "ada@example.ORG", "another password")
	want(t, "sign up twice", err, account.ErrEmailTaken)
	_, err = s.SignUp(f.ctx, "not an address", "another password")
	want(t, "sign up with nonsense", err, account.ErrBadEmail)
	_, err = s.SignUp(f.ctx, "bob@example.org", "short")
	want(t, "sign up with a short password", err, account.ErrBadPassword)
	_, err = s.SignIn(f.ctx, "ada@example.org", "wrong horse battery", "")
	want(t, "wrong password", err, account.ErrBadCredentials)
	_, err = s.SignIn(f.ctx, "bob@example.org", "correct horse battery", "")
	want(t, "unknown address", err, account.ErrBadCredentials)
	if got, err := s.SignIn(f.ctx, "ADA@example.org", "correct horse battery", ""); err != nil || got.ID != ada.ID {
		t.Errorf("sign in: %v, %v", got, err)
	}
	cookie, err := s.OpenSession(f.ctx, ada.ID, account.Visit{Method: account.ByPassword})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.FindSession(f.ctx, cookie); err != nil || got.ID != ada.ID {
		t.Errorf("find session: %v, %v", got, err)
	}
	ended := ""
	s.Ended = func(accountID string) { ended += accountID }
	for range 2 { // the second is of nobody
		want(t, "close session", s.CloseSession(f.ctx, cookie), nil)
	}
	s.Ended = nil
	if ended != ada.ID {
		t.Errorf("closing the session ended %q", ended)
	}
	_, err = s.FindSession(f.ctx, cookie)
	want(t, "a closed session", err, account.ErrNoSession)
	again, err := s.OpenSession(f.ctx, ada.ID, account.Visit{Method: account.ByPassword})
	if err != nil {
		t.Fatal(err)
	}
	f.clock.pass(account.SessionLife + time.Second)
	_, err = s.FindSession(f.ctx, again)
	want(t, "an old session", err, account.ErrNoSession)
}
