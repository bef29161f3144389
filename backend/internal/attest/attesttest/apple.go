// Package attesttest is what tests use in place of devices, Apple and Google: it makes attestations, assertions and
// integrity tokens, with keys of its own.
package attesttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/binary"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// Apple is a certificate authority in place of Apple's.
type Apple struct {
	Root         *x509.Certificate
	Intermediate *x509.Certificate
	key          *ecdsa.PrivateKey // of the intermediate
}

// NewApple returns an authority whose certificates are valid for a year around now.
func NewApple(t testing.TB, now time.Time) *Apple {
	t.Helper()
	rootKey, key := newKey(t), newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Root CA"},
		NotBefore: now.AddDate(0, -6, 0), NotAfter: now.AddDate(0, 6, 0), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	root := issue(t, template, template, &rootKey.PublicKey, rootKey)
	second := *template
	second.SerialNumber, second.Subject.CommonName = big.NewInt(2), "Test CA 1"
	return &Apple{root, issue(t, &second, root, &key.PublicKey, rootKey), key}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func issue(
	t testing.TB, template, parent *x509.Certificate, public *ecdsa.PublicKey, by *ecdsa.PrivateKey,
) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Device is an app on a device with a key for App Attest. Tests change its fields before they call a method.
type Device struct {
	App         string // <team ID>.<bundle ID>
	Development bool
	Counter     uint32
	Category    *uint32 // nil for iOS before version 27
	Expires     time.Time
	key         *ecdsa.PrivateKey
}

// NewDevice returns a device with a new key, whose attestations expire at the time.
func NewDevice(t testing.TB, app string, expires time.Time) *Device {
	t.Helper()
	return &Device{App: app, Expires: expires, key: newKey(t)}
}

func (d *Device) public(t testing.TB) []byte {
	t.Helper()
	point, err := d.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return point
}

// KeyID returns the ID of the device's key.
func (d *Device) KeyID(t testing.TB) []byte {
	t.Helper()
	id := sha256.Sum256(d.public(t))
	return id[:]
}

func (d *Device) header() []byte {
	app := sha256.Sum256([]byte(d.App))
	return binary.BigEndian.AppendUint32(append(app[:], 0x40), d.Counter)
}

func (d *Device) extensions(t testing.TB) []byte {
	t.Helper()
	if d.Category == nil {
		return nil
	}
	return encode(t, map[string]any{"apple_bundle_version_01": "1",
		"apple_validation_category_01": binary.LittleEndian.AppendUint32(nil, *d.Category)})
}

// AuthData returns the authenticator data of an attestation.
func (d *Device) AuthData(t testing.TB) []byte {
	t.Helper()
	aaguid := "appattest\x00\x00\x00\x00\x00\x00\x00"
	if d.Development {
		aaguid = "appattestdevelop"
	}
	point := d.public(t)
	return slices.Concat(d.header(), []byte(aaguid), []byte{0, 32}, d.KeyID(t),
		encode(t, map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]}), d.extensions(t))
}

// Attest returns an attestation object for the SHA-256 of a challenge.
func (d *Device) Attest(t testing.TB, by *Apple, challenge string) []byte {
	t.Helper()
	data, hash := d.AuthData(t), sha256.Sum256([]byte(challenge))
	return Object(t, by.Certify(t, d, sha256.Sum256(slices.Concat(data, hash[:]))), by.Intermediate.Raw, data)
}

// Object returns an attestation object with two certificates and authenticator data.
func Object(t testing.TB, leaf, intermediate, authData []byte) []byte {
	t.Helper()
	return encode(t, map[string]any{"fmt": "apple-appattest", "authData": authData,
		"attStmt": map[string]any{"x5c": [][]byte{leaf, intermediate}, "receipt": []byte{}}})
}

// Certify returns the certificate of a device's key with a nonce.
func (a *Apple) Certify(t testing.TB, d *Device, nonce [32]byte) []byte {
	t.Helper()
	value, err := asn1.Marshal(struct {
		Nonce []byte `asn1:"tag:1,explicit"`
	}{nonce[:]})
	if err != nil {
		t.Fatal(err)
	}
	return issue(t, &x509.Certificate{SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "Test key"},
		NotBefore: d.Expires.AddDate(0, 0, -3), NotAfter: d.Expires, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 8, 2}, Value: value}}},
		a.Intermediate, &d.key.PublicKey, a.key).Raw
}

// Assert returns an assertion object for the SHA-256 of a challenge, and increases the counter first.
func (d *Device) Assert(t testing.TB, challenge string) []byte {
	t.Helper()
	d.Counter++
	data, hash := append(d.header(), d.extensions(t)...), sha256.Sum256([]byte(challenge))
	nonce := sha256.Sum256(slices.Concat(data, hash[:]))
	digest := sha256.Sum256(nonce[:])
	signature, err := ecdsa.SignASN1(rand.Reader, d.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, map[string]any{"signature": signature, "authenticatorData": data})
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	data, err := cbor.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
