package storetest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

var credentialTests = map[string]func(*testing.T, *credentialFixture){
	"set, shown, removed":           credentialLife,
	"nothing readable is stored":    credentialSealed,
	"a moved row is not decrypted":  credentialMoved,
	"a link is for one":             credentialLink,
	"a link used by many at once":   credentialLinkRace,
	"twenty links":                  credentialManyLinks,
	"a new key":                     credentialRotation,
	"a lost key":                    credentialLostKey,
	"a new key and damaged rows":    credentialDamaged,
	"test and its result":           credentialTest,
	"without a key":                 credentialNoKey,
	"projects that are merged":      credentialMerge,
	"a project that is gone":        credentialGone,
	"a form that cannot be a key's": credentialForm,
}

func TestCredentials(t *testing.T) {
	eachEngine(t, credentialTests, func(t *testing.T, db *database, test func(*testing.T, *credentialFixture)) {
		f := &credentialFixture{tenants: newTenants(t, db), store: db, answer: http.StatusOK}
		provider := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			f.asked = r.Header.Get("X-Key")
			rw.WriteHeader(f.answer)
		}))
		t.Cleanup(provider.Close)
		f.catalogue = catalogue(t, provider.URL)
		f.Service = f.with(t, "01")
		test(t, f)
	})
}

type credentialFixture struct {
	*credentials.Service
	*tenants
	store     *database
	catalogue credentials.Catalogue
	answer    int    // the provider's response status
	asked     string // the key that the provider received last
}

