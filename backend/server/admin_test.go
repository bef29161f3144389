package server

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/backend/internal/sqlstore"
)

// The operator revokes while the server's database is open; what was revoked is dead at the very next call.
func TestAdminRevoke(t *testing.T) {
	file := filepath.Join(t.TempDir(), "service.db")
	quiet := slog.New(slog.DiscardHandler)
	store, err := sqlstore.Open(t.Context(), file, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	links := link.NewService(store, store, secret.NewHasher(make([]byte, 32)), link.Settings{CodeTTL: time.Minute, PollInterval: time.Second}, quiet, nil)
	ada := account.Account{ID: "ada-id", Email: "ada@example.org", PasswordHash: "x", Active: true, CreatedAt: time.Now()}
	if err := store.InsertAccount(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	mint := func(host string) *link.Token {
		t.Helper()
		code, err := links.Start(t.Context(), link.Requester{Host: host})
		if err != nil {
			t.Fatal(err)
		}
		if err := links.Approve(t.Context(), code.UserCode, ada.ID); err != nil {
			t.Fatal(err)
		}
		poll, err := links.Poll(t.Context(), code.DeviceCode)
		if err != nil || poll.Token == nil {
			t.Fatalf("poll: %v", err)
		}
		return poll.Token
	}
	maple, birch := mint("maple"), mint("birch")
	live := func(tokens ...*link.Token) (n int) {
		for _, token := range tokens {
			if _, err := links.Authenticate(t.Context(), token.AuthToken); err == nil {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		args []string
		code int
		says string
		live int
	}{
		{[]string{"links", " Ada@Example.org "}, 0, "maple", 2},
		{[]string{"revoke", "--link", "none"}, 1, "no live link", 2},
		{[]string{"revoke", "--email", "bob@example.org"}, 1, "no live link", 2},
		{[]string{"revoke", "--link", maple.LinkID}, 0, "revoked 1", 1},
		{[]string{"revoke", "--link", maple.LinkID}, 1, "no live link", 1},
		{[]string{"revoke", "--email", " ADA@example.org"}, 0, "revoked 1", 0},
		{[]string{"revoke", "--account", ada.ID}, 1, "no live link", 0},
		{[]string{"links", ada.ID}, 0, birch.LinkID, 0},
	} {
		code, out, errs := run(append([]string{"admin", "--database", file}, step.args...)...)
		if code != step.code || !strings.Contains(out+errs, step.says) {
			t.Errorf("%v: exit %d, %q, %q", step.args, code, out, errs)
		}
		if n := live(maple, birch); n != step.live {
			t.Errorf("%v: %d tokens live, want %d", step.args, n, step.live)
		}
		if strings.Contains(out, maple.AuthToken) || strings.Contains(out, birch.AuthToken) {
			t.Errorf("%v prints a token", step.args)
		}
	}
}
