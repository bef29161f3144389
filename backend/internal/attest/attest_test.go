package attest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/attest/attesttest"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/test/testkey"
)

const (
	project = "com.example.hello"
	other   = "com.example.other"
	app     = "ABCDE12345.com.example.app"
	pkg     = "com.example.app"
)

// world is a project with a key, and the two companies that vouch for its installs.
type world struct {
	*attest.Service
	t        *testing.T
	now      time.Time
	db       *db.DB
	projects *projects.Service
	who      projects.KeyOwner // of the key of project
	apple    *attesttest.Apple
	google   *attesttest.Google
	digest   [32]byte
	testKey  testkey.Key
}

func eachEngine(t *testing.T, f func(w *world)) {
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		store := dbtest.OpenAt(t, database(t))
		t.Cleanup(func() { _ = store.Close() })
		w := &world{t: t, db: store, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), google: attesttest.NewGoogle(t),
			digest: sha256.Sum256([]byte("certificate"))}
		w.apple = attesttest.NewApple(t, w.now)
		hash := secret.NewHasher([]byte("a key of thirty-two bytes or more"))
		clock := func() time.Time { return w.now }
		err := account.NewStore(store).InsertAccount(t.Context(), account.Account{ID: "ada", Email: "ada@example.org",
			PasswordHash: "x", Active: true, PrivacyAccepted: w.now, CreatedAt: w.now})
		w.must(err)
		w.projects = &projects.Service{Store: projects.NewStore(store), Hasher: hash, Now: clock}
		w.Service = &attest.Service{Store: attest.NewStore(store), Hasher: hash, Now: clock, AppleRoot: w.apple.Root,
			Credentials: w.credentials(hex.EncodeToString(make([]byte, 32)))}
		w.who = w.key(project)
		w.testKey = testkey.New(t)
		w.set(project, attest.Settings{AppleApps: []string{app}, Packages: []string{pkg},
			Certificates: []string{hex.EncodeToString(w.digest[:])},
			TestKey:      w.testKey.Public})
		decryption, verification := w.google.Keys(t)
		_, err = w.SetPlayKeys(t.Context(), "ada", project, decryption, verification, audit.Person())
		w.must(err)
		f(w)
	})
}

// credentials returns a service that encrypts with a key in hexadecimal digits.
func (w *world) credentials(key string) *credentials.Service {
	w.t.Helper()
	keys, err := credentials.ParseKeys(key)
	w.must(err)
	return credentials.New(credentials.Options{Store: credentials.NewStore(w.db), Keys: keys,
		Hasher: secret.NewHasher([]byte("a key of thirty-two bytes or more")), Now: func() time.Time { return w.now }})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) set(project string, s attest.Settings) (ended bool) {
	w.t.Helper()
	ended, err := w.Set(w.t.Context(), "ada", project, s, audit.Person())
	w.must(err)
	return ended
}

// key mints a key of a project.
func (w *world) key(project string) projects.KeyOwner {
	w.t.Helper()
	k, err := w.projects.MintKey(w.t.Context(), "ada", project, "app", audit.Person())
	w.must(err)
	return projects.KeyOwner{AccountID: "ada", Project: project, KeyID: k.ID}
}

func (w *world) challenge() string {
	w.t.Helper()
	c, err := w.Challenge(w.t.Context(), w.who)
	w.must(err)
	return c.Text
}

func (w *world) device() *attesttest.Device {
	return attesttest.NewDevice(w.t, app, w.now.AddDate(0, 0, 1))
}

func (w *world) attest(d *attesttest.Device, challenge string) (attest.Token, error) {
	return w.Apple(w.t.Context(), w.who, challenge, d.KeyID(w.t), d.Attest(w.t, w.apple, challenge))
}

func (w *world) assert(d *attesttest.Device, challenge string) (attest.Token, error) {
	return w.AppleAssertion(w.t.Context(), w.who, challenge, d.KeyID(w.t), d.Assert(w.t, challenge))
}

func (w *world) refused(what string, err error, reason string) {
	w.t.Helper()
	var refused *attest.Refused
	if !errors.As(err, &refused) || refused.Reason != reason {
		w.t.Errorf("%s: got %v, want a refusal: %s", what, err, reason)
	}
}

