package storetest

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

func (f *fixture) grace(t *testing.T) {
	ada := f.person(t, "ada")
	for _, c := range []struct {
		after time.Duration
		err   error
	}{{29 * time.Second, nil}, {31 * time.Second, link.ErrExpired}} {
		issued := f.start(t)
		f.clock.pass(10*time.Minute - time.Second)
		want(t, "approve in time", f.Approve(f.ctx, issued.UserCode, ada.ID), nil)
		f.clock.pass(time.Second + c.after)
		want(t, fmt.Sprintf("redeem %s after the window", c.after), errOf(f.Poll(f.ctx, issued.DeviceCode)), c.err)
	}
}

// pacing tests that polling too fast raises the interval up to its cap, even across a restart, and never delays an
// approved code.
func (f *fixture) pacing(t *testing.T) {
	ada := f.person(t, "ada")
	issued := f.start(t)
	poll := func() time.Duration {
		t.Helper()
		p := must(f.Poll(f.ctx, issued.DeviceCode))(t)
		f.clock.pass(time.Second)
		return p.Interval
	}
	for i, wanted := range []time.Duration{5, 10, 15, 20} {
		if got := poll(); got != wanted*time.Second {
			t.Errorf("poll %d: interval %s, want %ds", i, got, wanted)
		}
	}
	f.restart()
	if got := poll(); got != 20*time.Second {
		t.Errorf("after a restart: interval %s, want 20s", got)
	}
	for range 12 {
		poll()
	}
	if got := poll(); got != time.Minute {
		t.Errorf("interval %s, want the cap of 60s", got)
	}
	want(t, "approve", f.Approve(f.ctx, issued.UserCode, ada.ID), nil)
	if p, err := f.Poll(f.ctx, issued.DeviceCode); err != nil || p.Token == nil {
		t.Errorf("an early poll of an approved code: got %v (error %v), want a token", p, err)
	}
}

// suspended tests that an account suspended between approval and the next poll gets no token, for any number of polls.
// If the account is restored in time, the approval counts.
func (f *fixture) suspended(t *testing.T) {
	ada := f.person(t, "ada")
	issued := f.start(t)
	want(t, "approve", f.Approve(f.ctx, issued.UserCode, ada.ID), nil)
	if ok, err := f.accounts().Suspend(f.ctx, ada.ID, audit.Operator()); err != nil || !ok {
		t.Fatalf("suspend: got %v (error %v), want true", ok, err)
	}
	for range 3 {
		poll, err := f.Poll(f.ctx, issued.DeviceCode)
		want(t, "poll of a suspended account's code", err, link.ErrDenied)
		if poll.Token != nil {
			t.Fatal("a suspended account got a token")
		}
	}
	if links, err := f.store.AllLinks(f.ctx, ada.ID); err != nil || len(links) != 0 {
		t.Fatalf("the suspended account has %d links, want none (error %v)", len(links), err)
	}
	if ok, err := f.accounts().Restore(f.ctx, ada.ID, audit.Operator()); err != nil || !ok {
		t.Fatalf("restore: got %v (error %v), want true", ok, err)
	}
	poll, err := f.Poll(f.ctx, issued.DeviceCode)
	if err != nil || poll.Token == nil {
		t.Fatalf("poll after the restoration: got %v (error %v), want a token", poll, err)
	}
	for _, step := range []struct {
		set    func() (bool, error)
		wanted error
	}{
		{func() (bool, error) { return f.accounts().Suspend(f.ctx, ada.ID, audit.Operator()) }, link.ErrRevoked},
		{func() (bool, error) { return f.accounts().Restore(f.ctx, ada.ID, audit.Operator()) }, nil},
	} {
		if ok, err := step.set(); err != nil || !ok {
			t.Fatalf("change the state: got %v (error %v), want true", ok, err)
		}
		want(t, "the very next call", errOf(f.Authenticate(f.ctx, poll.Token.AuthToken)), step.wanted)
	}
}

// legacy tests that a token with the original lifetime is valid until it ends.
func (f *fixture) legacy(t *testing.T) {
	ada := f.person(t, "ada")
	issued := f.start(t)
	want(t, "approve", f.Approve(f.ctx, issued.UserCode, ada.ID), nil)
	token, now := secret.New(credential.Token), f.clock.now()
	end := now.Add(24 * time.Hour)
	_, err := f.store.Redeem(f.ctx, hash.Hash("device_code", issued.DeviceCode), now, link.Link{ID: "legacy",
		TokenHash: hash.Hash("token", token),
		LinkedAt:  now, ExpiresAt: end}, audit.Trace{})
	want(t, "redeem", err, nil)
	for _, step := range []struct {
		at     time.Time
		wanted error
	}{{now, nil}, {end, nil}, {end.Add(time.Millisecond), link.ErrTokenExpired}} {
		f.clock.pass(step.at.Sub(f.clock.now()))
		who, err := f.Authenticate(f.ctx, token)
		want(t, "at "+step.at.String(), err, step.wanted)
		if err == nil && !who.ExpiresAt.Equal(end) {
			t.Errorf("the token's reported end is %v, want the end of its original lifetime", who.ExpiresAt)
		}
	}
}

// collisions tests that the database rejects codes that are in use and does not change the existing code.
func (f *fixture) collisions(t *testing.T) {
	first := f.start(t)
	now := f.clock.now()
	code := link.Code{
		DeviceHash: hash.Hash("device_code", "another"), UserHash: hash.Hash("user_code", first.UserCode),
		State: link.Pending, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	want(t, "a taken user code", f.store.InsertCode(f.ctx, code, audit.Trace{}), link.ErrDuplicate)
	code.DeviceHash, code.UserHash = hash.Hash("device_code", first.DeviceCode), hash.Hash("user_code", "another")
	want(t, "a taken device code", f.store.InsertCode(f.ctx, code, audit.Trace{}), link.ErrDuplicate)
	if n, err := f.store.PendingCodes(f.ctx, now); err != nil || n != 1 {
		t.Errorf("%d pending codes, want 1 (error %v)", n, err)
	}
	if got := f.actions(t, link.Asked{}); got != "issue" {
		t.Errorf("trail actions: got %s, want issue once", got)
	}
	if poll, err := f.Poll(f.ctx, first.DeviceCode); err != nil || poll.Token != nil {
		t.Errorf("the first code: got %v (error %v), want it pending", poll, err)
	}
}

// firstUse tests that a token swept during its first use is not accepted even once.
func (f *fixture) firstUse(t *testing.T) {
	ada := f.person(t, "ada")
	issued := f.start(t)
	want(t, "approve", f.Approve(f.ctx, issued.UserCode, ada.ID), nil)
	poll, err := f.Poll(f.ctx, issued.DeviceCode)
	want(t, "redeem", err, nil)
	want(t, "poll again", errOf(f.Poll(f.ctx, issued.DeviceCode)), link.ErrUnknown)
	f.clock.pass(2 * time.Minute)
	// Authenticate reads the clock after it has read the link and before it records the use.
	sweeps := 0
	s := link.New(link.Options{Store: f.store.linkStore, Hasher: hash, Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time {
			sweeps++
			want(t, "sweep", f.Sweep(f.ctx), nil)
			return f.clock.now()
		}})
	want(t, "the first use", errOf(s.Authenticate(f.ctx, poll.Token.AuthToken)), link.ErrRevoked)
	if links, err := f.store.AllLinks(f.ctx, ada.ID); err != nil || sweeps != 1 || !links[0].UsedAt.IsZero() {
		t.Errorf("got %d sweeps and links %+v (error %v), want one sweep before the first use", sweeps, links, err)
	}
}
