// Package google verifies integrity tokens of Google's Play Integrity API. It supports classic requests, whose tokens
// are decrypted and verified with the app's own keys from the Play Console. It is pure: it reads no clock, no network
// and no store.
package google

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Reason is why a token was refused, as one word for pages and apps. It is an error.
type Reason string

// Reasons.
const (
	// Malformed is returned for a token that is not in Google's format.
	Malformed Reason = "malformed"
	// WrongDecryptionKey is returned for a token that was encrypted with another key or changed.
	WrongDecryptionKey Reason = "wrong_decryption_key"
	// WrongSignature is returned for a token that was signed with another key.
	WrongSignature Reason = "wrong_signature"
	// WrongPackage is returned for an app that is not in the settings.
	WrongPackage Reason = "wrong_package"
	// WrongChallenge is returned for a token that was requested with another nonce.
	WrongChallenge Reason = "wrong_challenge"
	// WrongTime is returned for a token that is older than MaxAge, or from the future.
	WrongTime Reason = "wrong_time"
	// WrongCertificate is returned for an app that was signed with a certificate that is not in the settings.
	WrongCertificate Reason = "wrong_certificate"
	// UnrecognizedApp is returned unless Google Play distributed this version of the app.
	UnrecognizedApp Reason = "unrecognized_app"
	// UntrustedDevice is returned unless the device passes Google's integrity checks.
	UntrustedDevice Reason = "untrusted_device"
)

// Error returns the word.
func (r Reason) Error() string { return string(r) }

const (
	// MaxToken is the maximum size of a token in bytes.
	MaxToken = 16 << 10
	// MaxAge is the maximum age of a token. A token may be maxSkew from the future, because clocks differ.
	MaxAge  = 5 * time.Minute
	maxSkew = time.Minute
)

// Keys are the keys for the tokens of one app.
type Keys struct {
	decrypt []byte // AES-256
	verify  *ecdsa.PublicKey
}

// ParseKeys parses the two keys that the Play Console shows, in base64: an AES key of 32 bytes, and a public key on
// P-256 as SubjectPublicKeyInfo. The error never contains a key.
func ParseKeys(decryption, verification string) (Keys, error) {
	secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(decryption))
	if err != nil || len(secret) != keySize {
		return Keys{}, fmt.Errorf("the decryption key must be %d bytes in base64", keySize)
	}
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(verification))
	if err != nil {
		return Keys{}, fmt.Errorf("the verification key must be base64")
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	public, ok := parsed.(*ecdsa.PublicKey)
	if err != nil || !ok || public.Curve != elliptic.P256() {
		return Keys{}, fmt.Errorf("the verification key must be a public key on P-256")
	}
	return Keys{decrypt: secret, verify: public}, nil
}

// Settings describe the apps to accept.
type Settings struct {
	Packages []string
	// Certificates are the SHA-256 digests of the certificates that the apps are signed with.
	Certificates [][sha256.Size]byte
	Keys         Keys
}

// Nonce returns the nonce with which an app of a project requests a token for a challenge.
func Nonce(challenge, project string) string {
	sum := sha256.Sum256([]byte(challenge + "\n" + project))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// payload is the content of a token. Fields that are not checked are ignored.
type payload struct {
	Request struct {
		Package string         `json:"requestPackageName"`
		Nonce   string         `json:"nonce"`
		Millis  jsontext.Value `json:"timestampMillis"` // a number or a string
	} `json:"requestDetails"`
	App struct {
		Verdict      string   `json:"appRecognitionVerdict"`
		Package      string   `json:"packageName"`
		Certificates []string `json:"certificateSha256Digest"`
	} `json:"appIntegrity"`
	Device struct {
		Verdicts []string `json:"deviceRecognitionVerdict"`
	} `json:"deviceIntegrity"`
}

// Verify checks a token of at most MaxToken bytes that was requested with the nonce. It returns the app's package name,
// or a Reason on failure.
func Verify(token, nonce string, s Settings, now time.Time) (string, error) {
	text, err := open(token, s.Keys)
	if err != nil {
		return "", err
	}
	var p payload
	if err := json.Unmarshal(text, &p); err != nil { // refuses duplicate names
		return "", Malformed
	}
	at, err := strconv.ParseInt(strings.Trim(string(p.Request.Millis), `"`), 10, 64)
	if err != nil {
		return "", Malformed
	}
	age := now.Sub(time.UnixMilli(at))
	switch {
	case !slices.Contains(s.Packages, p.Request.Package) || p.App.Package != "" && p.App.Package != p.Request.Package:
		return "", WrongPackage
	case !sameBytes(p.Request.Nonce, nonce):
		return "", WrongChallenge
	case age > MaxAge || age < -maxSkew:
		return "", WrongTime
	case p.App.Verdict != "PLAY_RECOGNIZED" || p.App.Package == "":
		return "", UnrecognizedApp
	case !s.signedBy(p.App.Certificates):
		return "", WrongCertificate
	case !slices.Contains(p.Device.Verdicts, "MEETS_DEVICE_INTEGRITY") &&
		!slices.Contains(p.Device.Verdicts, "MEETS_STRONG_INTEGRITY"):
		return "", UntrustedDevice
	}
	return p.Request.Package, nil
}

// signedBy reports whether all of an app's certificates are in the settings, and there is one.
func (s Settings) signedBy(digests []string) bool {
	for _, text := range digests {
		digest, err := decode(text)
		if err != nil || len(digest) != sha256.Size ||
			!slices.Contains(s.Certificates, [sha256.Size]byte(digest)) {
			return false
		}
	}
	return len(digests) > 0
}

// sameBytes compares two texts in base64, which Google may pad.
func sameBytes(a, b string) bool {
	x, err := decode(a)
	if err != nil || len(x) == 0 {
		return false
	}
	y, err := decode(b)
	return err == nil && bytes.Equal(x, y)
}

func decode(text string) ([]byte, error) {
	return base64.RawURLEncoding.Strict().DecodeString(strings.TrimRight(text, "="))
}