func (w *world) opens(token attest.Token, want error) {
	w.t.Helper()
	c, err := w.Open(w.t.Context(), token.Text)
	if !errors.Is(err, want) || err == nil && c != (attest.Caller{Account: "ada", Project: project, Install: token.Install}) {
		w.t.Errorf("opening a token: got %+v (error %v), want %v", c, err, want)
	}
}

func TestApple_AttestsOnceThenAsserts(t *testing.T) {
	eachEngine(t, func(w *world) {
		d, challenge := w.device(), w.challenge()
		token, err := w.attest(d, challenge)
		w.must(err)
		w.opens(token, nil)
		if !token.ExpiresAt.Equal(w.now.Add(time.Hour)) {
			t.Errorf("the token expires at %s, want in an hour", token.ExpiresAt)
		}
		_, err = w.attest(d, challenge)
		w.refused("a replay", err, attest.ReasonChallenge)
		_, err = w.attest(d, w.challenge())
		w.refused("the key again", err, attest.ReasonKnownKey)
		late := w.challenge()
		w.now = w.now.Add(attest.ChallengeLife)
		_, err = w.assert(d, late)
		w.refused("an expired challenge", err, attest.ReasonChallenge)
		foreign, err := w.Challenge(t.Context(), w.key(other))
		w.must(err)
		_, err = w.assert(d, foreign.Text)
		w.refused("another project's challenge", err, attest.ReasonChallenge)
		_, err = w.assert(w.device(), w.challenge())
		w.refused("an unknown key", err, attest.ReasonUnknownInstall)
		w.now = w.now.Add(time.Hour)
		w.opens(token, attest.ErrBadToken)
		next, err := w.assert(d, w.challenge())
		w.must(err)
		if w.opens(next, nil); next.Install != token.Install {
			t.Errorf("the assertion belongs to install %s, want %s", next.Install, token.Install)
		}
		d.Counter--
		_, err = w.assert(d, w.challenge())
		w.refused("an equal counter", err, "wrong_counter")
		d.App = "ABCDE12345.com.example.b"
		_, err = w.assert(d, w.challenge())
		w.refused("another app", err, "wrong_app")
		development := w.device()
		development.Development = true
		_, err = w.attest(development, w.challenge())
		w.refused("a development key", err, "wrong_environment")
	})
}

// Two copies of a device make assertions with one counter.
func TestApple_OneOfTwoConcurrentAssertionsWins(t *testing.T) {
	eachEngine(t, func(w *world) {
		d := w.device()
		_, err := w.attest(d, w.challenge())
		w.must(err)
		const copies = 8
		results := make(chan error, copies)
		var group sync.WaitGroup
		for range copies {
			challenge, twin := w.challenge(), *d
			object := twin.Assert(t, challenge)
			group.Go(func() {
				_, err := w.AppleAssertion(t.Context(), w.who, challenge, d.KeyID(t), object)
				results <- err
			})
		}
		group.Wait()
		close(results)
		won := 0
		for err := range results {
			if err == nil {
				won++
				continue
			}
			w.refused("a later one", err, "wrong_counter")
		}
		if won != 1 {
			t.Errorf("%d of %d assertions with one counter were accepted, want 1", won, copies)
		}
	})
}

