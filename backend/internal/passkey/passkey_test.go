package passkey

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/service-dev/service/backend/internal/audit"
)

const site = "https://glasses.example"

// device is an authenticator with one passkey.
type device struct {
	key     *ecdsa.PrivateKey
	id      []byte
	handle  []byte
	counter uint32
	origin  string
	flags   byte // of every answer: user present and verified
}

func newDevice(t *testing.T) *device {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &device{key: key, id: []byte(rand.Text()), origin: site, flags: 0x05}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (d *device) client(kind, challenge string) []byte {
	text, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": d.origin, "crossOrigin": false})
	return text
}

// state is the authenticator data: RP id hash, flags and more of them, counter.
func (d *device) state(more byte) []byte {
	host := sha256.Sum256([]byte("glasses.example"))
	return binary.BigEndian.AppendUint32(append(host[:], d.flags|more), d.counter)
}

// make answers navigator.credentials.create.
func (d *device) make(t *testing.T, options []byte) []byte {
	t.Helper()
	var o struct {
		PublicKey struct {
			Challenge string
			RP        struct{ ID string }
			User      struct{ ID, Name string }
		}
	}
	if err := json.Unmarshal(options, &o); err != nil || o.PublicKey.RP.ID != "glasses.example" || o.PublicKey.User.Name != "ada@example.org" {
		t.Fatalf("%v: %s", err, options)
	}
	var err error
	if d.handle, err = base64.RawURLEncoding.DecodeString(o.PublicKey.User.ID); err != nil {
		t.Fatal(err)
	}
	point, err := d.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	public, err := cbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]})
	if err != nil {
		t.Fatal(err)
	}
	data := append(d.state(0x40), make([]byte, 16)...) // no AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(d.id)))
	data = append(append(data, d.id...), public...)
	object, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(map[string]any{"id": b64(d.id), "rawId": b64(d.id), "type": "public-key", "clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": b64(d.client("webauthn.create", o.PublicKey.Challenge)), "attestationObject": b64(object), "transports": []string{"internal"}}})
	return text
}

