package storetest

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// actions returns the actions in the trail lines that match a query, oldest first.
func (f *fixture) actions(t *testing.T, a link.Asked) string {
	t.Helper()
	lines := must(f.Trail(f.ctx, a))(t)
	var all []string
	for i := len(lines) - 1; i >= 0; i-- {
		all = append(all, string(lines[i].Action))
	}
	return strings.Join(all, " ")
}

// from returns a fixture whose calls come from this address and browser, a second later.
func (f *fixture) from(address, browser string) *fixture {
	f.clock.pass(time.Second)
	other := *f
	other.ctx = link.WithBrowser(link.WithAddress(f.ctx, address), browser)
	return &other
}

func (f *fixture) accounts() *account.Service {
	return account.New(account.Options{Store: f.store.accountStore, Hasher: hash, Log: slog.New(slog.DiscardHandler),
		Now: f.clock.now})
}

// trail tests that every step of a link leaves one line, and that only queries for its code, account or address find
// the line.
func (f *fixture) trail(t *testing.T) {
	ada := f.person(t, "ada")
	const laptop, desk = "192.0.2.1", "2001:db8::1"
	ask := func(what string, a link.Asked, wanted string) {
		t.Helper()
		if got := f.actions(t, a); got != wanted {
			t.Errorf("%s: got %q, want %q", what, got, wanted)
		}
	}
	issued, err := f.from(laptop, "").Start(link.WithAddress(f.ctx, laptop), link.Requester{Host: "hostcanary",
		IP: laptop})
	want(t, "start", err, nil)
	for _, browser := range []string{"one", "one", "two", "one"} {
		g := f.from(desk, browser)
		want(t, "view", errOf(g.View(g.ctx, issued.UserCode)), nil)
	}
	g := f.from(desk, "one")
	want(t, "approve", g.Approve(g.ctx, issued.UserCode, ada.ID), nil)
	want(t, "approve again", g.Approve(g.ctx, issued.UserCode, ada.ID), link.ErrNotPending)
	g = f.from(laptop, "")
	poll, err := g.Poll(g.ctx, issued.DeviceCode)
	want(t, "poll", err, nil)
	linkID := poll.Token.LinkID
	g = f.from(desk, "one")
	want(t, "revoke", g.RevokeLink(g.ctx, ada.ID, linkID, audit.Person()), nil)
	want(t, "revoke again", g.RevokeLink(g.ctx, ada.ID, linkID, audit.Person()), link.ErrUnknown)
	for _, active := range []bool{false, false, true, true} {
		f.clock.pass(time.Second)
		set := f.accounts().Suspend
		if active {
			set = f.accounts().Restore
		}
		want(t, "suspend or restore", errOf(set(f.ctx, ada.ID, audit.Operator())), nil)
	}
	denied := f.start(t)
	g = f.from(desk, "one")
	want(t, "deny", g.Deny(g.ctx, denied.UserCode), nil)
	cancelled := f.start(t)
	g = f.from(desk, "")
	want(t, "cancel", g.Cancel(g.ctx, cancelled.DeviceCode), nil)
	want(t, "cancel again", g.Cancel(g.ctx, cancelled.DeviceCode), nil)

	ask("by code", link.Asked{UserCode: strings.ToLower(issued.UserCode)}, "issue view view approve redeem")
	ask("by link", link.Asked{LinkID: linkID}, "redeem revoke")
	ask("by account", link.Asked{AccountID: ada.ID}, "approve redeem revoke suspend restore")
	ask("by the asker's address", link.Asked{Address: laptop}, "issue redeem")
	ask("by the person's address", link.Asked{Address: "2001:0db8:0::1"}, "view view approve revoke deny cancel")
	ask("another code", link.Asked{UserCode: denied.UserCode}, "issue deny")
	ask("a cancelled code", link.Asked{UserCode: cancelled.UserCode}, "issue cancel")
	ask("nobody's", link.Asked{AccountID: "bob-id"}, "")
	ask("no line is both", link.Asked{AccountID: ada.ID, UserCode: denied.UserCode}, "")

	lines, err := f.Trail(f.ctx, link.Asked{})
	want(t, "trail", err, nil)
	for _, clear := range []string{issued.UserCode, issued.DeviceCode, strings.ReplaceAll(issued.UserCode, "-", ""),
		poll.Token.AuthToken, linkID, ada.ID, ada.Email,
		"hostcanary", laptop, "2001:", hash.Hash("user_code", issued.UserCode), hash.Hash("device_code", issued.DeviceCode),
		hash.Hash("token", poll.Token.AuthToken)} {
		if strings.Contains(fmt.Sprint(lines), clear) {
			t.Errorf("the trail contains %s", clear)
		}
	}
}