func TestTokens_EndWithInstallKeyAndProject(t *testing.T) {
	eachEngine(t, func(w *world) {
		d := w.device()
		token, err := w.attest(d, w.challenge())
		w.must(err)
		live := func(want int) {
			t.Helper()
			ids, err := w.Store.LiveInstalls(t.Context(), []string{token.Install, "unknown"})
			if err != nil || len(ids) != want {
				t.Errorf("got live installs %v (error %v), want %d", ids, err, want)
			}
		}
		live(1)
		w.must(w.Revoke(t.Context(), "ada", project, token.Install, audit.Person()))
		w.must(w.Revoke(t.Context(), "ada", project, token.Install, audit.Person()))
		w.opens(token, attest.ErrBadToken)
		live(0)
		_, err = w.assert(d, w.challenge())
		w.refused("a revoked install", err, attest.ReasonRevoked)
		if err := w.Revoke(t.Context(), "ada", other, token.Install, audit.Person()); !errors.Is(err, attest.ErrNoInstall) {
			t.Errorf("another project's install: got %v, want ErrNoInstall", err)
		}

		d = w.device()
		first := w.who
		token, err = w.attest(d, w.challenge())
		w.must(err)
		w.who = w.key(project)
		latest, err := w.assert(d, w.challenge())
		w.must(err)
		w.must(w.projects.RevokeKey(t.Context(), "ada", project, first.KeyID, audit.Person()))
		w.opens(token, attest.ErrBadToken) // obtained with the revoked key
		w.opens(latest, nil)

		token, err = w.attest(w.device(), w.challenge())
		w.must(err)
		w.must(w.projects.RevokeKey(t.Context(), "ada", project, w.who.KeyID, audit.Person()))
		w.opens(token, attest.ErrBadToken)
		live(0)
		o, err := w.Overview(t.Context(), "ada", project, "")
		if err != nil || o.Counts[attest.Attested] != 0 || o.Counts[attest.Expired] != 2 ||
			o.Latest[0].State(w.now) == attest.Attested {
			t.Errorf("got %+v (error %v), want no attested install, because the key is revoked", o, err)
		}

		w.who = w.key(project)
		token, err = w.attest(w.device(), w.challenge())
		w.must(err)
		live(1)
		w.must(w.projects.Delete(t.Context(), "ada", project, audit.Person()))
		w.opens(token, attest.ErrBadToken)
		live(0)
	})
}

func TestMerge_MovesInstalls(t *testing.T) {
	eachEngine(t, func(w *world) {
		d := w.device()
		token, err := w.attest(d, w.challenge())
		w.must(err)
		w.key(other)
		w.must(w.projects.Merge(t.Context(), "ada", project, other, audit.Person()))
		c, err := w.Open(t.Context(), token.Text)
		if err != nil || c.Project != other {
			t.Errorf("got %+v (error %v), want the token in the other project", c, err)
		}
		w.who.Project = other
		_, err = w.assert(d, w.challenge())
		w.must(err)
	})
}

// An install that both projects have remains revoked if its owner revoked it in one of them.
func TestMerge_KeepsRevocations(t *testing.T) {
	eachEngine(t, func(w *world) {
		for _, revokedIn := range []string{project, other} {
			d := w.device()
			installs := map[string]attest.Token{}
			for _, name := range []string{project, other} {
				w.who = w.key(name)
				settings, err := w.Store.Settings(t.Context(), "ada", name)
				w.must(err)
				settings.AppleApps = []string{app}
				w.set(name, settings)
				token, err := w.attest(d, w.challenge())
				w.must(err)
				installs[name] = token
			}
			w.must(w.Revoke(t.Context(), "ada", revokedIn, installs[revokedIn].Install, audit.Person()))
			w.must(w.projects.Merge(t.Context(), "ada", project, other, audit.Person()))
			for _, token := range installs {
				w.opens(token, attest.ErrBadToken)
			}
			_, err := w.assert(d, w.challenge())
			w.refused("an install revoked in "+revokedIn, err, attest.ReasonRevoked)
			w.must(w.projects.Delete(t.Context(), "ada", other, audit.Person()))
		}
	})
}

