package link

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

// linkTo creates a link before the test begins.
func linkTo(t *testing.T, m *Manager, l account.Link) {
	t.Helper()
	if err := m.Accounts.Save(l); err != nil {
		t.Fatal(err)
	}
}

const here = "embedded:one"

// An approval does not replace a live link: if the link is at another backend, the approval is refused; if it is at
// the same backend, the wait ends with the existing link.
func TestComplete_LinkConflict(t *testing.T) {
	passed := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		before account.Link
		dead   bool
		want   string // the token in auth.json afterwards
	}{
		"another account": {account.Link{AuthToken: "old", AccountID: "other", BackendURL: here}, false,
			"old"},
		"another account, revoked": {account.Link{AuthToken: "old", AccountID: "other", BackendURL: here}, true,
			"svc_t"},
		"another account, expired": {account.Link{AuthToken: "old", AccountID: "other", BackendURL: here,
			ExpiresAt: &passed}, false, "svc_t"},
		"same account": {account.Link{AuthToken: "old", AccountID: "acc", BackendURL: here}, false,
			"old"},
		"same account of another backend": {account.Link{AuthToken: "old", AccountID: "acc",
			BackendURL: "https://other.test"}, false, ""},
		"another embedded backend, reset": {account.Link{AuthToken: "old", AccountID: "acc", BackendURL: "embedded:two"},
			true, "svc_t"},
		"another backend, where it was revoked": {account.Link{AuthToken: "old", AccountID: "other",
			BackendURL: "https://other.test"}, true, "svc_t"},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
				code := ask(t, m) // requested before the account was linked
				f.dead = map[string]bool{"old": c.dead}
				linkTo(t, m, c.before)
				out, err := complete(t, m, code, Wait{})
				now := m.current()
				if c.want != "" {
					if err != nil || now.AuthToken.Reveal() != c.want || out.AccountID != now.AccountID {
						t.Errorf("got %+v, %v; the link is %+v, want the existing one", out, err, now)
					}
					return
				}
				wantCode(t, err, problem.CodeLinkConflict)
				if p := asProblem(err); p.Retryable || p.FixHint == "" {
					t.Errorf("%+v", p)
				}
				if now.AuthToken != "old" || now.State != account.Linked {
					t.Errorf("the link is %+v, want the old one", now)
				}
				if len(f.at) > 0 && !slices.Equal(f.ended(), []string{"svc_t at " + here}) {
					t.Errorf("revoked %v", f.ended())
				}
				if f.count("account.linked") != 0 {
					t.Errorf("events %v", f.events)
				}
			})
		})
	}
}

// A login replaces a live link only if the user confirmed it, and then revokes the old token.
func TestLogin_Replace(t *testing.T) {
	before := account.Link{AuthToken: "old", AccountID: "other", BackendURL: here}
	login := func(t *testing.T, m *Manager, replace bool) error {
		attempt, err := m.Start(t.Context(), caller.Caller{}, replace)
		if err != nil {
			return err
		}
		_, err = attempt.Wait(t.Context(), Wait{})
		return err
	}
	run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		linkTo(t, m, before)
		wantCode(t, login(t, m, false), problem.CodeLinkConflict)
		if !slices.Equal(f.ended(), []string{"svc_t at " + here}) || m.current().AuthToken != "old" {
			t.Errorf("revoked %v, the link is %+v; want the new token revoked and the old one kept", f.ended(), m.current())
		}
	})
	run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		linkTo(t, m, before)
		if err := login(t, m, true); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.ended(), []string{"old at " + here}) || m.current().AuthToken != "svc_t" {
			t.Errorf("revoked %v, the link is %+v; want the old token revoked", f.ended(), m.current())
		}
	})
	run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		before.BackendURL = "https://other.test"
		linkTo(t, m, before)
		wantCode(t, login(t, m, false), problem.CodeLinkConflict)
		if f.issued != 0 {
			t.Error("a code was issued for a login that cannot succeed")
		}
		if err := login(t, m, true); err != nil || !slices.Equal(f.ended(), []string{"old at https://other.test"}) {
			t.Errorf("login: %v, revoked %v; want the old token revoked", err, f.ended())
		}
	})
}