// trailRevokes tests that every revocation leaves a line for each revoked link and each denied code.
func (f *fixture) trailRevokes(t *testing.T) {
	ada := f.person(t, "ada")
	approved := func() link.Issued {
		f.clock.pass(time.Second)
		issued := f.start(t)
		want(t, "approve", f.Approve(f.ctx, issued.UserCode, ada.ID), nil)
		return issued
	}
	redeemed := func() link.Issued {
		issued := approved()
		want(t, "redeem", errOf(f.Poll(f.ctx, issued.DeviceCode)), nil)
		return issued
	}
	lost := redeemed()
	want(t, "poll again", errOf(f.Poll(f.ctx, lost.DeviceCode)), link.ErrUnknown)
	f.clock.pass(time.Minute + time.Second)
	want(t, "sweep", f.Sweep(f.ctx), nil)
	if got := f.actions(t, link.Asked{AccountID: ada.ID}); got != "approve redeem revoke" {
		t.Errorf("a token that no client received: got %s, want its revocation", got)
	}
	redeemed()
	redeemed()
	stopped := approved()
	f.clock.pass(time.Second)
	if n, err := f.RevokeAll(f.ctx, ada.ID, audit.Person()); err != nil || n != 2 {
		t.Fatalf("revoked %d links, want 2 (error %v)", n, err)
	}
	all := f.actions(t, link.Asked{AccountID: ada.ID})
	if strings.Count(all, "revoke") != 3 || f.actions(t, link.Asked{UserCode: stopped.UserCode}) != "issue approve deny" {
		t.Errorf("after revoking all links: got %s, want 3 revocations and a denied code", all)
	}
	// If the address is not verified, a new password set by mail revokes all other access.
	redeemed()
	s := f.accounts()
	s.SiteURL = "https://service.example"
	page, err := s.ResetLink(f.ctx, ada.Email, audit.Operator())
	want(t, "reset link", err, nil)
	want(t, "reset", errOf(s.ResetPassword(f.ctx, page[strings.Index(page, "=")+1:], "a whole new password",
		account.Access{})), nil)
	if all := f.actions(t, link.Asked{AccountID: ada.ID}); strings.Count(all, "revoke") != 4 {
		t.Errorf("after a new password: got %s, want 4 revocations", all)
	}
}

// trailBounds tests that neither views nor refusals fill up the trail, and that old lines are deleted.
func (f *fixture) trailBounds(t *testing.T) {
	const address = "192.0.2.1"
	for i := range 300 {
		f.Throttled(link.WithAddress(f.ctx, address))
		if i == 150 { // a new process remembers no lines, but the table has them
			f.restart()
		}
	}
	if got := f.actions(t, link.Asked{Address: address}); got != "throttle" {
		t.Errorf("refused 300 times within a minute: got %s, want one line", got)
	}
	f.clock.pass(time.Minute)
	f.Throttled(link.WithAddress(f.ctx, address))
	if got := f.actions(t, link.Asked{Address: address}); got != "throttle throttle" {
		t.Errorf("refused again in another minute: got %s, want two lines", got)
	}
	for i := range 200 {
		f.Throttled(link.WithAddress(f.ctx, fmt.Sprintf("198.51.100.%d", i)))
	}
	if n := strings.Count(f.actions(t, link.Asked{}), "throttle"); n > 110 {
		t.Errorf("%d lines for 200 refused addresses, want at most 110", n)
	}
	issued := f.start(t)
	for i := range 50 {
		want(t, "view", errOf(f.View(link.WithBrowser(f.ctx, fmt.Sprint("without a cookie ", i)), issued.UserCode)), nil)
	}
	if n := strings.Count(f.actions(t, link.Asked{UserCode: issued.UserCode}), "view"); n != 10 {
		t.Errorf("%d lines for 50 views at the same time, want 10", n)
	}

	f.clock.pass(audit.TrailKept - time.Hour - 30*time.Second) // the next sweep is in an hour
	kept := f.start(t)
	f.clock.pass(31 * time.Second)
	want(t, "sweep", f.Sweep(f.ctx), nil)
	if got := f.actions(t, link.Asked{}); got != "issue" || f.actions(t, link.Asked{UserCode: kept.UserCode}) != "issue" {
		t.Errorf("after 90 days: got %s, want only the newest code", got)
	}
	// Requests for codes never displace an approval.
	ada := f.person(t, "ada")
	f.clock.pass(time.Second)
	issued = f.start(t)
	want(t, "approve", f.Approve(f.ctx, issued.UserCode, ada.ID), nil)
	for range 4 {
		f.clock.pass(time.Second)
		f.start(t)
	}
	if n, err := f.store.SweepTrail(f.ctx, time.Time{}, 2); err != nil || n != 4 {
		t.Errorf("beyond the limit: deleted %d lines, want 4 (error %v)", n, err)
	}
	if got := f.actions(t, link.Asked{}); got != "approve issue issue" {
		t.Errorf("beyond the limit: got %s, want one approval and two codes", got)
	}
}
