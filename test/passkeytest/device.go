// Package passkeytest simulates an authenticator with a passkey (WebAuthn). It is independent of the backend.
package passkeytest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// Device is an authenticator with one passkey.
type Device struct {
	Key     *ecdsa.PrivateKey
	ID      []byte
	User    string // name of the user, from Create
	Handle  []byte // of the user, from Create
	Counter uint32
	Host    string
	Origin  string
	Flags   byte // in every response: user present and verified
}

// New returns a device for a site.
func New(t *testing.T, site string) *Device {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(site)
	if err != nil {
		t.Fatal(err)
	}
	return &Device{Key: key, ID: []byte(rand.Text()), Host: u.Hostname(), Origin: site, Flags: 0x05}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (d *Device) client(kind, challenge string) []byte {
	text, _ := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": d.Origin, "crossOrigin": false})
	return text
}

// state returns the authenticator data: the hash of the RP ID, the flags with more added, and the counter.
func (d *Device) state(more byte) []byte {
	host := sha256.Sum256([]byte(d.Host))
	return binary.BigEndian.AppendUint32(append(host[:], d.Flags|more), d.Counter)
}

// Create responds to navigator.credentials.create.
func (d *Device) Create(t *testing.T, options []byte) []byte {
	t.Helper()
	var o struct {
		PublicKey struct {
			Challenge string
			RP        struct{ ID string }
			User      struct{ ID, Name string }
		}
	}
	if err := json.Unmarshal(options, &o); err != nil || o.PublicKey.RP.ID != d.Host {
		t.Fatalf("%v: %s", err, options)
	}
	d.User = o.PublicKey.User.Name
	var err error
	if d.Handle, err = base64.RawURLEncoding.DecodeString(o.PublicKey.User.ID); err != nil {
		t.Fatal(err)
	}
	point, err := d.Key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	public, err := cbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]})
	if err != nil {
		t.Fatal(err)
	}
	data := append(d.state(0x40), make([]byte, 16)...) // no AAGUID
	data = binary.BigEndian.AppendUint16(data, uint16(len(d.ID)))
	data = append(append(data, d.ID...), public...)
	object, err := cbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(map[string]any{"id": b64(d.ID), "rawId": b64(d.ID), "type": "public-key",
		"clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": b64(d.client("webauthn.create", o.PublicKey.Challenge)),
			"attestationObject": b64(object), "transports": []string{"internal"}}})
	return text
}

// Sign responds to navigator.credentials.get.
func (d *Device) Sign(t *testing.T, options []byte) []byte {
	t.Helper()
	var o struct{ PublicKey struct{ Challenge string } }
	if err := json.Unmarshal(options, &o); err != nil {
		t.Fatal(err)
	}
	d.Counter++
	client, data := d.client("webauthn.get", o.PublicKey.Challenge), d.state(0)
	digest := sha256.Sum256(client)
	sum := sha256.Sum256(append(bytes.Clone(data), digest[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.Key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(map[string]any{"id": b64(d.ID), "rawId": b64(d.ID), "type": "public-key",
		"clientExtensionResults": map[string]any{},
		"response": map[string]any{"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature),
			"userHandle": b64(d.Handle)}})
	return text
}
