package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

var linkSettings = link.Settings{
	CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second, Grace: 30 * time.Second, UnusedAfter: time.Minute,
}

var linkTests = map[string]func(*fixture, *testing.T){
	"one winner of fifty polls":                (*fixture).oneWinner,
	"states":                                   (*fixture).states,
	"a taken code is drawn again":              (*fixture).collisions,
	"codes at the same time":                   (*fixture).together,
	"grace":                                    (*fixture).grace,
	"pacing is kept over a restart":            (*fixture).pacing,
	"a token nobody received is revoked":       (*fixture).unclaimed,
	"a first use and the sweep never both win": (*fixture).firstUse,
	"revocation":                               (*fixture).revocation,
	"suspended between approve and poll":       (*fixture).suspended,
	"legacy tokens end":                        (*fixture).legacy,
	"trail":                                    (*fixture).trail,
	"trail of revocations":                     (*fixture).trailRevokes,
	"trail is bounded":                         (*fixture).trailBounds,
	"accounts":                                 (*fixture).signIns,
}

func TestLinks(t *testing.T) {
	eachEngine(t, linkTests, func(t *testing.T, db *database, test func(*fixture, *testing.T)) {
		f := &fixture{clock: newClock(), store: db, ctx: t.Context()}
		f.serve()
		test(f, t)
	})
}

// fixture is a link service on a store, with a clock controlled by the test.
type fixture struct {
	*link.Service
	clock *clock
	store *database
	ctx   context.Context
}

// serve starts the service again, as if the backend had restarted.
func (f *fixture) serve() {
	f.Service = link.New(link.Options{
		Store: f.store.linkStore, Hasher: hash, Settings: linkSettings, Log: slog.New(slog.DiscardHandler), Now: f.clock.now,
	})
}

func (f *fixture) restart() {
	f.store.reopen()
	f.serve()
}

func (f *fixture) person(t *testing.T, name string) account.Account {
	t.Helper()
	return addAccount(t, f.store, f.clock, name+"-id", name+"@example.org")
}

func (f *fixture) start(t *testing.T) link.Issued {
	t.Helper()
	return must(f.Start(f.ctx, link.Requester{Host: "laptop", OS: "linux", Client: "test", IP: "127.0.0.1"}))(t)
}

// redeem returns a code that was approved and redeemed, and its token.
func (f *fixture) redeem(t *testing.T, by account.Account) (link.Issued, string) {
	t.Helper()
	issued := f.start(t)
	want(t, "approve", f.Approve(f.ctx, issued.UserCode, by.ID), nil)
	p := must(f.Poll(f.ctx, issued.DeviceCode))(t)
	if p.Token == nil {
		t.Fatal("polling an approved code returned no token")
	}
	return issued, p.Token.AuthToken
}

// oneWinner tests that fifty concurrent polls of an approved code return one token, even with a restart in between.
func (f *fixture) oneWinner(t *testing.T) {
	ada := f.person(t, "ada")
	const rounds = 200
	for round := range rounds {
		issued := f.start(t)
		fatal(t, f.Approve(f.ctx, issued.UserCode, ada.ID))
		if round%20 == 7 {
			f.restart()
		}
		tokens := make(chan string, 50)
		won, unknown := race(t, cap(tokens), isAny(link.ErrUnknown), func(int) error {
			poll, err := f.Poll(f.ctx, issued.DeviceCode)
			if err == nil && poll.Token == nil {
				return errors.New("neither a token nor an error")
			}
			if err == nil {
				tokens <- poll.Token.AuthToken
			}
			return err
		})
		if won != 1 || unknown != 49 {
			t.Fatalf("round %d: %d polls got a token and %d got ErrUnknown, want 1 and 49", round, won, unknown)
		}
		if who, err := f.Authenticate(f.ctx, <-tokens); err != nil || who.AccountID != ada.ID {
			t.Fatalf("round %d: got account %v with the token (error %v), want ada's", round, who, err)
		}
	}
	// Each round created exactly one token, so revoking all of them counts the rounds.
	if n, err := f.RevokeAll(f.ctx, ada.ID, audit.Operator()); err != nil || n != rounds {
		t.Errorf("got %d tokens after %d rounds (error %v), want one for each round", n, rounds, err)
	}
}

