// Package apple verifies attestations and assertions of Apple's App Attest, as described in Apple's article "Validating
// Apps That Connect to Your Server". It is pure: it reads no clock, no network and no store.
package apple

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	_ "embed" // Apple's root certificate
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"slices"
	"time"
)

// Reason is why an object was refused, as one word for pages and apps. It is an error.
type Reason string

// Reasons.
const (
	// Malformed is returned for an object that is not in Apple's format.
	Malformed Reason = "malformed"
	// DuplicateKey and IndefiniteLength are returned for CBOR that two parsers may read differently.
	DuplicateKey     Reason = "duplicate_key"
	IndefiniteLength Reason = "indefinite_length"
	// ForeignChain is returned for a certificate that does not lead to Apple's root.
	ForeignChain Reason = "foreign_chain"
	// ExpiredChain is returned for a certificate that has expired or is not valid yet.
	ExpiredChain Reason = "expired_chain"
	// WrongChallenge is returned for an attestation that was made for another challenge.
	WrongChallenge Reason = "wrong_challenge"
	// WrongKey is returned if the key ID does not belong to the attested key.
	WrongKey Reason = "wrong_key"
	// WrongApp is returned for an app that is not in the settings.
	WrongApp Reason = "wrong_app"
	// WrongCounter is returned for an attestation whose counter is not 0, and for an assertion whose counter is not above
	// the last one.
	WrongCounter Reason = "wrong_counter"
	// WrongEnvironment is returned for a key of the development environment in production, and the reverse.
	WrongEnvironment Reason = "wrong_environment"
	// WrongCategory is returned in production for an app that was not distributed by Apple or an enterprise.
	WrongCategory Reason = "wrong_category"
	// WrongSignature is returned for an assertion that the key did not sign for this challenge.
	WrongSignature Reason = "wrong_signature"
)

// Error returns the word.
func (r Reason) Error() string { return string(r) }

// MaxObject is the maximum size of an attestation or assertion in bytes.
const MaxObject = 16 << 10

// Sizes in bytes, and the start of the attested key in the authenticator data.
const (
	hashSize    = sha256.Size
	headerSize  = hashSize + 1 + 4
	aaguidStart = headerSize
	idStart     = aaguidStart + 16 + 2
	chainLength = 2 // certificates of an attestation: the key's and Apple's intermediate
)

// The values of the field aaguid.
const (
	production  = "appattest\x00\x00\x00\x00\x00\x00\x00"
	development = "appattestdevelop"
)

//go:embed root.pem
var rootPEM []byte

// root is "Apple App Attestation Root CA". Its SHA-256 fingerprint begins with 1CB9823B; a test compares all of it.
var root = parseRoot(rootPEM)

func parseRoot(text []byte) *x509.Certificate {
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return c
}

// Settings describe the apps to accept.
type Settings struct {
	Apps        []string // <team ID>.<bundle ID>
	Development bool     // accept keys of the development environment instead of those of production
	// Root replaces Apple's root certificate in tests. It is nil otherwise.
	Root *x509.Certificate
}

// Key is an attested key.
type Key struct {
	ID     []byte // SHA-256 of Public
	Public []byte // point on P-256, uncompressed, 65 bytes
	App    string // the app in Settings.Apps that it belongs to
}

