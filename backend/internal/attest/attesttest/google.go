package attesttest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Google makes integrity tokens for one app, with go-jose, which the verification does not use.
type Google struct {
	secret []byte
	key    *ecdsa.PrivateKey
}

// NewGoogle returns a Google with new keys.
func NewGoogle(t testing.TB) *Google {
	t.Helper()
	g := &Google{secret: make([]byte, 32), key: newKey(t)}
	rand.Read(g.secret)
	return g
}

// Keys returns the decryption and the verification key as the Play Console shows them.
func (g *Google) Keys(t testing.TB) (decryption, verification string) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&g.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(g.secret), base64.StdEncoding.EncodeToString(der)
}

// Verdict is the content of a token.
type Verdict struct {
	Package, Nonce string
	At             time.Time
	Certificate    [32]byte
	App            string // PLAY_RECOGNIZED, for example
	Device         []string
}

// Payload returns the verdict in Google's format.
func (v Verdict) Payload(t testing.TB) []byte {
	t.Helper()
	type object map[string]any
	text, err := json.Marshal(object{
		"requestDetails": object{"requestPackageName": v.Package, "nonce": v.Nonce,
			"timestampMillis": strconv.FormatInt(v.At.UnixMilli(), 10)},
		"appIntegrity": object{"appRecognitionVerdict": v.App, "packageName": v.Package, "versionCode": "42",
			"certificateSha256Digest": []string{base64.RawURLEncoding.EncodeToString(v.Certificate[:])}},
		"deviceIntegrity": object{"deviceRecognitionVerdict": v.Device},
		"accountDetails":  object{"appLicensingVerdict": "LICENSED"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Token signs and encrypts a payload.
func (g *Google) Token(t testing.TB, payload []byte) string {
	t.Helper()
	return g.Encrypt(t, g.Sign(t, payload))
}

// Sign returns a payload as JWS.
func (g *Google) Sign(t testing.TB, payload []byte) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: g.key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Encrypt returns a text as JWE.
func (g *Google) Encrypt(t testing.TB, text string) string {
	t.Helper()
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.A256KW, Key: g.secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := encrypter.Encrypt([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	token, err := encrypted.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