// A failed revocation is reported and retried, for which the token is kept in memory. The last attempt is made when the
// daemon stops.
func TestRevoke_Offline(t *testing.T) {
	l := account.Link{State: account.Linked, AuthToken: "old", BackendURL: "https://other.test/"}
	var f *fake
	run(t, []answer{approved}, func(t *testing.T, m *Manager, backend *fake, dir string) {
		f = backend
		f.setOffline(true)
		if page := m.Revoke(t.Context(), l); page != "https://other.test/account" {
			t.Errorf("told %q", page)
		}
		time.Sleep(firstRevokeWait + time.Second)
		if n := len(f.ended()); n != 2 {
			t.Errorf("%d attempts, want 2", n)
		}
		f.setOffline(false)
		time.Sleep(time.Minute)
		if n := len(f.ended()); n != 3 {
			t.Errorf("%d attempts, want 3", n)
		}
		f.setOffline(true)
		m.Revoke(t.Context(), l)
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("files %v", entries)
		}
	})
	// The last attempt happens when the manager stops.
	if n := len(f.ended()); n != 5 {
		t.Errorf("%d attempts, want 5", n)
	}
}

func (f *fake) setOffline(offline bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offline = offline
}

// ended returns the tokens for which a revocation was requested.
func (f *fake) ended() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.revoked)
}

func TestRevoke_NothingToRevoke(t *testing.T) {
	run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		for _, l := range []account.Link{{State: account.NotLinked}, {State: account.Revoked, AuthToken: "a"},
			{State: account.Expired, AuthToken: "a"}} {
			if page := m.Revoke(t.Context(), l); page != "" || len(f.ended()) != 0 {
				t.Errorf("%+v: %q, %v", l, page, f.ended())
			}
		}
	})
}

// A backend that hangs delays a caller no longer than the time limit.
func TestRevoke_Hangs(t *testing.T) {
	run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
		m.Backend = hanging{f}
		start := time.Now()
		if page := m.Revoke(t.Context(), account.Link{AuthToken: "old", BackendURL: "https://other.test"}); page == "" ||
			time.Since(start) != revokeWait {
			t.Errorf("got page %q after %v, want a page after revokeWait", page, time.Since(start))
		}
	})
}

type hanging struct{ *fake }

func (hanging) RevokeLink(ctx context.Context, _ backend.Target) error {
	<-ctx.Done()
	return ctx.Err()
}

// A link that could not be written is valid in memory. The replaced token stays in the file and is not revoked. If the
// daemon stops before the file could be written, it revokes the new token.
func TestComplete_NoRoomForTheFile(t *testing.T) {
	var f *fake
	run(t, []answer{approved}, func(t *testing.T, m *Manager, backend *fake, dir string) {
		f = backend
		if err := os.Mkdir(filepath.Join(dir, account.FileName), 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := complete(t, m, ask(t, m), Wait{})
		if err != nil || out.File.Written || out.File.Error == "" || out.AccountID != "acc" {
			t.Errorf("%+v, %v", out, err)
		}
		if target, _, err := m.Target(t.Context(), caller.Caller{}); err != nil || target.Bearer != "svc_t" {
			t.Errorf("%+v, %v", target, err)
		}
		if len(f.ended()) != 0 {
			t.Errorf("revoked %v", f.ended())
		}
	})
	if !slices.Equal(f.ended(), []string{"svc_t at " + here}) {
		t.Errorf("revoked %v at the end, want the new token", f.ended())
	}
}

// A request to link at another backend mentions the current link only if its backend still accepts it.
func TestAsk_ReplacesALiveLinkOnly(t *testing.T) {
	for _, dead := range []bool{false, true} {
		run(t, []answer{approved}, func(t *testing.T, m *Manager, f *fake, _ string) {
			linkTo(t, m, account.Link{AuthToken: "old", AccountID: "other", BackendURL: "https://other.test"})
			f.dead = map[string]bool{"old": dead}
			want := account.Linked
			if dead {
				want = account.Revoked
			}
			if code := ask(t, m); code.Replaces.State != want || code.Replaces.AccountID != "other" ||
				code.Replaces.AuthToken != "" {
				t.Errorf("dead %v: %+v", dead, code.Replaces)
			}
		})
	}
}