// What the owner removes from the settings ends the tokens that were obtained with it, and the calls of their installs.
func TestSettings_RemovalsEndTokens(t *testing.T) {
	eachEngine(t, func(w *world) {
		const install = "a-random-install-of-an-app"
		set := func(change func(s *attest.Settings)) (ended bool) {
			t.Helper()
			s, err := w.Store.Settings(t.Context(), "ada", project)
			w.must(err)
			change(&s)
			return w.set(project, s)
		}
		var all []attest.Token
		live := func(want ...bool) {
			t.Helper()
			for i, token := range all {
				_, err := w.Open(t.Context(), token.Text)
				ids, listErr := w.Store.LiveInstalls(t.Context(), []string{token.Install})
				if w.must(listErr); (err == nil) != want[i] || (len(ids) == 1) != want[i] {
					t.Errorf("token %d: error %v, %d live installs, want it accepted: %v", i, err, len(ids), want[i])
				}
			}
		}
		device := w.device()
		renew := func() {
			t.Helper()
			apple := w.assert
			if all == nil {
				apple = w.attest
			}
			token, err := apple(device, w.challenge())
			w.must(err)
			all = []attest.Token{token}
			token, err = w.play(w.challenge(), install, func(*attesttest.Verdict) {})
			w.must(err)
			all = append(all, token)
			challenge := w.challenge()
			token, err = w.Development(t.Context(), w.who, challenge, install, w.testKey.Sign(challenge, install))
			w.must(err)
			all = append(all, token)
		}
		renew()
		if set(func(s *attest.Settings) {
			s.AppleApps = append(s.AppleApps, app+".b")
			s.Certificates = append(s.Certificates, strings.Repeat("ab", 32))
		}) {
			t.Error("an addition ended tokens")
		}
		live(true, true, true)
		set(func(s *attest.Settings) { s.AppleApps = []string{app} })
		live(true, true, true)
		set(func(s *attest.Settings) { s.AppleApps = []string{app + ".b"} })
		live(false, true, true)
		old := all[0]
		set(func(s *attest.Settings) { s.AppleApps = []string{app} })
		renew()
		w.opens(old, attest.ErrBadToken)
		live(true, true, true)
		set(func(s *attest.Settings) { s.AppleDevelopment = true })
		live(false, true, true)
		set(func(s *attest.Settings) { s.AppleDevelopment = false })
		renew()
		set(func(s *attest.Settings) { s.Packages = []string{"com.example.b"} })
		live(true, false, true)
		set(func(s *attest.Settings) { s.Packages = []string{pkg} })
		renew()
		set(func(s *attest.Settings) { s.Certificates = s.Certificates[:1] })
		live(true, false, true)
		renew()
		stale, err := w.Store.Settings(t.Context(), "ada", project)
		w.must(err)
		if !set(func(s *attest.Settings) { s.TestKey = "" }) {
			t.Error("removing the test key was not reported to end tokens")
		}
		live(true, true, false)
		o, err := w.Overview(t.Context(), "ada", project, "")
		if err != nil || o.Counts[attest.Attested] != 2 || o.Counts[attest.Expired] != 1 {
			t.Errorf("got %+v (error %v), want an install whose token has ended", o, err)
		}
		_, err = w.Issue(t.Context(), w.who, stale)
		if !errors.Is(err, attest.ErrChanged) {
			t.Errorf("an attestation that was verified before the change: got %v, want ErrChanged", err)
		}
	})
}

func TestSettings_ChangesVerifyAttestationsAgain(t *testing.T) {
	eachEngine(t, func(w *world) {
		change := func(times int, f func(s *attest.Settings)) func() {
			return func() {
				t.Helper()
				if times--; times < 0 {
					return
				}
				s, err := w.Store.Settings(t.Context(), "ada", project)
				w.must(err)
				f(&s)
				w.set(project, s)
			}
		}
		harmless := func(s *attest.Settings) { s.AppleApps = append(s.AppleApps, app+".b") }
		token, err := w.Attest(t.Context(), w.who, w.challenge(), change(1, harmless))
		w.must(err)
		w.opens(token, nil)
		_, err = w.Attest(t.Context(), w.who, w.challenge(), change(2, harmless))
		if !errors.Is(err, attest.ErrChanged) {
			t.Errorf("two changes: got %v, want ErrChanged", err)
		}
		_, err = w.Attest(t.Context(), w.who, w.challenge(), change(1, func(s *attest.Settings) { s.TestKey = "" }))
		w.refused("an attestation during the removal of the test key", err, attest.ReasonNotConfigured)
	})
}

func (w *world) play(challenge, install string, change func(*attesttest.Verdict)) (attest.Token, error) {
	c := attesttest.Verdict{Package: pkg, Nonce: nonce(challenge, w.who.Project), At: w.now, Certificate: w.digest,
		App: "PLAY_RECOGNIZED", Device: []string{"MEETS_DEVICE_INTEGRITY"}}
	change(&c)
	return w.Google(w.t.Context(), w.who, challenge, install, w.google.Token(w.t, c.Payload(w.t)))
}

