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
	"sync"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/service-dev/service/backend/internal/audit"
)

const site = "https://glasses.example"

// device simulates an authenticator with one passkey.
type device struct {
	key     *ecdsa.PrivateKey
	id      []byte
	handle  []byte
	counter uint32
	origin  string
	flags   byte // in every response: user present and verified
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

// state returns the authenticator data: the hash of the RP ID, the flags with more added, and the counter.
func (d *device) state(more byte) []byte {
	host := sha256.Sum256([]byte("glasses.example"))
	return binary.BigEndian.AppendUint32(append(host[:], d.flags|more), d.counter)
}

// make responds to navigator.credentials.create.
func (d *device) make(t *testing.T, options []byte) []byte {
	t.Helper()
	var o struct {
		PublicKey struct {
			Challenge string
			RP        struct{ ID string }
			User      struct{ ID, Name string }
		}
	}
	if err := json.Unmarshal(options, &o); err != nil || o.PublicKey.RP.ID != "glasses.example" ||
		o.PublicKey.User.Name != "ada@example.org" {
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
	text, _ := json.Marshal(map[string]any{"id": b64(d.id), "rawId": b64(d.id), "type": "public-key",
		"clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": b64(d.client("webauthn.create", o.PublicKey.Challenge)),
			"attestationObject": b64(object), "transports": []string{"internal"}}})
	return text
}

// sign responds to navigator.credentials.get.
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
	text, _ := json.Marshal(map[string]any{"id": b64(d.id), "rawId": b64(d.id), "type": "public-key",
		"clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature),
			"userHandle": b64(d.handle)}})
	return text
}

// memoryStore stores one account; storetest tests the real stores.
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

// TryCeremony counts in a map that several services can share, like processes that share a database.
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
