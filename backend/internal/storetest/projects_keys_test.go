package storetest

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

func keyToldOnce(t *testing.T, f *projectFixture) {
	first := must(f.MintKey(t.Context(), "ada", app, " laptop ", audit.Agent("link-1")))(t)
	f.clock.pass(time.Second)
	second := f.key(t, app)
	if !secret.Valid(credential.ProjectKey, first.Secret) || first.Secret == second.Secret || first.ID == second.ID {
		t.Error("the two keys are equal or malformed")
	}
	if !strings.HasSuffix(second.Secret, second.Hint) || len(second.Hint) != 4 || !second.CreatedAt.Equal(f.clock.now()) {
		t.Errorf("got hint %q, created at %v; want the last 4 characters and the current time", second.Hint, second.CreatedAt)
	}
	all := f.store.dump()
	if strings.Contains(all, first.Secret) || !strings.Contains(all, f.Hasher.Hash("project key", first.Secret)) {
		t.Error("the database contains the key itself, or lacks its hash")
	}
	keys, err := f.Keys(t.Context(), "ada", app)
	if err != nil || len(keys) != 2 {
		t.Fatalf("keys: got %v (error %v), want 2", keys, err)
	}
	if k := keys[1]; k.ID != first.ID || k.Name != "laptop" || k.Hint != first.Hint || k.Prefix != first.Secret[:8] ||
		k.By != "laptop · test" ||
		!k.CreatedAt.Equal(first.CreatedAt) || !k.LastUsedAt.IsZero() || !k.RevokedAt.IsZero() {
		t.Errorf("the first key: got %+v, want the values it was created with", k)
	}
	for _, e := range f.entries(t, audit.Filter{}) {
		if strings.Contains(e.Summary, first.Secret) {
			t.Error("the audit log contains a key")
		}
	}
}

func fiftyKeys(t *testing.T, f *projectFixture) {
	var last projects.Key
	for range projects.MaxKeys {
		last = f.key(t, app)
	}
	mint := func(account, project string) error {
		_, err := f.MintKey(t.Context(), account, project, "x", audit.Person())
		return err
	}
	want(t, "one more", mint("ada", app), projects.ErrTooManyKeys)
	want(t, "of another project", mint("ada", other), nil)
	want(t, "of another account", mint("bob", app), nil)
	// Only live keys count, and a rotation does not add one.
	if _, err := f.RotateKey(t.Context(), "ada", app, last.ID, audit.Person()); err != nil {
		t.Error(err)
	}
	want(t, "after a rotation", mint("ada", app), projects.ErrTooManyKeys)
	keys, err := f.Keys(t.Context(), "ada", app)
	if err != nil || len(keys) != projects.MaxKeys+1 {
		t.Fatalf("got %d keys (error %v), want one more than the limit", len(keys), err)
	}
	want(t, "revoke", f.RevokeKey(t.Context(), "ada", app, keys[0].ID, audit.Person()), nil)
	want(t, "mint after a revocation", mint("ada", app), nil)
}

func keysAtOnce(t *testing.T, f *projectFixture) {
	minted, refused := race(t, projects.MaxKeys+10, isAny(projects.ErrTooManyKeys), func(int) error {
		return errOf(f.MintKey(t.Context(), "ada", app, "x", audit.Person()))
	})
	if minted != projects.MaxKeys || refused != 10 {
		t.Errorf("%d were minted and %d refused, want projects.MaxKeys and 10", minted, refused)
	}
	if n := f.store.count("SELECT COUNT(*) FROM audit WHERE action = 'key.minted'"); n != projects.MaxKeys {
		t.Errorf("%d audit entries, want projects.MaxKeys", n)
	}
}

func refusedKeys(t *testing.T, f *projectFixture) {
	for _, c := range [][2]string{{"app", "x"}, {"", "x"}, {app, ""}, {app, "  "}, {app, strings.Repeat("x", 101)},
		{app, "a\nb"}, {app, "\xff"}} {
		_, err := f.MintKey(t.Context(), "ada", c[0], c[1], audit.Person())
		if invalid := (*projects.InvalidError)(nil); !errors.As(err, &invalid) {
			t.Errorf("%q: got %v, want an InvalidError", c, err)
		}
	}
	if got := f.actions(t); len(got) != 0 {
		t.Errorf("refused calls left audit entries: %v", got)
	}
}

func keyOpens(t *testing.T, f *projectFixture) {
	k := f.key(t, app)
	owner, err := f.Authenticate(t.Context(), k.Secret)
	if err != nil || owner != (projects.KeyOwner{AccountID: "ada", Project: app, KeyID: k.ID}) {
		t.Errorf("owner: got %+v (error %v), want ada, the project and the key", owner, err)
	}
	for _, wrong := range []string{"", "spk_", k.Secret + "x", k.Secret[:len(k.Secret)-1],
		secret.New(credential.ProjectKey),
		secret.New(credential.Token),
		strings.Replace(k.Secret, "spk_", "svc_", 1), k.Prefix, f.Hasher.Hash("project key", k.Secret)} {
		want(t, "a wrong key", errOf(f.Authenticate(t.Context(), wrong)), projects.ErrUnknownKey)
	}
	f.store.exec("UPDATE accounts SET state = 'suspended' WHERE id = 'ada'")
	want(t, "a suspended account's key", errOf(f.Authenticate(t.Context(), k.Secret)), projects.ErrUnknownKey)
	if live, err := f.store.LiveKeys(t.Context(), []string{k.ID}); err != nil || len(live) != 0 {
		t.Errorf("live keys of a suspended account: got %v (error %v), want none", live, err)
	}
	f.store.exec("UPDATE accounts SET state = 'active' WHERE id = 'ada'")
	want(t, "active again", errOf(f.Authenticate(t.Context(), k.Secret)), nil)
}

