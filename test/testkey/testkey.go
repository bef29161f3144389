// Package testkey makes test keys, with which installs of apps attest in development.
package testkey

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"testing"
)

// Key is a test key of a project.
type Key struct {
	// Public is what the project's owner enters: the public key in PEM.
	Public string
	t      testing.TB
	key    *ecdsa.PrivateKey
}

// New makes a key.
func New(t testing.TB) Key {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return Key{string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), t, key}
}

// Sign returns the proof of an install that it received a challenge, in ASN.1.
func (k Key) Sign(challenge, install string) []byte {
	k.t.Helper()
	digest := sha256.Sum256([]byte(challenge + "\n" + install))
	signature, err := ecdsa.SignASN1(rand.Reader, k.key, digest[:])
	if err != nil {
		k.t.Fatal(err)
	}
	return signature
}