// sign answers navigator.credentials.get.
func (d *device) sign(t *testing.T, options []byte) []byte {
	t.Helper()
	var o struct{ PublicKey struct{ Challenge string } }
	if err := json.Unmarshal(options, &o); err != nil {
		t.Fatal(err)
	}
	d.counter++
	client, data := d.client("webauthn.get", o.PublicKey.Challenge), d.state(0)
	digest := sha256.Sum256(client)
	sum := sha256.Sum256(append(bytes.Clone(data), digest[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(map[string]any{"id": b64(d.id), "rawId": b64(d.id), "type": "public-key", "clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature), "userHandle": b64(d.handle)}})
	return text
}

// memoryStore is one account's; the suite of the stores holds the real ones.
type memoryStore struct {
	holder Holder

	mu    sync.Mutex
	tries map[string]int
	done  map[string]bool
}

func (m *memoryStore) PasskeyHolder(_ context.Context, id string) (Holder, error) {
	if id != m.holder.ID {
		return Holder{}, ErrUnknown
	}
	h := m.holder
	h.Passkeys = append([]Stored{}, h.Passkeys...)
	return h, nil
}

// TryCeremony counts in a map that several services may share, as processes share a database.
func (m *memoryStore) TryCeremony(_ context.Context, challenge string, _, _ time.Time, most int) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tries == nil {
		m.tries, m.done = map[string]int{}, map[string]bool{}
	}
	if m.done[challenge] || m.tries[challenge] >= most {
		return false, nil
	}
	m.tries[challenge]++
	return true, nil
}

func (m *memoryStore) end(challenge string) error {
	if m.tries[challenge] == 0 || m.done[challenge] {
		return ErrInvalid
	}
	m.done[challenge] = true
	return nil
}

func (m *memoryStore) InsertPasskey(_ context.Context, p Stored, _ int, challenge string, _ audit.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.end(challenge); err != nil {
		return err
	}
	m.holder.Passkeys = append(m.holder.Passkeys, p)
	return nil
}

func (m *memoryStore) UsePasskey(_ context.Context, p Stored, was uint32, challenge string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.end(challenge); err != nil {
		return false, err
	}
	for i, known := range m.holder.Passkeys {
		if known.ID == p.ID && known.SignCount == was {
			m.holder.Passkeys[i] = p
			return true, nil
		}
	}
	return false, nil
}

func (m *memoryStore) DeletePasskey(context.Context, string, audit.Entry) error {
	return ErrLastWayIn
}

func newService(t *testing.T) (*Service, *memoryStore, *time.Time) {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	store := &memoryStore{holder: Holder{ID: "ada", Email: "ada@example.org", Active: true}}
	s, err := New(Options{Store: store, SiteURL: site, Key: make([]byte, 32), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	return s, store, &now
}

func register(t *testing.T, s *Service, d *device, name string) Passkey {
	t.Helper()
	options, sealed, err := s.BeginRegister(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if len(sealed) > 2000 {
		t.Errorf("a ceremony of %d bytes", len(sealed))
	}
	p, err := s.FinishRegister(t.Context(), "ada", sealed, d.make(t, options), name, audit.Person())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func login(t *testing.T, s *Service, d *device) (string, error) {
	t.Helper()
	options, sealed, err := s.BeginLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s.FinishLogin(t.Context(), sealed, d.sign(t, options))
}

func TestRegisterAndSignIn(t *testing.T) {
	s, store, now := newService(t)
	d := newDevice(t)
	var told []string
	s.added = func(_ context.Context, accountID string) { told = append(told, accountID) }
	if p := register(t, s, d, "  my\n phone "); p.Name != "my phone" || p.ID == "" || len(told) != 1 || told[0] != "ada" {
		t.Errorf("%+v, told %v", p, told)
	}
	*now = now.Add(time.Hour)
	for range 2 {
		if who, err := login(t, s, d); err != nil || who != "ada" {
			t.Fatalf("%q, %v", who, err)
		}
	}
	all, err := s.List(t.Context(), "ada")
	if err != nil || len(all) != 1 || !all[0].UsedAt.Equal(*now) || store.holder.Passkeys[0].SignCount != 2 {
		t.Errorf("%+v, %v", all, err)
	}
	d.counter = 0 // as a copy would say that was made before
	if _, err := login(t, s, d); !errors.Is(err, ErrClone) {
		t.Errorf("a counter that went back: %v", err)
	}
	d.counter = 10
	store.holder.Active = false
	if _, err := login(t, s, d); !errors.Is(err, ErrSuspended) {
		t.Errorf("suspended: %v", err)
	}
	if _, _, err := s.BeginRegister(t.Context(), "ada"); !errors.Is(err, ErrSuspended) {
		t.Errorf("suspended: %v", err)
	}
}

func TestAnswersThatDoNotFit(t *testing.T) {
	s, store, now := newService(t)
	d := newDevice(t)
	register(t, s, d, "")
	options, sealed, err := s.BeginLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer := d.sign(t, options)
	if _, err := s.FinishLogin(t.Context(), sealed, answer); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FinishLogin(t.Context(), sealed, answer); !errors.Is(err, ErrInvalid) {
		t.Errorf("the same answer twice: %v", err)
	}
	for name, c := range map[string]struct {
		spoil func(d *device)
		want  error
	}{
		"another site":    {func(d *device) { d.origin = "https://evil.example" }, ErrInvalid},
		"another key":     {func(d *device) { d.key = newDevice(t).key }, ErrInvalid},
		"another passkey": {func(d *device) { d.id = []byte("unknown") }, ErrUnknown},
		"another account": {func(d *device) { d.handle = []byte("bob") }, ErrUnknown},
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
	answer = d.sign(t, options)
	other, err := New(Options{Store: store, SiteURL: site, Key: bytes.Repeat([]byte{1}, 32), Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.FinishLogin(t.Context(), sealed, answer); !errors.Is(err, ErrInvalid) {
		t.Errorf("sealed with another key: %v", err)
	}
	if _, err := s.FinishRegister(t.Context(), "ada", sealed, answer, "", audit.Person()); !errors.Is(err, ErrInvalid) {
		t.Errorf("the other ceremony: %v", err)
	}
	*now = now.Add(life)
	if _, err := s.FinishLogin(t.Context(), sealed, answer); !errors.Is(err, ErrInvalid) {
		t.Errorf("overdue: %v", err)
	}
	create, sealed, err := s.BeginRegister(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FinishRegister(t.Context(), "bob", sealed, newDevice(t).make(t, create), "", audit.Person()); !errors.Is(err, ErrInvalid) {
		t.Errorf("another account's ceremony: %v", err)
	}
}

// A passkey is the whole sign-in, so a device that only felt a touch is not enough.
func TestDevicesThatDidNotAskWhoHoldsThem(t *testing.T) {
	s, _, _ := newService(t)
	d := newDevice(t)
	register(t, s, d, "")
	d.flags = 0x01 // user present, not verified
	if _, err := login(t, s, d); !errors.Is(err, ErrInvalid) {
		t.Errorf("signing in: %v", err)
	}
	options, sealed, err := s.BeginRegister(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.FinishRegister(t.Context(), "ada", sealed, d.make(t, options), "", audit.Person()); !errors.Is(err, ErrInvalid) {
		t.Errorf("registering: %v", err)
	}
}

func TestNamesOfPasskeys(t *testing.T) {
	for given, wanted := range map[string]string{"": "Passkey", "\n\t": "Passkey", "a\x00b": "a b", strings.Repeat("ö", 70): strings.Repeat("ö", maxName), "\xff": "Passkey"} {
		if got := named(given); got != wanted {
			t.Errorf("%q: %q", given, got)
		}
	}
}

func TestSitesWithoutPasskeys(t *testing.T) {
	for _, address := range []string{"http://127.0.0.1:8080", "http://[::1]", "", "glasses"} {
		if _, err := New(Options{SiteURL: address, Key: make([]byte, 32)}); !errors.Is(err, ErrAddress) {
			t.Errorf("%q has passkeys: %v", address, err)
		}
	}
	if _, err := New(Options{SiteURL: "http://localhost:8080", Key: make([]byte, 32)}); err != nil {
		t.Errorf("localhost: %v", err)
	}
	if _, err := New(Options{SiteURL: site, Key: make([]byte, 16)}); err == nil {
		t.Error("a short key is taken")
	}
}

// A challenge counts once in all processes together, is not used up by wrong answers, and takes few of those.
func TestCeremonyCountsOnce(t *testing.T) {
	one, store, _ := newService(t)
	two, err := New(Options{Store: store, SiteURL: site, Key: make([]byte, 32), Now: one.now})
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice(t)
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
	forger.key = newDevice(t).key

	options, sealed := begin()
	for range maxTries - 1 {
		if _, err := two.FinishLogin(t.Context(), sealed, forger.sign(t, options)); !errors.Is(err, ErrInvalid) {
			t.Fatalf("a forged answer: %v", err)
		}
	}
	if who, err := one.FinishLogin(t.Context(), sealed, d.sign(t, options)); err != nil || who != "ada" {
		t.Errorf("wrong answers used the challenge up: %q, %v", who, err)
	}
	for name, s := range map[string]*Service{"the same process": one, "another process": two} {
		if _, err := s.FinishLogin(t.Context(), sealed, d.sign(t, options)); !errors.Is(err, ErrInvalid) {
			t.Errorf("a second right answer in %s: %v", name, err)
		}
	}

	options, sealed = begin()
	for range maxTries {
		_, _ = one.FinishLogin(t.Context(), sealed, forger.sign(t, options))
	}
	if _, err := two.FinishLogin(t.Context(), sealed, d.sign(t, options)); !errors.Is(err, ErrInvalid) {
		t.Errorf("more than %d answers: %v", maxTries, err)
	}
}

func FuzzFinish(f *testing.F) {
	f.Add("sealed", []byte(`{"id":"a","rawId":"a","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"","signature":"","userHandle":"YWRh"}}`))
	f.Add("", []byte(`{"id":"a","rawId":"a","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA"}}`))
	store := &memoryStore{holder: Holder{ID: "ada", Email: "ada@example.org", Active: true}}
	s, err := New(Options{Store: store, SiteURL: site, Key: make([]byte, 32)})
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
			t.Errorf("signed in as %q", who)
		}
		_, made, err := s.BeginRegister(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.FinishRegister(t.Context(), "ada", made, answer, "", audit.Person()); err == nil {
			t.Error("registered")
		}
	})
}