// Verify checks an attestation object of at most MaxObject bytes: Apple's nine steps, and the app's category if iOS
// reports one. keyID is the ID that the app received with the key. clientDataHash is the SHA-256 of the challenge. The
// certificates must be valid at now. Verify returns a Reason on failure.
func Verify(object, keyID, clientDataHash []byte, s Settings, now time.Time) (Key, error) {
	a, err := parseAttestation(object)
	if err != nil {
		return Key{}, err
	}
	leaf, err := verifyChain(a.Statement.Chain, s, now) // step 1
	if err != nil {
		return Key{}, err
	}
	if err := checkNonce(leaf, a.AuthData, clientDataHash); err != nil { // steps 2 to 4
		return Key{}, err
	}
	public, ok := leaf.PublicKey.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return Key{}, WrongKey
	}
	point, err := public.Bytes()
	if err != nil {
		return Key{}, WrongKey
	}
	d, err := parseAuthData(a.AuthData)
	if err != nil {
		return Key{}, err
	}
	if id := sha256.Sum256(point); !bytes.Equal(id[:], keyID) || !bytes.Equal(d.point, point) { // step 5
		return Key{}, WrongKey
	}
	app, ok := s.app(d.app) // step 6
	want := production
	if s.Development {
		want = development
	}
	switch {
	case !ok:
		return Key{}, WrongApp
	case d.counter != 0: // step 7
		return Key{}, WrongCounter
	case d.aaguid != want: // step 8
		return Key{}, WrongEnvironment
	case !bytes.Equal(d.id, keyID): // step 9
		return Key{}, WrongKey
	}
	if err := d.extensions.check(s.Development); err != nil {
		return Key{}, err
	}
	return Key{ID: bytes.Clone(keyID), Public: point, App: app}, nil
}

// Assert checks an assertion object of at most MaxObject bytes, and returns its counter, which is above last. The
// caller must store the counter in the same step that compares it, because two assertions may arrive at once.
// clientDataHash is the SHA-256 of the challenge. Assert returns a Reason on failure.
func Assert(object, clientDataHash []byte, k Key, last uint32, s Settings) (uint32, error) {
	a, err := parseAssertion(object)
	if err != nil {
		return 0, err
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), k.Public)
	if err != nil {
		return 0, WrongKey
	}
	nonce := sha256.Sum256(slices.Concat(a.AuthData, clientDataHash))
	if digest := sha256.Sum256(nonce[:]); !ecdsa.VerifyASN1(public, digest[:], a.Signature) {
		return 0, WrongSignature
	}
	d, err := parseHeader(a.AuthData)
	if err != nil {
		return 0, err
	}
	switch app, ok := s.app(d.app); {
	case !ok || app != k.App:
		return 0, WrongApp
	case d.counter <= last:
		return 0, WrongCounter
	}
	rest := a.AuthData[headerSize:]
	if len(rest) > 0 {
		if d.extensions, err = parseExtensions(rest); err != nil {
			return 0, err
		}
	}
	if err := d.extensions.check(s.Development); err != nil {
		return 0, err
	}
	return d.counter, nil
}

// app returns the app whose ID has this hash.
func (s Settings) app(hash []byte) (string, bool) {
	for _, app := range s.Apps {
		if sum := sha256.Sum256([]byte(app)); bytes.Equal(sum[:], hash) {
			return app, true
		}
	}
	return "", false
}

// verifyChain returns the first certificate if the chain leads to the root at this time.
func verifyChain(chain [][]byte, s Settings, now time.Time) (*x509.Certificate, error) {
	if len(chain) != chainLength {
		return nil, Malformed
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, Malformed
	}
	intermediate, err := x509.ParseCertificate(chain[1])
	if err != nil {
		return nil, Malformed
	}
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	o.Intermediates.AddCert(intermediate)
	if s.Root != nil {
		o.Roots.AddCert(s.Root)
	} else {
		o.Roots.AddCert(root)
	}
	_, err = leaf.Verify(o)
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return leaf, nil
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return nil, ExpiredChain
	}
	return nil, ForeignChain
}

// nonceID is the extension of the certificate that contains the nonce.
var nonceID = asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 8, 2}

// checkNonce compares the nonce in the certificate with the hash of the authenticator data and the challenge.
func checkNonce(leaf *x509.Certificate, authData, clientDataHash []byte) error {
	for _, e := range leaf.Extensions {
		if !e.Id.Equal(nonceID) {
			continue
		}
		var value struct {
			Nonce []byte `asn1:"tag:1,explicit"`
		}
		if rest, err := asn1.Unmarshal(e.Value, &value); err != nil || len(rest) > 0 {
			return Malformed
		}
		if nonce := sha256.Sum256(slices.Concat(authData, clientDataHash)); !bytes.Equal(nonce[:], value.Nonce) {
			return WrongChallenge
		}
		return nil
	}
	return Malformed
}