func (f *fixture) states(t *testing.T) {
	ada := f.person(t, "ada")

	issued := f.start(t)
	if poll, err := f.Poll(f.ctx, issued.DeviceCode); err != nil || poll.Token != nil || poll.Interval != 5*time.Second {
		t.Errorf("poll of a pending code: got %v (error %v), want no token and an interval of 5 s", poll, err)
	}
	if n, err := f.store.PendingCodes(f.ctx, f.clock.now()); err != nil || n != 1 {
		t.Errorf("%d pending codes, want 1 (error %v)", n, err)
	}
	// Lower and upper case work, with or without the dash.
	loose := fmt.Sprintf(" %s %s", issued.UserCode[:4], issued.UserCode[5:])
	if code, err := f.View(f.ctx, loose); err != nil || code.Requester.Host != "laptop" {
		t.Errorf("view: got %v (error %v), want the code that laptop requested", code, err)
	}
	want(t, "deny", f.Deny(f.ctx, issued.UserCode), nil)
	want(t, "approve after deny", f.Approve(f.ctx, issued.UserCode, ada.ID), link.ErrNotPending)
	want(t, "poll after deny", errOf(f.Poll(f.ctx, issued.DeviceCode)), link.ErrDenied)

	issued = f.start(t)
	want(t, "cancel", f.Cancel(f.ctx, issued.DeviceCode), nil)
	want(t, "cancel twice", f.Cancel(f.ctx, issued.DeviceCode), nil)
	want(t, "approve after cancel", f.Approve(f.ctx, issued.UserCode, ada.ID), link.ErrNotPending)
	want(t, "poll after cancel", errOf(f.Poll(f.ctx, issued.DeviceCode)), link.ErrDenied)
	want(t, "cancel of a code never issued", f.Cancel(f.ctx, secret.New(credential.DeviceCode)), link.ErrUnknown)
	f.cancelRedeemed(t, ada)

	late := f.start(t)
	f.clock.pass(11 * time.Minute)
	want(t, "approve too late", f.Approve(f.ctx, late.UserCode, ada.ID), link.ErrNotPending)
	want(t, "poll too late", errOf(f.Poll(f.ctx, late.DeviceCode)), link.ErrExpired)
	want(t, "view too late", errOf(f.View(f.ctx, late.UserCode)), link.ErrExpired)

	want(t, "poll of a code never issued", errOf(f.Poll(f.ctx, secret.New(credential.DeviceCode))), link.ErrUnknown)
	want(t, "poll of nonsense", errOf(f.Poll(f.ctx, "sdc_nonsense")), link.ErrUnknown)
	want(t, "view of a code never issued", errOf(f.View(f.ctx, "ZZZZ-ZZZZ")), link.ErrUnknown)
}

// cancelRedeemed tests that cancelling a code revokes its unused token, but not a used one.
func (f *fixture) cancelRedeemed(t *testing.T, ada account.Account) {
	t.Helper()
	unused, unusedToken := f.redeem(t, ada)
	want(t, "cancel with an unused token", f.Cancel(f.ctx, unused.DeviceCode), nil)
	want(t, "the unused token", errOf(f.Authenticate(f.ctx, unusedToken)), link.ErrRevoked)
	want(t, "cancel twice with an unused token", f.Cancel(f.ctx, unused.DeviceCode), nil)
	used, usedToken := f.redeem(t, ada)
	must(f.Authenticate(f.ctx, usedToken))(t)
	want(t, "cancel with a used token", f.Cancel(f.ctx, used.DeviceCode), link.ErrUnknown)
	want(t, "the used token", errOf(f.Authenticate(f.ctx, usedToken)), nil)
}