func TestGoogle_BindsTokenToInstall(t *testing.T) {
	eachEngine(t, func(w *world) {
		const install = "a-random-install-of-android"
		same := func(*attesttest.Verdict) {}
		token, err := w.play(w.challenge(), install, same)
		w.must(err)
		w.opens(token, nil)
		again, err := w.play(w.challenge(), install, same)
		w.must(err)
		if again.Install != token.Install {
			t.Errorf("the install is now %s, want still %s", again.Install, token.Install)
		}
		_, err = w.play(w.challenge(), "short", same)
		w.refused("a short install", err, attest.ReasonMalformed)
		_, err = w.play(w.challenge(), install, func(v *attesttest.Verdict) { v.Package = "com.example.b" })
		w.refused("another package", err, "wrong_package")
		challenge := w.challenge()
		_, err = w.play(challenge, install, func(v *attesttest.Verdict) { v.Nonce = nonce(challenge, other) })
		w.refused("another project's nonce", err, "wrong_challenge")
		w.must(w.Revoke(t.Context(), "ada", project, token.Install, audit.Person()))
		_, err = w.play(w.challenge(), install, same)
		w.refused("a revoked install", err, attest.ReasonRevoked)
		token, err = w.play(w.challenge(), install+"-2", same)
		w.must(err)
		keys := w.Credentials
		w.Credentials = w.credentials(strings.Repeat("ab", 32)) // the operator has lost the key
		_, err = w.play(w.challenge(), install, same)
		w.refused("with keys that cannot be read", err, attest.ReasonUnreadableKeys)
		if o, err := w.Overview(t.Context(), "ada", project, ""); err != nil || !o.PlayKeys || !o.Unreadable {
			t.Errorf("got %+v (error %v), want keys that cannot be read", o, err)
		}
		w.Credentials = keys
		w.opens(token, nil)
		settings, err := w.Store.Settings(t.Context(), "ada", project)
		w.must(err)
		// An earlier attempt deleted the keys and failed to end the tokens.
		w.must(w.Credentials.RemovePlayKeys(t.Context(), "ada", project, audit.Person()))
		w.opens(token, nil)
		err = w.RemovePlayKeys(t.Context(), "ada", project, audit.Person())
		if w.opens(token, attest.ErrBadToken); !errors.Is(err, credentials.ErrNotSet) {
			t.Errorf("removing keys that are gone: got %v, want ErrNotSet", err)
		}
		_, err = w.Issue(t.Context(), w.who, settings)
		if !errors.Is(err, attest.ErrChanged) {
			t.Errorf("an attestation that was verified before the removal: got %v, want ErrChanged", err)
		}
		_, err = w.play(w.challenge(), install, same)
		w.refused("without keys", err, attest.ReasonNotConfigured)
	})
}

// The keys belong to one app, so that other keys end the tokens of Android.
func TestGoogle_OtherKeysEndTokens(t *testing.T) {
	eachEngine(t, func(w *world) {
		const install = "a-random-install-of-android"
		store := func(ends bool) {
			t.Helper()
			decryption, verification := w.google.Keys(t)
			ended, err := w.SetPlayKeys(t.Context(), "ada", project, decryption, verification, audit.Person())
			if err != nil || ended != ends {
				t.Errorf("storing keys: got %v (error %v), want that tokens end: %v", ended, err, ends)
			}
		}
		token, err := w.play(w.challenge(), install, func(*attesttest.Verdict) {})
		w.must(err)
		ofApple, err := w.attest(w.device(), w.challenge())
		w.must(err)
		store(false)
		w.opens(token, nil)
		w.google = attesttest.NewGoogle(t)
		store(true)
		w.opens(token, attest.ErrBadToken)
		w.opens(ofApple, nil)
		token, err = w.play(w.challenge(), install, func(*attesttest.Verdict) {})
		w.must(err)
		w.opens(token, nil)
		w.Credentials = w.credentials(strings.Repeat("ab", 32)) // the operator has lost the key
		store(true)
		w.opens(token, attest.ErrBadToken)
		w.must(w.RemovePlayKeys(t.Context(), "ada", project, audit.Person()))
		store(false)
	})
}

// nonce is computed as the documentation describes, and not with the code under test.
func nonce(challenge, project string) string {
	sum := sha256.Sum256([]byte(challenge + "\n" + project))
	return base64url(sum[:])
}

