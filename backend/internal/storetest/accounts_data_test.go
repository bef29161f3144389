package storetest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// install links an install and returns its token.
func (f *people) install(t *testing.T, accountID string) string {
	t.Helper()
	issued := must(f.links.Start(t.Context(), link.Requester{Host: "laptop", OS: "linux", Client: "test",
		IP: "192.0.2.1"}))(t)
	fatal(t, f.links.Approve(t.Context(), issued.UserCode, accountID))
	poll, err := f.links.Poll(t.Context(), issued.DeviceCode)
	if err != nil || poll.Token == nil {
		t.Fatalf("got token %v (error %v), want one", poll.Token, err)
	}
	return poll.Token.AuthToken
}

func installs(t *testing.T, f *people) {
	ada, bob := f.signUp(t, "ada"), f.signUp(t, "bob")
	one, two, other := f.install(t, ada.ID), f.install(t, ada.ID), f.install(t, bob.ID)
	call := func(token, ip string) (link.Principal, error) {
		return f.links.Authenticate(link.WithAddress(t.Context(), ip), token)
	}
	first := f.clock.now()
	who := must(call(one, "192.0.2.7"))(t)
	f.clock.pass(4 * time.Minute)
	if _, err := call(one, "192.0.2.8"); err != nil { // too soon to be recorded
		t.Fatal(err)
	}
	all, err := f.links.Links(t.Context(), ada.ID)
	if err != nil || len(all) != 2 || all[0].ID != who.LinkID && all[1].ID != who.LinkID {
		t.Fatalf("links: got %+v (error %v), want two", all, err)
	}
	mine := all[0]
	if mine.ID != who.LinkID {
		mine = all[1]
	}
	if !mine.LastUsedAt.Equal(first) || mine.LastIP != "192.0.2.7" || mine.Requester.Host != "laptop" ||
		mine.TokenHash != "" {
		t.Errorf("link: got %+v, want the values of its first use", mine)
	}
	f.clock.pass(time.Minute)
	must(call(one, "192.0.2.9"))(t)
	if all, err = f.links.Links(t.Context(), ada.ID); err != nil || all[0].ID != who.LinkID ||
		all[0].LastIP != "192.0.2.9" || !all[0].UsedAt.Equal(first) || !all[0].LastUsedAt.Equal(f.clock.now()) {
		t.Errorf("links after another use: got %+v (error %v), want the new address and time", all, err)
	}
	want(t, "another's link", f.links.RevokeLink(t.Context(), bob.ID, who.LinkID, audit.Person()), link.ErrUnknown)
	want(t, "no link", f.links.RevokeLink(t.Context(), ada.ID, "", audit.Person()), link.ErrUnknown)
	want(t, "revoke", f.links.RevokeLink(t.Context(), ada.ID, who.LinkID, audit.Person()), nil)
	want(t, "revoke again", f.links.RevokeLink(t.Context(), ada.ID, who.LinkID, audit.Person()), link.ErrUnknown)
	want(t, "the next call", errOf(call(one, "")), link.ErrRevoked)
	if n, err := f.links.RevokeAll(t.Context(), ada.ID, audit.Person()); err != nil || n != 1 {
		t.Errorf("revoked %d links, want 1 (error %v)", n, err)
	}
	want(t, "a call with the other token", errOf(call(two, "")), link.ErrRevoked)
	want(t, "bob's", errOf(call(other, "")), nil)
	if got := f.actions(t, ada.ID); got != "link.revoked link.revoked" {
		t.Errorf("audit actions: got %s, want two revocations", got)
	}
}

