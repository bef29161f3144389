package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/sessions"
)

// The sessions of a link end when the link is revoked or expires, or when the account is suspended. Other sessions
// continue.
func endsWithLink(t *testing.T, f *sessionFixture) {
	for name, end := range map[string]func(linkID string){
		"revoked link": func(id string) {
			if n, err := f.store.RevokeLinks(t.Context(), id, f.clock.now(), audit.New(f.clock.now(), "of-"+id, audit.Operator(),
				"link.revoked", "", ""), audit.Trace{}); err != nil || n != 1 {
				t.Fatalf("revoked %d links, want 1: %v", n, err)
			}
		},
		"expired link": func(id string) {
			f.store.exec(fmt.Sprintf("UPDATE links SET expires_at = %d WHERE id = '%s'", f.clock.now().UnixMilli(), id))
		},
		"suspended account": func(id string) {
			f.store.exec("UPDATE accounts SET state = 'suspended' WHERE id = 'of-" + id + "'")
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := "link of " + name
			o := sessions.Owner{AccountID: "of-" + id, LinkID: id}
			addAccount(t, f.store, f.clock, o.AccountID, id)
			addLink(t, f.store, f.clock, id, o.AccountID, "")
			s, _ := f.mint(t, o, sessions.Request{})
			sst := must(f.MintSecret(t.Context(), o.AccountID, s.ID))(t)
			other, _ := f.mint(t, f.ada, sessions.Request{})
			f.clock.pass(time.Second)
			end(id)
			want(t, "an app's attach", errOf(f.Open(t.Context(), s.ID, sst)), sessions.ErrClosed)
			want(t, "another secret", errOf(f.MintSecret(t.Context(), o.AccountID, s.ID)), sessions.ErrClosed)
			if got, err := f.Get(t.Context(), o.AccountID, s.ID); err != nil || got.State(f.clock.now()) != "closed" {
				t.Errorf("Get returned %+v (error %v), want a closed session", got, err)
			}
			some, err := f.store.SomeSessions(t.Context(), []string{"ses_never", s.ID, other.ID})
			open := map[string]bool{}
			for _, one := range some {
				open[one.ID] = one.Open(f.clock.now())
			}
			if isOpen, found := open[s.ID]; err != nil || len(open) != 2 || !found || isOpen || !open[other.ID] {
				t.Errorf("SomeSessions: got %v (error %v), want one closed and one open", open, err)
			}
			if list, err := f.List(t.Context(), o.AccountID); err != nil || len(list) != 0 {
				t.Errorf("open sessions: got %+v (error %v), want none", list, err)
			}
			if got, err := f.Get(t.Context(), "ada", other.ID); err != nil || got.State(f.clock.now()) != "open" {
				t.Errorf("another link's session: got %+v (error %v), want it open", got, err)
			}
		})
	}
}

func revokedSecret(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	sst := must(f.MintSecret(t.Context(), "ada", s.ID))(t)
	f.store.exec("UPDATE session_secrets SET revoked_at = 1 WHERE session_id = '" + s.ID + "'")
	want(t, "a revoked secret of an open session", errOf(f.Open(t.Context(), s.ID, sst)), sessions.ErrBadSecret)
}
