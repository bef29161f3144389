package storetest

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/projects"
)

// many sets more credentials for two accounts than a rotation handles in one batch.
func (f *credentialFixture) many(t *testing.T) int {
	t.Helper()
	f.set(t, "ada", appID, "first", keyValue)
	f.set(t, "ada", otherID, "first", keyValue)
	f.set(t, "bob", appID, "first", keyValue)
	n := 3
	for i := range 60 {
		project := "com.example.app" + strings.Repeat("x", i+1)
		must(f.projects.MintKey(t.Context(), "bob", project, "laptop", audit.Person()))(t)
		f.set(t, "bob", project, "first", keyValue)
		f.set(t, "bob", project, "second", keyValue)
		n += 2
	}
	return n
}

func credentialRotation(t *testing.T, f *credentialFixture) {
	n := f.many(t)
	both, next := f.with(t, "02", "01"), f.with(t, "02")
	if ids, err := both.Removable(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("keys removable before the rotation: got %v, want none (error %v)", ids, err)
	}
	if done, err := both.Rewrap(t.Context()); err != nil || done != n {
		t.Fatalf("rewrapped %d credentials, want %d (error %v)", done, n, err)
	}
	if done, err := both.Rewrap(t.Context()); err != nil || done != 0 {
		t.Errorf("rewrapped %d credentials the second time, want none (error %v)", done, err)
	}
	if ids, err := both.Removable(t.Context()); err != nil || len(ids) != 1 {
		t.Errorf("keys removable after the rotation: got %v, want one (error %v)", ids, err)
	}
	for _, s := range []*credentials.Service{both, next} {
		f.opens(t, s, "ada", appID, keyValue)
		f.opens(t, s, "bob", appID, keyValue)
		f.opens(t, s, "bob", "com.example.appxxxxx", keyValue)
	}
	if c := f.status(t, "ada", appID); c.Hint != "...5417" || c.SetBy != "you" {
		t.Errorf("status after the rotation: got %+v, want the same hint and author", c)
	}
}

// credentialDamaged tests that credentials that cannot be decrypted are reported, stay unchanged and never block the
// others, regardless of their number.
func credentialDamaged(t *testing.T, f *credentialFixture) {
	n := f.many(t)
	f.store.exec("UPDATE credentials SET wrapped = '1.AAAA' WHERE account_id = 'bob' AND provider = 'second'")
	f.store.exec("UPDATE credentials SET wrapped = '1.AAAA' WHERE account_id = 'ada' AND app_id = $1", appID)
	both := f.with(t, "02", "01")
	var damaged *credentials.DamagedError
	done, err := both.Rewrap(t.Context())
	if done != n-61 || !errors.As(err, &damaged) || len(damaged.Credentials) != 61 {
		t.Fatalf("rewrapped %d of %d credentials; want all but 61 (error %v)", done, n, err)
	}
	first := damaged.Credentials[0]
	if first.AccountID != "ada" || first.Project != appID || first.Provider != "first" || !strings.Contains(err.Error(),
		"61 credentials") ||
		!strings.Contains(err.Error(), first.KeyID) {
		t.Errorf("the first damaged credential: got %+v: %v, want ada's, and an error with the count and the key", first, err)
	}
	if ids, err := both.Removable(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("removable keys: got %v, want none (error %v)", ids, err)
	}
	f.opens(t, f.with(t, "02"), "bob", appID, keyValue)
	// A credential whose key was lost is also reported.
	f.store.exec("UPDATE credentials SET key_id = 'lost' WHERE account_id = 'bob' AND provider = 'first' AND app_id = $1",
		appID)
	var lost *credentials.MissingKeyError
	if _, err := both.Rewrap(t.Context()); !errors.As(err, &damaged) || !errors.As(err, &lost) || lost.KeyID != "lost" {
		t.Errorf("damaged credentials and a lost key: got %v, want both reported", err)
	}
}

func credentialLostKey(t *testing.T, f *credentialFixture) {
	f.set(t, "ada", appID, "first", keyValue)
	second := f.with(t, "02")
	fatal(t, second.Set(t.Context(), "bob", appID, "first", keyValue, "", audit.Person()))
	before := f.store.dump()
	third := f.with(t, "03", "02")
	var lost *credentials.MissingKeyError
	// The credential that can be rewrapped is rewrapped; the other is reported and does not change.
	if done, err := third.Rewrap(t.Context()); done != 1 || !errors.As(err, &lost) || lost.Credentials != 1 ||
		!strings.Contains(err.Error(), lost.KeyID) {
		t.Fatalf("rewrapped %d credentials, want 1 and a lost key: %v", done, err)
	}
	if !strings.Contains(before, lost.KeyID) || !strings.Contains(f.store.dump(), lost.KeyID) {
		t.Error("the reported key differs from the stored one")
	}
	if _, err := third.Open(t.Context(), "ada", appID, "first"); !errors.As(err, &lost) {
		t.Errorf("opening a credential with a lost key: got %v, want the key reported as lost", err)
	}
	if c, err := third.Status(t.Context(), "ada", appID); err != nil || !c[0].Set {
		t.Errorf("status: got %+v, want it set (error %v)", c, err)
	}
	if done, err := f.with(t, "03", "02", "01").Rewrap(t.Context()); done != 1 || err != nil {
		t.Errorf("after the key was restored: rewrapped %d, want 1: %v", done, err)
	}
	f.opens(t, third, "ada", appID, keyValue)
	f.opens(t, third, "bob", appID, keyValue)
}