// keyUse tests that the last use is recorded at most once every five minutes.
func keyUse(t *testing.T, f *projectFixture) {
	k := f.key(t, app)
	f.clock.pass(time.Hour)
	first := f.clock.now()
	used := func() time.Time {
		t.Helper()
		must(f.Authenticate(t.Context(), k.Secret))(t)
		keys := must(f.Keys(t.Context(), "ada", app))(t)
		if p := f.get(t, app); !p.LastActiveAt.Equal(keys[0].LastUsedAt) {
			t.Errorf("the project was last active at %v, its key at %v; want them equal", p.LastActiveAt, keys[0].LastUsedAt)
		}
		return keys[0].LastUsedAt
	}
	if got := used(); !got.Equal(first) {
		t.Errorf("first use recorded at %v, want the time of the use", got)
	}
	f.clock.pass(5*time.Minute - time.Millisecond)
	if got := used(); !got.Equal(first) {
		t.Errorf("within five minutes the recorded use changed to %v, want no change", got)
	}
	f.clock.pass(time.Millisecond)
	if got := used(); !got.Equal(f.clock.now()) {
		t.Errorf("after five minutes the recorded use is %v, want the current time", got)
	}
}

func rotate(t *testing.T, f *projectFixture) {
	old := f.key(t, app)
	f.clock.pass(time.Minute)
	k, err := f.RotateKey(t.Context(), "ada", app, old.ID, audit.Person())
	if err != nil || k.Secret == old.Secret || k.ID == old.ID {
		t.Fatalf("rotate: got error %v, want a new key with another ID", err)
	}
	want(t, "the old key", errOf(f.Authenticate(t.Context(), old.Secret)), projects.ErrUnknownKey)
	if owner, err := f.Authenticate(t.Context(), k.Secret); err != nil || owner.KeyID != k.ID {
		t.Errorf("the new key: got owner %v (error %v), want the new key's ID", owner, err)
	}
	keys, err := f.Keys(t.Context(), "ada", app)
	if err != nil || len(keys) != 2 || keys[0].ID != k.ID || keys[0].Name != "laptop" || keys[0].By != "you" ||
		!keys[1].RevokedAt.Equal(f.clock.now()) {
		t.Errorf("keys: got %+v (error %v), want the new key and the revoked one", keys, err)
	}
	want(t, "a revoked one", errOf(f.RotateKey(t.Context(), "ada", app, old.ID, audit.Person())), projects.ErrNoKey)
	want(t, "none", errOf(f.RotateKey(t.Context(), "ada", app, "nonsense", audit.Person())), projects.ErrNoKey)
	if e := f.entries(t, audit.Filter{})[0]; e.Action != "key.rotated" || !strings.Contains(e.Summary,
		old.Hint+" -> "+k.Hint) {
		t.Errorf("audit entry: got %+v, want a rotation with both hints", e)
	}
}

func rotateAtOnce(t *testing.T, f *projectFixture) {
	for range 5 {
		old := f.key(t, app)
		won, lost := race(t, 8, isAny(projects.ErrNoKey), func(int) error {
			return errOf(f.RotateKey(t.Context(), "ada", app, old.ID, audit.Person()))
		})
		if won != 1 || lost != 7 {
			t.Errorf("%d rotations won and %d lost, want 1 and 7", won, lost)
		}
	}
	if p := f.get(t, app); p.Keys != 5 {
		t.Errorf("%d live keys, want 5", p.Keys)
	}
}

func revokeKey(t *testing.T, f *projectFixture) {
	k, stays := f.key(t, app), f.key(t, app)
	for range 2 {
		want(t, "revoke", f.RevokeKey(t.Context(), "ada", app, k.ID, audit.Person()), nil)
	}
	want(t, "the revoked key", errOf(f.Authenticate(t.Context(), k.Secret)), projects.ErrUnknownKey)
	want(t, "the other key", errOf(f.Authenticate(t.Context(), stays.Secret)), nil)
	live, err := f.store.LiveKeys(t.Context(), []string{k.ID, stays.ID, "nonsense"})
	if err != nil || len(live) != 1 || live[0] != stays.ID {
		t.Errorf("live keys: got %v (error %v), want one", live, err)
	}
	want(t, "none", f.RevokeKey(t.Context(), "ada", app, "nonsense", audit.Person()), projects.ErrNoKey)
	f.key(t, other)
	want(t, "through another project", f.RevokeKey(t.Context(), "ada", other, stays.ID, audit.Person()), projects.ErrNoKey)
	if n := f.store.count("SELECT COUNT(*) FROM audit WHERE action = 'key.revoked'"); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
}

// revokeInUse tests that a key is invalid once RevokeKey has returned, even if the key is in heavy use.
func revokeInUse(t *testing.T, f *projectFixture) {
	for range 10 {
		k := f.key(t, app)
		var revoked atomic.Bool
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for range 20 {
					late := revoked.Load()
					switch _, err := f.Authenticate(t.Context(), k.Secret); {
					case err == nil && late:
						t.Error("a revoked key is still accepted")
					case err != nil && !errors.Is(err, projects.ErrUnknownKey):
						t.Error(err)
					}
				}
			})
		}
		want(t, "revoke", f.RevokeKey(t.Context(), "ada", app, k.ID, audit.Person()), nil)
		revoked.Store(true)
		wg.Wait()
		f.clock.pass(time.Hour)
	}
}
