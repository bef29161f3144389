package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
)

// desk runs the operator's commands while a server has the database open. Their changes apply from the server's next
// call on.
type desk struct {
	*testing.T
	file  string
	db    *db.DB
	links *link.Service
	ada   account.Account
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	t.Setenv("SERVICE_BACKEND_HMAC_KEY", testKey)
	d := &desk{T: t, file: filepath.Join(t.TempDir(), "service.db"), ada: account.Account{
		ID: "ada-id", Email: "ada@example.org", PasswordHash: "x", Active: true, CreatedAt: time.Now()}}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	if d.db, err = db.Open(t.Context(), d.file, quiet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.db.Close() })
	key, err := hex.DecodeString(testKey)
	if err != nil {
		t.Fatal(err)
	}
	d.links = link.New(link.Options{Store: link.NewStore(d.db), Hasher: secret.NewHasher(key),
		Settings: link.Settings{CodeTTL: time.Minute, PollInterval: time.Second}, Log: quiet})
	if err := account.NewStore(d.db).InsertAccount(t.Context(), d.ada); err != nil {
		t.Fatal(err)
	}
	return d
}

// mint links an install from an address, and returns its token and its user code.
func (d *desk) mint(host, address string) (*link.Token, string) {
	d.Helper()
	ctx := link.WithAddress(d.Context(), address)
	code, err := d.links.Start(ctx, link.Requester{Host: host, IP: address})
	if err != nil {
		d.Fatal(err)
	}
	if err := d.links.Approve(ctx, code.UserCode, d.ada.ID); err != nil {
		d.Fatal(err)
	}
	poll, err := d.links.Poll(ctx, code.DeviceCode)
	if err != nil || poll.Token == nil {
		d.Fatalf("poll: %v", err)
	}
	return poll.Token, code.UserCode
}

func (d *desk) admin(args ...string) (code int, out, errs string) {
	d.Helper()
	return run(append([]string{"admin", "--database", d.file}, args...)...)
}

func (d *desk) live(tokens ...*link.Token) (n int) {
	for _, token := range tokens {
		if _, err := d.links.Authenticate(d.Context(), token.AuthToken); err == nil {
			n++
		}
	}
	return n
}

// The operator revokes, suspends and restores while the server runs. Each change takes effect on the very next call.
func TestAdminLooksAfterAccounts(t *testing.T) {
	d := newDesk(t)
	maple, _ := d.mint("maple", "192.0.2.1")
	birch, _ := d.mint("birch", "192.0.2.2")
	for _, step := range []struct {
		args []string
		code int
		says []string
		live int
	}{
		{[]string{"account", " Ada@Example.org "}, 0, []string{"ada-id", "active", "2 live", "admin links ada-id"}, 2},
		{[]string{"account", "bob@example.org"}, 1, []string{"no account"}, 2},
		{[]string{"links", " Ada@Example.org "}, 0, []string{"maple", "birch", "192.0.2.2", "admin revoke --link"}, 2},
		{[]string{"links", "bob@example.org"}, 1, []string{"no account"}, 2},
		{[]string{"suspend", "ada@example.org"}, 0, []string{"suspended", "admin restore ada-id"}, 0},
		{[]string{"suspend", "ada-id"}, 1, []string{"suspended already"}, 0},
		{[]string{"account", "ada-id"}, 0, []string{"suspended"}, 0},
		{[]string{"restore", "ada-id"}, 0, []string{"active"}, 2},
		{[]string{"restore", "ada-id"}, 1, []string{"not suspended"}, 2},
		{[]string{"restore", "bob-id"}, 1, []string{"no account"}, 2},
		{[]string{"revoke", "--link", "none"}, 1, []string{"no live link"}, 2},
		{[]string{"revoke"}, 1, []string{"exactly one"}, 2},
		{[]string{"revoke", "--email", "ada@example.org", "--account", "ada-id"}, 1, []string{"exactly one"}, 2},
		{[]string{"revoke", "--email", "bob@example.org"}, 1, []string{"no account"}, 2},
		{[]string{"revoke", "--link", maple.LinkID}, 0, []string{"revoked 1"}, 1},
		{[]string{"revoke", "--link", maple.LinkID}, 1, []string{"no live link"}, 1},
		{[]string{"revoke", "--email", " ADA@example.org"}, 0, []string{"revoked 1"}, 0},
		{[]string{"revoke", "--account", d.ada.ID}, 1, []string{"no live link"}, 0},
		{[]string{"links", d.ada.ID}, 0, []string{birch.LinkID}, 0},
	} {
		code, out, errs := d.admin(step.args...)
		for _, says := range step.says {
			if code != step.code || !strings.Contains(out+errs, says) {
				t.Errorf("%v: got exit code %d, %q, %q; want %q in them", step.args, code, out, errs, says)
			}
		}
		if n := d.live(maple, birch); n != step.live {
			t.Errorf("%v: %d tokens live, want %d", step.args, n, step.live)
		}
		if strings.Contains(out, maple.AuthToken) || strings.Contains(out, birch.AuthToken) {
			t.Errorf("the output of %v contains a token", step.args)
		}
	}
	var actions []string
	entries, err := audit.NewStore(d.db).AuditEntries(t.Context(), d.ada.ID, audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		actions = append(actions, e.Action+" by "+e.ActorName)
	}
	if got := strings.Join(actions, ", "); got != "link.revoked by operator, link.revoked by operator, "+
		"account.restored by operator, account.suspended by operator, link.created by you, link.created by you, "+
		"account.created by you" {
		t.Errorf("got the audit log %s, want each change once", got)
	}
}