func TestDevelopment_NeedsTestKey(t *testing.T) {
	eachEngine(t, func(w *world) {
		const install = "a-simulator-in-continuous-integration"
		challenge := w.challenge()
		token, err := w.Development(t.Context(), w.who, challenge, install, w.testKey.Sign(challenge, install))
		w.must(err)
		w.opens(token, nil)
		challenge = w.challenge()
		_, err = w.Development(t.Context(), w.who, challenge, install+"2", w.testKey.Sign(challenge, install))
		w.refused("another install", err, attest.ReasonSignature)

		o, err := w.Overview(t.Context(), "ada", project, "")
		if err != nil || o.Counts[attest.Attested] != 1 || !o.PlayKeys || len(o.Latest) != 1 ||
			o.Latest[0].Environment != attest.Development || o.Latest[0].Platform != attest.PlatformDevelopment ||
			o.Latest[0].State(w.now) != attest.Attested || len(o.Refusals) != 1 || o.Refusals[0].Count != 1 ||
			o.Refusals[0].Reason != attest.ReasonSignature {
			t.Errorf("got overview %+v (error %v), want a development install and a refusal", o, err)
		}
		w.now = w.now.Add(attest.TokenLife)
		if o, err = w.Overview(t.Context(), "ada", project, ""); err != nil || o.Counts[attest.Expired] != 1 ||
			o.Latest[0].State(w.now) != attest.Expired {
			t.Errorf("an hour later: got %+v (error %v), want an expired install", o, err)
		}
		next := o.Settings
		next.TestKey = ""
		w.set(project, next)
		challenge = w.challenge()
		_, err = w.Development(t.Context(), w.who, challenge, install, w.testKey.Sign(challenge, install))
		w.refused("without a test key", err, attest.ReasonNotConfigured)
	})
}

func TestSettings_AreCheckedAndVersioned(t *testing.T) {
	eachEngine(t, func(w *world) {
		was, err := w.Store.Settings(t.Context(), "ada", project)
		w.must(err)
		for field, s := range map[string]attest.Settings{
			attest.FieldApple:        {AppleApps: []string{"com.example.app"}, Version: was.Version},
			attest.FieldPackages:     {Packages: []string{"com.example.a", "com.example.b"}, Version: was.Version},
			attest.FieldCertificates: {Certificates: []string{"abc"}, Version: was.Version},
			attest.FieldTestKey:      {TestKey: "abc", Version: was.Version},
		} {
			var invalid *attest.InvalidError
			_, err := w.Set(t.Context(), "ada", project, s, audit.Person())
			if !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%s: got %v, want it refused", field, err)
			}
		}
		colons := attest.Settings{Certificates: []string{"AB:" + hex.EncodeToString(make([]byte, 31))}, Version: was.Version}
		w.set(project, colons)
		if _, err := w.Set(t.Context(), "ada", project, was, audit.Person()); !errors.Is(err, attest.ErrConflict) {
			t.Errorf("an old version: got %v, want ErrConflict", err)
		}
		if _, err := w.Set(t.Context(), "ada", "com.example.none", colons, audit.Person()); err == nil {
			t.Error("settings of an unknown project were saved")
		}
	})
}

// An earlier version accepted several packages.
func TestSettings_WithSeveralPackagesCanBeChanged(t *testing.T) {
	eachEngine(t, func(w *world) {
		_, err := w.db.Exec(t.Context(), "store packages", `UPDATE attest_settings SET packages = $1`,
			"com.example.a\ncom.example.b")
		w.must(err)
		s, err := w.Store.Settings(t.Context(), "ada", project)
		w.must(err)
		s.TestKey = ""
		w.set(project, s)
		got, err := w.Store.Settings(t.Context(), "ada", project)
		if err != nil || got.TestKey != "" || len(got.Packages) != 2 {
			t.Errorf("got %+v (error %v), want both packages and no test key", got, err)
		}
		got.Packages = []string{"com.example.a", "com.example.c"}
		var invalid *attest.InvalidError
		if _, err := w.Set(t.Context(), "ada", project, got, audit.Person()); !errors.As(err, &invalid) {
			t.Errorf("other packages: got %v, want an InvalidError", err)
		}
		got.Packages = []string{"com.example.b"}
		w.set(project, got)
	})
}

func base64url(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