func catalogue(t *testing.T, url string) credentials.Catalogue {
	t.Helper()
	var text strings.Builder
	text.WriteString("providers:\n")
	for _, id := range []string{"first", "second"} {
		text.WriteString("  - {id: " + id + ", name: " + id + " AI, pattern: '^k-', test: {url: '" + url +
			"', header: X-Key}}\n")
	}
	file := filepath.Join(t.TempDir(), "providers.yaml")
	fatal(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return must(credentials.LoadProviders(file))(t)
}

// with returns the service with keys that repeat these hexadecimal bytes; the current key is the first.
func (f *credentialFixture) with(t *testing.T, bytes ...string) *credentials.Service {
	t.Helper()
	var lines strings.Builder
	for _, b := range bytes {
		lines.WriteString(strings.Repeat(b, 32) + "\n")
	}
	keys := must(credentials.ParseKeys(lines.String()))(t)
	return credentials.New(credentials.Options{Store: f.store.credentialsStore, Hasher: hash, Keys: keys,
		Providers: f.catalogue,
		Now:       f.clock.now})
}

const keyValue = "k-canary-value-of-a-key-5417"

func (f *credentialFixture) set(t *testing.T, account, project, provider, value string) {
	t.Helper()
	fatal(t, f.Set(t.Context(), account, project, provider, value, "", audit.Person()))
}

func (f *credentialFixture) status(t *testing.T, account, project string) credentials.Credential {
	t.Helper()
	all, err := f.Status(t.Context(), account, project)
	if err != nil || len(all) != 2 || all[0].Provider.ID != "first" || all[1].Provider.ID != "second" {
		t.Fatalf("status: got %+v (error %v), want both providers in order", all, err)
	}
	return all[0]
}

func (f *credentialFixture) opens(t *testing.T, s *credentials.Service, account, project, want string) {
	t.Helper()
	if got, err := s.Open(t.Context(), account, project, "first"); err != nil || got != want {
		t.Errorf("the credential of %s in %s: got %q (error %v), want the value that was set", project, account, got, err)
	}
}

func credentialLife(t *testing.T, f *credentialFixture) {
	if c := f.status(t, "ada", appID); c.Set || c.Hint != "" || c.SetBy != "" || !c.SetAt.IsZero() {
		t.Errorf("status before: got %+v, want nothing set", c)
	}
	f.set(t, "ada", appID, "first", " "+keyValue+"\n")
	want(t, "removing an unset one", f.Remove(t.Context(), "ada", appID, "second", audit.Person()), credentials.ErrNotSet)
	if c := f.status(t, "ada", appID); !c.Set || c.Hint != "...5417" || c.SetBy != "you" || !c.SetAt.Equal(f.clock.now()) {
		t.Errorf("status once set: got %+v, want the hint, the author and the time", c)
	}
	f.opens(t, f.Service, "ada", appID, keyValue)
	for _, other := range [][2]string{{"bob", appID}, {"ada", otherID}} {
		if c := f.status(t, other[0], other[1]); c.Set {
			t.Errorf("%v has the credential as well", other)
		}
		err := errOf(f.Open(t.Context(), other[0], other[1], "first"))
		want(t, "opening another account's credential", err, credentials.ErrNotSet)
	}
	f.set(t, "ada", appID, "first", "k-another-value-of-a-key-8862")
	f.opens(t, f.Service, "ada", appID, "k-another-value-of-a-key-8862")
	want(t, "removing", f.Remove(t.Context(), "ada", appID, "first", audit.Person()), nil)
	want(t, "removing again", f.Remove(t.Context(), "ada", appID, "first", audit.Person()), credentials.ErrNotSet)
	if c := f.status(t, "ada", appID); c.Set {
		t.Errorf("status after removal: got %+v, want it not set", c)
	}
	if set, gone := f.entries(t, "credential.set"), f.entries(t, "credential.removed"); len(set) != 2 || len(gone) != 1 ||
		set[0].Summary != "key of first AI set" || set[0].Before != nil || gone[0].Project != appID {
		t.Errorf("audit entries: got %+v and %+v, want two for setting it and one for removing it", set, gone)
	}
	want(t, "an unknown provider", f.Set(t.Context(), "ada", appID, "third", keyValue, "", audit.Person()),
		credentials.ErrUnknownProvider)
}

func credentialSealed(t *testing.T, f *credentialFixture) {
	l := must(f.NewLink(t.Context(), "ada", appID, "second", audit.Agent(laptop)))(t)
	f.set(t, "ada", appID, "first", keyValue)
	all := f.store.dump()
	if !strings.Contains(all, "...5417") || !strings.Contains(all, hash.Hash("credential link", l.ID)) {
		t.Fatal("the dump does not contain the stored values")
	}
	for name, never := range map[string]string{"the value": keyValue, "most of it": keyValue[:20], "the link's id": l.ID,
		"the wrapping key": strings.Repeat("01", 32)} {
		if strings.Contains(all, never) {
			t.Errorf("the dump contains %s", name)
		}
	}
}

func credentialMoved(t *testing.T, f *credentialFixture) {
	for _, where := range []string{"account_id = 'bob'", "app_id = 'com.example.other'", "provider = 'second'",
		"app_id = 'com.example.other', sealed_for = 'com.example.other'",
		"app_id = 'com.example.other', sealed_for = 'com.example.app'"} {
		f.set(t, "ada", appID, "first", keyValue)
		f.store.exec("UPDATE credentials SET " + where)
		for _, other := range [][3]string{{"bob", appID, "first"}, {"ada", otherID, "first"}, {"ada", appID, "second"}} {
			if value, err := f.Open(t.Context(), other[0], other[1], other[2]); err == nil || value != "" {
				t.Errorf("decrypted after the row was moved to %s", where)
			}
		}
		f.store.exec("DELETE FROM credentials")
	}
}

func credentialLink(t *testing.T, f *credentialFixture) {
	ctx := t.Context()
	l, err := f.NewLink(ctx, "ada", appID, "first", audit.Agent(laptop))
	if err != nil || !secret.Valid(credential.Credential, l.ID) ||
		!l.ExpiresAt.Equal(f.clock.now().Add(credentials.LinkTTL)) {
		t.Fatalf("got a link until %v (error %v), want a valid one for LinkTTL", l.ExpiresAt, err)
	}
	if seen, err := f.Link(ctx, "ada", l.ID); err != nil || seen.Project != appID || seen.Provider.ID != "first" ||
		seen.AskedBy != "the agent on laptop" {
		t.Errorf("the link shows %+v (error %v), want its project, its provider and the agent", seen, err)
	}
	refused := func(what, account, project, provider, id string) {
		t.Helper()
		want(t, what, f.Set(ctx, account, project, provider, keyValue, id, audit.Person()), credentials.ErrUnknownLink)
	}
	want(t, "another account's link", errOf(f.Link(ctx, "bob", l.ID)), credentials.ErrUnknownLink)
	want(t, "no link", errOf(f.Link(ctx, "ada", secret.New(credential.Credential))), credentials.ErrUnknownLink)
	refused("by another account", "bob", appID, "first", l.ID)
	refused("for another project", "ada", otherID, "first", l.ID)
	refused("for another provider", "ada", appID, "second", l.ID)
	refused("with no link", "ada", appID, "first", secret.New(credential.Credential))
	refused("with noise", "ada", appID, "first", "scl_x")
	if err := f.Set(ctx, "ada", appID, "first", "no key", l.ID, audit.Person()); err == nil {
		t.Error("a value with the wrong form was accepted")
	}
	want(t, "the link after failed attempts", f.Set(ctx, "ada", appID, "first", keyValue, l.ID, audit.Person()), nil)
	refused("once more", "ada", appID, "first", l.ID)
	want(t, "a used link", errOf(f.Link(ctx, "ada", l.ID)), credentials.ErrUnknownLink)
	if c := f.status(t, "ada", appID); c.SetBy != "you, asked by the agent on laptop" {
		t.Errorf("got set by %q, want the person at the agent's request", c.SetBy)
	}
	late := must(f.NewLink(ctx, "ada", appID, "first", audit.Person()))(t)
	if seen, err := f.Link(ctx, "ada", late.ID); err != nil || seen.AskedBy != "" {
		t.Errorf("the link was requested by %q, want nobody (error %v)", seen.AskedBy, err)
	}
	f.clock.pass(credentials.LinkTTL)
	want(t, "an expired link", errOf(f.Link(ctx, "ada", late.ID)), credentials.ErrUnknownLink)
	refused("with an expired link", "ada", appID, "first", late.ID)
}

func credentialLinkRace(t *testing.T, f *credentialFixture) {
	for range 5 {
		l := must(f.NewLink(t.Context(), "ada", appID, "first", audit.Agent(laptop)))(t)
		won, lost := race(t, 30, isAny(credentials.ErrUnknownLink), func(int) error {
			return f.Set(t.Context(), "ada", appID, "first", keyValue, l.ID, audit.Person())
		})
		if won != 1 || lost != 29 {
			t.Fatalf("%d calls won and %d lost, want 1 and 29", won, lost)
		}
	}
	f.opens(t, f.Service, "ada", appID, keyValue)
}

func credentialManyLinks(t *testing.T, f *credentialFixture) {
	var made []credentials.Link
	for range 23 {
		f.clock.pass(time.Second)
		l := must(f.NewLink(t.Context(), "ada", appID, "first", audit.Agent(laptop)))(t)
		made = append(made, l)
	}
	must(f.NewLink(t.Context(), "ada", otherID, "first", audit.Agent(laptop)))(t)
	for i, l := range made {
		if _, err := f.Link(t.Context(), "ada", l.ID); (err == nil) != (i >= 3) {
			t.Errorf("link %d: got %v, want an error for the first three links only", i, err)
		}
	}
}