// Scripts get the same data as JSON.
func TestAdminPrintsJSON(t *testing.T) {
	d := newDesk(t)
	token, userCode := d.mint("maple", "192.0.2.1")
	for _, c := range []struct {
		args []string
		into any
		want string
	}{
		{[]string{"account", "ada-id"}, &accountJSON{}, `"liveLinks":1`},
		{[]string{"links", "ada-id"}, &[]linkJSON{}, `"host":"maple"`},
		{[]string{"trail", "--code", userCode}, &[]trailJSON{}, `"action":"approve"`},
		{[]string{"trail", "--code", "BBBB-BBBB"}, &[]trailJSON{}, `[]`},
		{[]string{"suspend", "ada-id"}, &accountJSON{}, `"state":"suspended"`},
		{[]string{"restore", "ada-id"}, &accountJSON{}, `"changed":true`},
		{[]string{"revoke", "--link", token.LinkID}, &struct {
			AccountID string `json:"accountId"`
			Revoked   int    `json:"revoked"`
		}{}, `"revoked":1`},
	} {
		code, out, errs := d.admin(append(c.args, "--json")...)
		if err := json.Unmarshal([]byte(out), c.into); code != 0 || err != nil {
			t.Fatalf("%v: got exit code %d, %q, %q (error %v); want 0 and JSON", c.args, code, out, errs, err)
		}
		if again, _ := json.Marshal(c.into); !strings.Contains(string(again), c.want) {
			t.Errorf("%v: got %s, want %s in it", c.args, again, c.want)
		}
	}
}

// The operator enters plain values, while the trail stores only hashes. Without the key, the command finds nothing.
func TestAdminTrail(t *testing.T) {
	d := newDesk(t)
	maple, code := d.mint("maple", "192.0.2.1")
	_, other := d.mint("birch", "2001:db8::1")
	d.admin("suspend", "ada-id")
	d.admin("restore", "ada-id")
	d.admin("revoke", "--link", maple.LinkID)
	const of = "redeem approve issue"
	for _, c := range []struct {
		args []string
		want string // actions, newest first
	}{
		{nil, "revoke restore suspend " + of + " " + of},
		{[]string{"--limit", "2"}, "revoke restore"},
		{[]string{"--code", strings.ToLower(code)}, of},
		{[]string{"--code", strings.ReplaceAll(other, "-", " ")}, of},
		{[]string{"--link", maple.LinkID}, "revoke redeem"},
		{[]string{"--account", "Ada@example.org"}, "revoke restore suspend redeem approve redeem approve"},
		{[]string{"--account", "ada-id", "--code", code}, "redeem approve"},
		{[]string{"--address", "192.0.2.1"}, of},
		{[]string{"--address", "::ffff:192.0.2.1"}, of},
		{[]string{"--address", "2001:DB8:0::1"}, of},
		{[]string{"--address", "192.0.2.9"}, ""},
		{[]string{"--account", "id-of-nobody"}, ""},
	} {
		exit, out, errs := d.admin(append([]string{"trail", "--json"}, c.args...)...)
		var lines []trailJSON
		if err := json.Unmarshal([]byte(out), &lines); exit != 0 || err != nil {
			t.Fatalf("%v: got exit code %d, %q, %q (error %v); want 0 and JSON", c.args, exit, out, errs, err)
		}
		var actions []string
		for _, l := range lines {
			actions = append(actions, l.Action)
		}
		if got := strings.Join(actions, " "); got != c.want {
			t.Errorf("%v: got %s, want %s", c.args, got, c.want)
		}
		for _, clear := range []string{code, other, maple.LinkID, maple.AuthToken, "ada-id", "ada@", "192.0.2.", "2001:db8"} {
			if strings.Contains(out, clear) {
				t.Errorf("the output of %v contains %s in clear text", c.args, clear)
			}
		}
	}
	if exit, out, _ := d.admin("trail"); exit != 0 || !strings.Contains(out, "ACTION") || !strings.Contains(out, "suspend") {
		t.Errorf("as text: got exit code %d, %q; want 0 and a table", exit, out)
	}
	for says, args := range map[string][]string{"user code": {"--code", "nonsense"}, "network address": {"--address", "nonsense"},
		"no account has that e-mail address": {"--account", "typo@example.org"},
		"--limit must be 1 to 1000":          {"--limit=-5"}, "1 to 1000": {"--limit=0"},
		"to 1000": {"--limit=1001"}} {
		if exit, _, errs := d.admin(append([]string{"trail"}, args...)...); exit != 1 || !strings.Contains(errs, says) {
			t.Errorf("%v: got exit code %d, %q; want 1 and the case's error", args, exit, errs)
		}
	}
	t.Setenv("SERVICE_BACKEND_HMAC_KEY", "")
	for _, args := range [][]string{{"trail"}, {"suspend", "ada-id"}, {"revoke", "--account", "ada-id"}} {
		if exit, out, errs := d.admin(args...); exit != 1 || !strings.Contains(errs, "SERVICE_BACKEND_HMAC_KEY") {
			t.Errorf("%v without a key: got exit code %d, %q, %q; want 1 and an error", args, exit, out, errs)
		}
	}
}

// A database that is unavailable is not reported as a missing account.
func TestAdminTrailTellsOfADatabaseThatIsAway(t *testing.T) {
	d := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	quiet := slog.New(slog.DiscardHandler)
	o := operator{accounts: account.New(account.Options{Store: account.NewStore(d.db), Hasher: secret.NewHasher(nil),
		Log: quiet}), links: d.links, out: io.Discard}
	if err := o.tellTrail(ctx, link.Asked{Limit: 1}, "ada-id"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
