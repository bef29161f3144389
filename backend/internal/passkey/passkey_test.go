package passkey

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/test/passkeytest"
)

const site = "https://glasses.example"

// newStore returns a store with ada's account.
func newStore(t testing.TB) *Store {
	t.Helper()
	d := dbtest.Open(t)
	dbtest.AddAccount(t, d, "ada")
	return NewStore(d)
}

func newService(t *testing.T) (*Service, *Store, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	store := newStore(t)
	s, err := New(Options{Store: store, SiteURL: site, Key: make([]byte, 32), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return s, store, &now
}

func register(t *testing.T, s *Service, d *passkeytest.Device, name string) Passkey {
	t.Helper()
	options, sealed, err := s.BeginRegister(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	answer := d.Create(t, options)
	if d.User != "ada@example.org" {
		t.Errorf("the user's name is %q, want the address", d.User)
	}
	if len(sealed) > 2000 {
		t.Errorf("the ceremony has %d bytes, want at most 2000", len(sealed))
	}
	p, err := s.FinishRegister(t.Context(), "ada", sealed, answer, name, audit.Person())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func login(t *testing.T, s *Service, d *passkeytest.Device) (string, error) {
	t.Helper()
	options, sealed, err := s.BeginLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.FinishLogin(t.Context(), sealed, d.Sign(t, options))
}

func TestRegisterAndSignIn(t *testing.T) {
	s, store, now := newService(t)
	d := passkeytest.New(t, site)
	var told []string
	s.added = func(_ context.Context, accountID string) { told = append(told, accountID) }
	if p := register(t, s, d, "  my\n phone "); p.Name != "my phone" || p.ID == "" || len(told) != 1 || told[0] != "ada" {
		t.Errorf("got %+v, Added called with %v; want the passkey \"my phone\" and one call with ada", p, told)
	}
	*now = now.Add(time.Hour)
	for range 2 {
		if who, err := login(t, s, d); err != nil || who != "ada" {
			t.Fatalf("signed in as %q, %v; want ada", who, err)
		}
	}
	all, err := s.List(t.Context(), "ada")
	if err != nil || len(all) != 1 || !all[0].UsedAt.Equal(*now) {
		t.Errorf("%+v, %v", all, err)
	}
	if h, err := store.PasskeyHolder(t.Context(), "ada"); err != nil || h.Passkeys[0].SignCount != 2 {
		t.Errorf("stored %+v, %v; want a counter of 2", h, err)
	}
	d.Counter = 0 // as in an earlier copy
	if _, err := login(t, s, d); !errors.Is(err, ErrClone) {
		t.Errorf("a counter that went backwards: got %v, want ErrClone", err)
	}
	d.Counter = 10
	dbtest.Exec(t, store.DB, "UPDATE accounts SET state = 'suspended'")
	if _, err := login(t, s, d); !errors.Is(err, ErrSuspended) {
		t.Errorf("sign-in while suspended: got %v, want ErrSuspended", err)
	}
	if _, _, err := s.BeginRegister(t.Context(), "ada"); !errors.Is(err, ErrSuspended) {
		t.Errorf("registration while suspended: got %v, want ErrSuspended", err)
	}
}

func TestFinish_RefusesWrongAnswers(t *testing.T) {
	s, store, now := newService(t)
	d := passkeytest.New(t, site)
	register(t, s, d, "")
	options, sealed, err := s.BeginLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer := d.Sign(t, options)
	if _, err := s.FinishLogin(t.Context(), sealed, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FinishLogin(t.Context(), sealed, answer); !errors.Is(err, ErrInvalid) {
		t.Errorf("a response used twice: got %v, want ErrInvalid", err)
	}
	for name, c := range map[string]struct {
		spoil func(d *passkeytest.Device)
		want  error
	}{
		"another site":    {func(d *passkeytest.Device) { d.Origin = "https://evil.example" }, ErrInvalid},
		"another key":     {func(d *passkeytest.Device) { d.Key = passkeytest.New(t, site).Key }, ErrInvalid},
		"another passkey": {func(d *passkeytest.Device) { d.ID = []byte("unknown") }, ErrUnknown},
		"another account": {func(d *passkeytest.Device) { d.Handle = []byte("bob") }, ErrUnknown},
	} {
		copied := *d
		c.spoil(&copied)
		if _, err := login(t, s, &copied); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	options, sealed, err = s.BeginLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer = d.Sign(t, options)
	other, err := New(Options{Store: store, SiteURL: site, Key: bytes.Repeat([]byte{1}, 32), Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.FinishLogin(t.Context(), sealed, answer); !errors.Is(err, ErrInvalid) {
		t.Errorf("sealed with another key: got %v, want ErrInvalid", err)
	}
	if _, err := s.FinishRegister(t.Context(), "ada", sealed, answer, "", audit.Person()); !errors.Is(err, ErrInvalid) {
		t.Errorf("the ceremony of another kind: got %v, want ErrInvalid", err)
	}
	*now = now.Add(life)
	if _, err := s.FinishLogin(t.Context(), sealed, answer); !errors.Is(err, ErrInvalid) {
		t.Errorf("an expired ceremony: got %v, want ErrInvalid", err)
	}
	create, sealed, err := s.BeginRegister(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FinishRegister(t.Context(), "bob", sealed, passkeytest.New(t, site).Create(t, create), "",
		audit.Person()); !errors.Is(err, ErrInvalid) {
		t.Errorf("another account's ceremony: got %v, want ErrInvalid", err)
	}
}

// A passkey is the only factor, so a device that detects only a touch is not enough.
func TestFinish_RequiresUserVerification(t *testing.T) {
	s, _, _ := newService(t)
	d := passkeytest.New(t, site)
	register(t, s, d, "")
	d.Flags = 0x01 // user present, not verified
	if _, err := login(t, s, d); !errors.Is(err, ErrInvalid) {
		t.Errorf("sign-in without verification: got %v, want ErrInvalid", err)
	}
	options, sealed, err := s.BeginRegister(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FinishRegister(t.Context(), "ada", sealed, d.Create(t, options), "", audit.Person()); !errors.Is(err,
		ErrInvalid) {
		t.Errorf("registration without verification: got %v, want ErrInvalid", err)
	}
}

// Password managers change the reported backup state: after an update, an import or the first synchronisation.
func TestFinishLogin_AcceptsOtherBackupFlags(t *testing.T) {
	s, _, _ := newService(t)
	d := passkeytest.New(t, site)
	register(t, s, d, "")
	const eligible, backedUp = 0x08, 0x10
	for _, step := range []struct {
		flags byte
		want  error
	}{{eligible, nil}, {eligible | backedUp, nil}, {0, nil}, {backedUp, ErrInvalid}} {
		d.Flags = 0x05 | step.flags
		if _, err := login(t, s, d); !errors.Is(err, step.want) {
			t.Errorf("flags %#x: got %v, want %v", d.Flags, err, step.want)
		}
	}
}

func TestFinishRegister_Names(t *testing.T) {
	for given, wanted := range map[string]string{"": "Passkey", "\n\t": "Passkey", "a\x00b": "a b", strings.Repeat("ö",
		70): strings.Repeat("ö", maxName), "\xff": "Passkey"} {
		if got := named(given); got != wanted {
			t.Errorf("named(%q) returned %q, want the cleaned name", given, got)
		}
	}
}

func TestNew_RefusesIPAddresses(t *testing.T) {
	for _, address := range []string{"http://127.0.0.1:8080", "http://[::1]", "", "glasses"} {
		if _, err := New(Options{SiteURL: address, Key: make([]byte, 32)}); !errors.Is(err, ErrAddress) {
			t.Errorf("%q: got %v, want ErrAddress", address, err)
		}
	}
	if _, err := New(Options{SiteURL: "http://localhost:8080", Key: make([]byte, 32)}); err != nil {
		t.Errorf("localhost was refused: %v", err)
	}
	if _, err := New(Options{SiteURL: site, Key: make([]byte, 16)}); err == nil {
		t.Error("a short key was accepted")
	}
}

// A challenge can be used only once, across all processes. Wrong responses do not use it up, but only maxTries
// responses are accepted.
func TestCeremony_CountsOnce(t *testing.T) {
	one, store, _ := newService(t)
	two, err := New(Options{Store: store, SiteURL: site, Key: make([]byte, 32), Now: one.now})
	if err != nil {
		t.Fatal(err)
	}
	d := passkeytest.New(t, site)
	register(t, one, d, "")
	begin := func() (options []byte, sealed string) {
		t.Helper()
		options, sealed, err := one.BeginLogin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return options, sealed
	}
	forger := *d
	forger.Key = passkeytest.New(t, site).Key

	options, sealed := begin()
	for range maxTries - 1 {
		if _, err := two.FinishLogin(t.Context(), sealed, forger.Sign(t, options)); !errors.Is(err, ErrInvalid) {
			t.Fatalf("a forged response: got %v, want ErrInvalid", err)
		}
	}
	if who, err := one.FinishLogin(t.Context(), sealed, d.Sign(t, options)); err != nil || who != "ada" {
		t.Errorf("after wrong responses: signed in as %q, %v; want ada", who, err)
	}
	for name, s := range map[string]*Service{"the same process": one, "another process": two} {
		if _, err := s.FinishLogin(t.Context(), sealed, d.Sign(t, options)); !errors.Is(err, ErrInvalid) {
			t.Errorf("a second correct response to %s: got %v, want ErrInvalid", name, err)
		}
	}

	options, sealed = begin()
	for range maxTries {
		_, _ = one.FinishLogin(t.Context(), sealed, forger.Sign(t, options))
	}
	if _, err := two.FinishLogin(t.Context(), sealed, d.Sign(t, options)); !errors.Is(err, ErrInvalid) {
		t.Errorf("more than %d responses: got %v, want ErrInvalid", maxTries, err)
	}
}

func FuzzFinish(f *testing.F) {
	f.Add("sealed", []byte(`{"id":"a","rawId":"a","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"","signature":"","userHandle":"YWRh"}}`))
	f.Add("", []byte(`{"id":"a","rawId":"a","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA"}}`))
	s, err := New(Options{Store: newStore(f), SiteURL: site, Key: make([]byte, 32)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sealed string, answer []byte) {
		if _, err := s.FinishLogin(t.Context(), sealed, answer); err == nil {
			t.Error("signed in with a forged ceremony")
		}
		_, login, err := s.BeginLogin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if who, err := s.FinishLogin(t.Context(), login, answer); err == nil {
			t.Errorf("signed in as %q, want an error", who)
		}
		_, made, err := s.BeginRegister(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRegister(t.Context(), "ada", made, answer, "", audit.Person()); err == nil {
			t.Error("registered a passkey, want an error")
		}
	})
}
