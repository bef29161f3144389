package storetest

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/attest/attesttest"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/test/testkey"
)

func TestAttest(t *testing.T) {
	eachEngine(t, map[string]func(*testing.T, *purses){"installs, tokens and refusals": attestedInstalls},
		func(t *testing.T, db *database, test func(*testing.T, *purses)) {
			f := newTenants(t, db)
			test(t, &purses{f, newCreditLedger(db, f.clock, false), db})
		})
}

// attestedInstalls attests one install of each kind and ends them. Package attest tests the rules.
func attestedInstalls(t *testing.T, f *purses) {
	const app, name = "ABCDE12345.com.example.app", "an-install-of-an-app"
	keys := must(credentials.ParseKeys(hex.EncodeToString(make([]byte, 32))))(t)
	ca := attesttest.NewApple(t, f.clock.now())
	s := &attest.Service{Store: attest.NewStore(f.store.DB), Hasher: hash, Now: f.clock.now, AppleRoot: ca.Root,
		Credentials: credentials.New(credentials.Options{Store: f.store.credentialsStore, Hasher: hash, Keys: keys,
			Now: f.clock.now})}
	key := must(f.projects.MintKey(t.Context(), "ada", appID, "app", audit.Person()))(t)
	who := projects.KeyOwner{AccountID: "ada", Project: appID, KeyID: key.ID}
	testKey := testkey.New(t)
	must(s.Set(t.Context(), "ada", appID, attest.Settings{AppleApps: []string{app}, TestKey: testKey.Public},
		audit.Person()))(t)

	challenge := func() string { return must(s.Challenge(t.Context(), who))(t).Text }
	d := attesttest.NewDevice(t, app, f.clock.now().AddDate(0, 0, 1))
	text := challenge()
	token := must(s.Apple(t.Context(), who, text, d.KeyID(t), d.Attest(t, ca, text)))(t)
	text = challenge()
	again := must(s.AppleAssertion(t.Context(), who, text, d.KeyID(t), d.Assert(t, text)))(t)
	text = challenge()
	signature := testKey.Sign(text, name)
	must(s.Development(t.Context(), who, text, name, signature))(t)
	if _, err := s.Development(t.Context(), who, text, name, signature); err == nil {
		t.Error("a challenge was accepted twice")
	}
	for _, one := range []attest.Token{token, again} {
		if c := must(s.Open(t.Context(), one.Text))(t); c.Install != token.Install || c.Project != appID {
			t.Errorf("got caller %+v, want install %s", c, token.Install)
		}
	}
	if live := must(s.Store.LiveInstalls(t.Context(), []string{token.Install, "unknown"}))(t); len(live) != 1 {
		t.Errorf("got live installs %v, want one", live)
	}
	fatal(t, s.Revoke(t.Context(), "ada", appID, token.Install, audit.Person()))
	fatal(t, s.Revoke(t.Context(), "ada", appID, token.Install, audit.Person()))
	o := must(s.Overview(t.Context(), "ada", appID, ""))(t)
	if o.Counts[attest.Attested] != 1 || o.Counts[attest.Revoked] != 1 || len(o.Latest) != 2 || len(o.Refusals) != 1 {
		t.Errorf("got overview %+v, want two installs and a refusal", o)
	}
	f.clock.pass(attest.InstallsKept + time.Hour)
	text = challenge()
	signature = testKey.Sign(text, name+"-2")
	must(s.Development(t.Context(), who, text, name+"-2", signature))(t)
	fatal(t, s.Sweep(t.Context()))
	if o = must(s.Overview(t.Context(), "ada", appID, ""))(t); len(o.Latest) != 1 || len(o.Refusals) != 0 {
		t.Errorf("half a year later: got %+v, want only the new install", o)
	}
	if n := f.store.count("SELECT COUNT(*) FROM attest_refusals"); n != 0 {
		t.Errorf("%d counts of refusals remain, want none", n)
	}
	settings := o.Settings
	settings.AppleApps, settings.TestKey = nil, ""
	must(s.Set(t.Context(), "ada", appID, settings, audit.Person()))(t)
	if o = must(s.Overview(t.Context(), "ada", appID, ""))(t); o.Counts[attest.Expired] != 1 {
		t.Errorf("without the test key: got %+v, want an install whose token has ended", o)
	}
	decryption, verification := attesttest.NewGoogle(t).Keys(t)
	must(s.SetPlayKeys(t.Context(), "ada", appID, decryption, verification, audit.Person()))(t)
	fatal(t, s.RemovePlayKeys(t.Context(), "ada", appID, audit.Person()))
	fatal(t, f.store.DeleteAccount(t.Context(), "ada", f.clock.now()))
	if n := f.store.count("SELECT COUNT(*) FROM attest_installs"); n != 0 {
		t.Errorf("%d installs remain of a deleted account", n)
	}
}
