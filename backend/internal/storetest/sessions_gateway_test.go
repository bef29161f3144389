package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

func (l *liveSpy) GatewayChanged(context.Context, string)            {}
func (l *liveSpy) GatewaysChanged(context.Context, string)           {}
func (l *liveSpy) LogAssistant(context.Context, string, string, any) {}

// gatewayOfSession tests the script and the tokens of a session.
func gatewayOfSession(t *testing.T, f *sessionFixture) {
	const script = `{"rules":[{"when":{"always":true},"reply":{"text":"Hi <b>"}}]}`
	a := &sessions.Assistants{Sessions: f.Service, Store: f.store.sessionsStore, Live: f.live, URL: "http://localhost/v1"}
	s, _ := f.mint(t, f.ada, sessions.Request{})
	if g := must(a.Gateway(t.Context(), s.ID))(t); g != nil {
		t.Errorf("got a gateway without a script: %+v", g)
	}
	want(t, "a script for another account's session", a.SetScript(t.Context(), "bob", s.ID, []byte(script)),
		sessions.ErrNotFound)
	for range 2 {
		fatal(t, a.SetScript(t.Context(), "ada", s.ID, []byte(script)))
	}
	if got := must(f.store.AssistantScript(t.Context(), s.ID, f.clock.now()))(t); got != script {
		t.Errorf("got script %s, want the stored one", got)
	}
	first := must(a.Gateway(t.Context(), s.ID))(t)
	if got := must(a.Open(t.Context(), first.Token))(t); got.ID != s.ID || got.Owner != f.ada || got.Project != s.Project {
		t.Errorf("the token opens %+v, want the session of ada's project", got)
	}
	f.clock.pass(glasses.GatewayTokenLife - time.Minute)
	second := must(a.Gateway(t.Context(), s.ID))(t)
	f.clock.pass(time.Minute)
	want(t, "a token after it has expired", errOf(a.Open(t.Context(), first.Token)), sessions.ErrBadSecret)
	fatal(t, errOf(a.Open(t.Context(), second.Token)))
	want(t, "nonsense", errOf(a.Open(t.Context(), "sgt_nonsense")), sessions.ErrBadSecret)

	f.store.exec(`UPDATE accounts SET state = 'suspended' WHERE id = 'ada'`)
	want(t, "a suspended account", errOf(a.Open(t.Context(), second.Token)), sessions.ErrBadSecret)
	f.store.exec(`UPDATE accounts SET state = 'active' WHERE id = 'ada'`)
	other, _ := f.mint(t, f.ada, sessions.Request{Fresh: true})
	fatal(t, a.SetScript(t.Context(), "ada", other.ID, []byte(script)))
	fatal(t, errOf(f.Close(t.Context(), "ada", s.ID)))
	want(t, "a closed session", errOf(a.Open(t.Context(), second.Token)), sessions.ErrBadSecret)
	want(t, "a token for a closed session", errOf(a.Gateway(t.Context(), s.ID)), nil)
	want(t, "a script for a closed session", a.SetScript(t.Context(), "ada", s.ID, []byte(script)), sessions.ErrClosed)
	want(t, "the script of a closed session", errOf(a.Script(t.Context(), s.ID)), sessions.ErrClosed)
	if n := f.store.count("SELECT COUNT(*) FROM session_scripts"); n != 1 {
		t.Errorf("%d scripts are stored, want only that of the open session", n)
	}

	// If a session is never closed, its script is deleted with its rows.
	third := must(a.Gateway(t.Context(), other.ID))(t)
	f.clock.pass(sessions.IdleKept + time.Hour)
	want(t, "an expired session", errOf(a.Open(t.Context(), third.Token)), sessions.ErrBadSecret)
	fatal(t, f.Sweep(t.Context()))
	if n := f.store.count("SELECT COUNT(*) FROM session_scripts"); n != 0 {
		t.Errorf("%d scripts are stored, want none because the session was idle", n)
	}
}