func exportThenGone(t *testing.T, f *people) {
	ada, bob := f.verified(t, "ada"), f.verified(t, "bob")
	token, cookie := f.install(t, ada.ID), f.open(t, ada, account.ByPassword)
	f.passkey(t, ada.ID, "phone")
	want(t, "identity", f.LinkIdentity(t.Context(), ada.ID, account.Identity{Provider: "acme", Subject: "ada-there",
		Email: "ada@acme.example"}, audit.Person()), nil)
	f.told(t, ada, "sign in")
	want(t, "mail", f.ChangeEmail(t.Context(), ada.ID, "ada@new.example", password, audit.Person()), nil)
	mailed := f.token(t, "ada@new.example", "/verify")
	f.fill(ada.ID)
	var text strings.Builder
	fatal(t, f.Export(t.Context(), ada.ID, &text, audit.Person()))
	var sections map[string]any
	if err := json.Unmarshal([]byte(text.String()), &sections); err != nil {
		t.Fatalf("%v: %s", err, text.String())
	}
	for _, section := range []string{"account", "browserSessions", "identities", "passkeys", "links", "linkRequests",
		"projects", "projectKeys", "credentials", "audit", "sessions", "sessionEvents", "mailedLinks"} {
		if rows, _ := sections[section].([]any); len(rows) == 0 {
			t.Errorf("the export has no rows in %s: %v", section, sections[section])
		}
	}
	for _, never := range []string{token, cookie, mailed, "canary", bob.ID, bob.Email, "argon2id", hash.Hash("token",
		token), hash.Hash("browser", cookie), hash.Hash("mailed link", mailed)} {
		if strings.Contains(text.String(), never) {
			t.Errorf("the export contains %q", never)
		}
	}
	if !strings.Contains(text.String(), `"created_at":"2026-01-02T03:04:05.000Z"`) {
		t.Errorf("times are not in a readable form: %s", text.String())
	}
	f.box.take()
	want(t, "delete", f.Delete(t.Context(), ada.ID, audit.Person()), nil)
	if sent := f.box.take(); len(sent) != 1 || sent[0].To != ada.Email || sent[0].Link != "" {
		t.Errorf("%d mails about the deletion, want one notice", len(sent))
	}
	left := f.store.dump()
	for _, trace := range []string{ada.ID, "ada@", "ada-there", "canary", "com.example.ada"} {
		if strings.Contains(left, trace) {
			t.Errorf("%q is still in the database", trace)
		}
	}
	if !strings.Contains(left, bob.Email) {
		t.Error("bob's account was deleted too")
	}
	want(t, "the browser", errOf(f.FindSession(t.Context(), cookie)), account.ErrNoSession)
	want(t, "the link", errOf(f.links.Authenticate(t.Context(), token)), link.ErrUnknown)
	want(t, "the mailed link", f.Verify(t.Context(), ada.ID, mailed), account.ErrBadToken)
	want(t, "again", f.Delete(t.Context(), ada.ID, audit.Person()), account.ErrNotFound)
	want(t, "export", f.Export(t.Context(), ada.ID, &text, audit.Person()), account.ErrNotFound)
}

// fill inserts rows of other features for an account, with canary values in the columns that must never be exported.
func (f *people) fill(accountID string) {
	now := f.clock.now().UnixMilli()
	f.store.exec("INSERT INTO projects (account_id, app_id, created_at) VALUES ($1, 'com.example.ada', $2)",
		accountID, now)
	f.store.exec(`INSERT INTO project_keys (hash, account_id, app_id, name, hint, created_at, id)
		VALUES ('canary-key', $1, 'com.example.ada', 'laptop', 'abcd', $2, 'k1')`, accountID, now)
	f.store.exec(`INSERT INTO credentials (account_id, app_id, provider, sealed_for, sealed, wrapped, key_id, hint, set_at,
			requested_by, test_result)
		VALUES ($1, 'com.example.ada', 'acme', 'com.example.ada', 'canary-sealed', 'canary-wrapped', 'canary-id', 'wxyz',
			$2, '', '')`, accountID, now)
	f.store.exec(`INSERT INTO sessions (id, account_id, link_id, app_id, platform, device_model, is_current,
			created_at, last_active_at, expires_at)
		VALUES ('s1', $1, 'l1', 'com.example.ada', 'ios', 'm', 1, $2, $2, $2)`, accountID, now)
	f.store.exec("INSERT INTO session_secrets (session_id, hash, created_at) VALUES ('s1', 'canary-secret', $1)", now)
	f.store.exec(`INSERT INTO events (session_id, seq, sender, frame_id, kind, type, chip, ok, at, body)
		VALUES ('s1', 1, 'app', 'f1', 'request', 'hello', '', 1, $1, '{"a":1}')`, now)
}
