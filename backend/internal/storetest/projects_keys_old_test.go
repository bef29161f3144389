package storetest

import (
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

// oldKeys tests that revoked keys are deleted after their retention or when many newer ones exist, and that live keys
// and the keys of other projects stay.
func oldKeys(t *testing.T, f *projectFixture) {
	keys := func(id string) int {
		t.Helper()
		all := must(f.Keys(t.Context(), "ada", id))(t)
		return len(all)
	}
	gone, elsewhere, stays := f.key(t, app), f.key(t, other), f.key(t, app)
	want(t, "revoke", f.RevokeKey(t.Context(), "ada", app, gone.ID, audit.Person()), nil)
	want(t, "revoke", f.RevokeKey(t.Context(), "ada", other, elsewhere.ID, audit.Person()), nil)
	f.clock.pass(projects.RevokedFor)
	last := f.key(t, app)
	if n := keys(app); n != 3 {
		t.Errorf("%d keys at the end of the retention, want 3", n)
	}
	f.clock.pass(time.Millisecond)
	want(t, "revoke", f.RevokeKey(t.Context(), "ada", app, last.ID, audit.Person()), nil)
	if n := keys(app); n != 2 {
		t.Errorf("%d keys after the retention, want 2", n)
	}
	if n := keys(other); n != 1 {
		t.Errorf("%d keys in another project, want 1", n)
	}
	for range projects.RevokedKept + 5 {
		f.clock.pass(time.Second)
		k := must(f.RotateKey(t.Context(), "ada", app, stays.ID, audit.Person()))(t)
		last, stays = stays, k
	}
	all, err := f.Keys(t.Context(), "ada", app)
	if err != nil || len(all) != projects.RevokedKept+1 || all[0].ID != stays.ID || all[1].ID != last.ID {
		t.Errorf("%d keys after many rotations, want RevokedKept+1 (error %v)", len(all), err)
	}
	if _, err := f.Authenticate(t.Context(), stays.Secret); err != nil {
		t.Error(err)
	}
}