// unclaimed tests a token that is still unused a minute after its code was polled again.
func (f *fixture) unclaimed(t *testing.T) {
	ada := f.person(t, "ada")
	lost, lostToken := f.redeem(t, ada)
	used, usedToken := f.redeem(t, ada)
	_, quietToken := f.redeem(t, ada) // never polled again, so it may first be used at any later time
	for _, code := range []link.Issued{lost, used} {
		want(t, "poll again", errOf(f.Poll(f.ctx, code.DeviceCode)), link.ErrUnknown)
	}
	must(f.Authenticate(f.ctx, usedToken))(t)
	f.clock.pass(59 * time.Second)
	want(t, "sweep", f.Sweep(f.ctx), nil)
	if l, err := f.store.LinkByToken(f.ctx, hash.Hash("token", lostToken)); err != nil || !l.RevokedAt.IsZero() {
		t.Errorf("got link %v (error %v), want it not revoked yet", l, err)
	}
	f.clock.pass(2 * time.Second)
	want(t, "sweep", f.Sweep(f.ctx), nil)
	want(t, "the lost token", errOf(f.Authenticate(f.ctx, lostToken)), link.ErrRevoked)
	for _, token := range []string{usedToken, quietToken} {
		want(t, "a token that arrived", errOf(f.Authenticate(f.ctx, token)), nil)
	}
}

func (f *fixture) revocation(t *testing.T) {
	ada, bob := f.person(t, "ada"), f.person(t, "bob")
	tokens := map[string]string{}
	for _, who := range []account.Account{ada, bob} {
		issued := f.start(t)
		want(t, "approve", f.Approve(f.ctx, issued.UserCode, who.ID), nil)
		p := must(f.Poll(f.ctx, issued.DeviceCode))(t)
		tokens[who.ID] = p.Token.AuthToken
	}
	if n, err := f.RevokeAll(f.ctx, ada.ID, audit.Operator()); err != nil || n != 1 {
		t.Fatalf("revoked %d links, want 1 (error %v)", n, err)
	}
	if n, err := f.RevokeAll(f.ctx, ada.ID, audit.Operator()); err != nil || n != 0 {
		t.Errorf("revoked %d links the second time, want none (error %v)", n, err)
	}
	want(t, "ada's token", errOf(f.Authenticate(f.ctx, tokens[ada.ID])), link.ErrRevoked)
	want(t, "bob's token", errOf(f.Authenticate(f.ctx, tokens[bob.ID])), nil)
	want(t, "a token never minted", errOf(f.Authenticate(f.ctx, secret.New(credential.Token))), link.ErrUnknown)
}

func (f *fixture) signIns(t *testing.T) {
	s := account.New(account.Options{Store: f.store.accountStore, Hasher: hash, Log: slog.New(slog.DiscardHandler),
		Now: f.clock.now})
	ada := must(s.SignUp(f.ctx, " Ada@Example.org ", "correct horse battery"))(t)
	want(t, "sign up twice", errOf(s.SignUp(f.ctx, "ada@example.ORG", "another password")), account.ErrEmailTaken)
	want(t, "sign up with nonsense", errOf(s.SignUp(f.ctx, "not an address", "another password")), account.ErrBadEmail)
	want(t, "sign up with a short password", errOf(s.SignUp(f.ctx, "bob@example.org", "short")), account.ErrBadPassword)
	want(t, "wrong password", errOf(s.SignIn(f.ctx, "ada@example.org", "wrong horse battery", "")),
		account.ErrBadCredentials)
	want(t, "unknown address", errOf(s.SignIn(f.ctx, "bob@example.org", "correct horse battery", "")),
		account.ErrBadCredentials)
	if got, err := s.SignIn(f.ctx, "ADA@example.org", "correct horse battery", ""); err != nil || got.ID != ada.ID {
		t.Errorf("sign in: got %v (error %v), want ada", got, err)
	}
	cookie := must(s.OpenSession(f.ctx, ada.ID, account.Visit{Method: account.ByPassword}))(t)
	if got, err := s.FindSession(f.ctx, cookie); err != nil || got.ID != ada.ID {
		t.Errorf("find session: got %v (error %v), want ada", got, err)
	}
	ended := ""
	s.Ended = func(accountID string) { ended += accountID }
	for range 2 { // the second call finds no session
		want(t, "close session", s.CloseSession(f.ctx, cookie), nil)
	}
	s.Ended = nil
	if ended != ada.ID {
		t.Errorf("closing the session ended the session of %q, want ada", ended)
	}
	want(t, "a closed session", errOf(s.FindSession(f.ctx, cookie)), account.ErrNoSession)
	again := must(s.OpenSession(f.ctx, ada.ID, account.Visit{Method: account.ByPassword}))(t)
	f.clock.pass(account.SessionLife + time.Second)
	want(t, "an old session", errOf(s.FindSession(f.ctx, again)), account.ErrNoSession)
}