func credentialNoKey(t *testing.T, f *credentialFixture) {
	f.set(t, "ada", appID, "first", keyValue)
	none := f.with(t)
	if c, err := none.Status(t.Context(), "ada", appID); err != nil || !c[0].Set || c[0].Hint != "...5417" {
		t.Errorf("status: got %+v (error %v), want it set", c, err)
	}
	want(t, "set", none.Set(t.Context(), "ada", appID, "first", keyValue, "", audit.Person()),
		credentials.ErrNotConfigured)
	want(t, "link", errOf(none.NewLink(t.Context(), "ada", appID, "first", audit.Person())), credentials.ErrNotConfigured)
	want(t, "open", errOf(none.Open(t.Context(), "ada", appID, "first")), credentials.ErrNotConfigured)
	want(t, "rewrap", errOf(none.Rewrap(t.Context())), credentials.ErrNotConfigured)
	want(t, "remove", none.Remove(t.Context(), "ada", appID, "first", audit.Person()), nil)
}

// credentialGone tests a form that was opened before its project was deleted.
func credentialGone(t *testing.T, f *credentialFixture) {
	fatal(t, f.projects.Delete(t.Context(), "ada", otherID, audit.Person()))
	want(t, "set", f.Set(t.Context(), "ada", otherID, "first", keyValue, "", audit.Person()), projects.ErrNotFound)
	want(t, "link", errOf(f.NewLink(t.Context(), "ada", otherID, "first", audit.Agent(laptop))), projects.ErrNotFound)
}

func credentialTest(t *testing.T, f *credentialFixture) {
	try := func(answer int, want string) {
		t.Helper()
		f.answer = answer
		if got, err := f.Test(t.Context(), "ada", appID, "first", audit.Person()); err != nil || got != want {
			t.Errorf("provider status %d: got result %q (error %v), want the expected result", answer, got, err)
		}
	}
	want(t, "nothing to test", errOf(f.Test(t.Context(), "ada", appID, "first", audit.Person())), credentials.ErrNotSet)
	f.set(t, "ada", appID, "first", keyValue)
	try(http.StatusOK, credentials.TestOK)
	if f.asked != keyValue {
		t.Error("the provider did not receive the key")
	}
	try(http.StatusForbidden, credentials.TestOK) // answered with the recent result
	if c := f.status(t, "ada", appID); c.TestResult != credentials.TestOK || !c.TestedAt.Equal(f.clock.now()) {
		t.Errorf("status after the test: got %+v, want the result ok and the time", c)
	}
	f.clock.pass(time.Minute)
	try(http.StatusForbidden, credentials.TestRefused)
	f.clock.pass(time.Minute)
	try(http.StatusBadGateway, credentials.TestUnreachable)
	f.set(t, "ada", appID, "first", keyValue)
	if c := f.status(t, "ada", appID); c.TestResult != "" || !c.TestedAt.IsZero() {
		t.Errorf("a new key still has the result of the old one: %+v", c)
	}
	if all := f.entries(t, "credential.tested"); len(all) != 3 || all[1].Summary != "key of first AI tested: refused" {
		t.Errorf("audit entries: got %+v, want 3, the second with the result refused", all)
	}
}

func credentialMerge(t *testing.T, f *credentialFixture) {
	f.set(t, "ada", appID, "first", keyValue)
	f.set(t, "ada", appID, "second", keyValue)
	fatal(t, f.Set(t.Context(), "ada", otherID, "second", "k-the-other-one-of-a-key", "", audit.Person()))
	fatal(t, f.projects.Merge(t.Context(), "ada", appID, otherID, audit.Person()))
	f.opens(t, f.Service, "ada", otherID, keyValue)
	if got, err := f.Open(t.Context(), "ada", otherID, "second"); err != nil || got != "k-the-other-one-of-a-key" {
		t.Errorf("the credential that both projects had: got %q (error %v), want the other project's", got, err)
	}
	if done, err := f.with(t, "02", "01").Rewrap(t.Context()); err != nil || done != 2 {
		t.Errorf("rewrapped %d credentials, want 2 (error %v)", done, err)
	}
	f.opens(t, f.with(t, "02"), "ada", otherID, keyValue)
}

func credentialForm(t *testing.T, f *credentialFixture) {
	for _, value := range []string{"", "k-", "x-value-of-a-key", "k-value of a key", "k-" + strings.Repeat("x", 600),
		"svc_" + strings.Repeat("x", 40)} {
		err := f.Set(t.Context(), "ada", appID, "first", value, "", audit.Person())
		var invalid *credentials.InvalidError
		if !errors.As(err, &invalid) || len(value) > 4 && strings.Contains(err.Error(), value) {
			t.Errorf("the value %q: got %v, want an InvalidError that does not quote it", value, err)
		}
	}
	if c := f.status(t, "ada", appID); c.Set {
		t.Error("an invalid value was stored")
	}
}
