// Package attest decides which installs of an app may call models beyond the daily allowance of project keys. An
// install proves with Apple's App Attest or Google's Play Integrity that it is a genuine copy of the app, and gets a
// token for an hour. The packages apple and google verify the proofs.
package attest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Lifetimes and limits.
const (
	ChallengeLife = 5 * time.Minute
	TokenLife     = time.Hour
	// InstallsKept is how long installs are kept after their last attestation. Afterwards the app attests a new key.
	InstallsKept = 180 * 24 * time.Hour
	// RefusalsKept is how long refusals are counted.
	RefusalsKept = 30 * 24 * time.Hour

	sweepEvery = time.Hour
	maxTokens  = 4  // valid tokens of one install; the oldest end first
	maxEntries = 20 // entries of each list of the settings but packages
	// maxPackages is 1 because the keys of Play Integrity belong to one app in the Play Console.
	maxPackages = 1
)

// Platforms of installs. A development install is signed with the project's test key.
const (
	PlatformApple       = "apple"
	PlatformGoogle      = "google"
	PlatformDevelopment = "development"
)

// Environments of installs.
const (
	Production  = "production"
	Development = "development"
)

// State is the state of an install. An unknown install has the state none.
type State string

// The states of an install.
const (
	Attested State = "attested" // it has a valid token
	Expired  State = "expired"  // its tokens have expired or were ended; it may attest again
	Revoked  State = "revoked"  // the project's owner revoked it; it stays so until it is deleted
)

// Refused is why an attestation was refused. Reason is one word, from apple.Reason, google.Reason or the ones below.
type Refused struct{ Reason string }

func (e *Refused) Error() string { return "attestation refused: " + e.Reason }

// Reasons that do not depend on the platform.
const (
	// ReasonChallenge is for a challenge that is unknown, used, expired, or of another project.
	ReasonChallenge = "unknown_challenge"
	// ReasonNotConfigured is for a platform that the project's settings do not have, or no longer have.
	ReasonNotConfigured = "not_configured"
	// ReasonUnreadableKeys is for keys of Play Integrity that are stored and cannot be decrypted.
	ReasonUnreadableKeys = "unreadable_keys"
	// ReasonUnknownInstall is for an assertion of a key that was not attested before.
	ReasonUnknownInstall = "unknown_install"
	// ReasonKnownKey is for the attestation of a key that was attested before. Such a key makes assertions.
	ReasonKnownKey = "known_key"
	// ReasonRevoked is for an install that the owner revoked.
	ReasonRevoked = "revoked"
	// ReasonMalformed is for a field that is missing or not in its format.
	ReasonMalformed = "malformed"
	// ReasonSignature is for a development install that the test key did not sign.
	ReasonSignature = "wrong_signature"
)

// Errors that callers check for.
var (
	// ErrBadToken is returned for a token that is unknown or expired, or whose install, key or project is revoked.
	ErrBadToken = errors.New("the token is unknown or has expired")
	// ErrNoInstall is returned for an install that the project does not have.
	ErrNoInstall = errors.New("the project has no such install")
	// ErrConflict is returned for a change to an outdated version of the settings.
	ErrConflict = errors.New("the settings have changed since they were read")
)

// errChanged is returned for an attestation that was verified with settings that have changed since.
var errChanged = errors.New("the attestation settings changed while an install attested")

// InvalidError reports a field of the settings that is not valid.
type InvalidError struct{ Field, Message string }

// Error returns the message.
func (e *InvalidError) Error() string { return e.Field + ": " + e.Message }

// Settings are the apps of a project.
type Settings struct {
	AppleApps        []string // <team ID>.<bundle ID>
	AppleDevelopment bool     // accept keys of Apple's development environment instead of those of production
	Packages         []string // package name of the Android app; more only in settings of an earlier version
	Certificates     []string // SHA-256 of the certificates that sign them, as 64 hexadecimal digits
	TestKey          string   // public key on P-256 (PEM) of development installs, or ""
	Version          int64    // counts the changes, from 0
}

// Names of the fields of Settings, in InvalidError and in forms.
const (
	FieldApple        = "apple-apps"
	FieldPackages     = "packages"
	FieldCertificates = "certificates"
	FieldTestKey      = "test-key"
	FieldDecryption   = "decryption-key"
)

var (
	appleForm   = regexp.MustCompile(`^[A-Z0-9]{10}\.[A-Za-z0-9.-]{1,155}$`)
	packageForm = regexp.MustCompile(`^[A-Za-z]\w*(\.[A-Za-z]\w*)+$`)
	digestForm  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// check returns the settings in their stored form, or an *InvalidError. It accepts several packages if they are the
// stored ones.
func (s Settings) check(packages []string) (Settings, error) {
	s.Certificates = slices.Clone(s.Certificates)
	for i, digest := range s.Certificates {
		s.Certificates[i] = strings.ToLower(strings.ReplaceAll(digest, ":", ""))
	}
	s.TestKey = strings.TrimSpace(s.TestKey)
	for _, list := range []struct {
		field   string
		entries []string
		most    int
		form    *regexp.Regexp
		rule    string
	}{
		{FieldApple, s.AppleApps, maxEntries, appleForm, "enter the team ID of 10 characters, a full stop and the bundle " +
			"ID, such as ABCDE12345.com.example.app"},
		{FieldPackages, s.Packages, maxPackages, packageForm, "enter a package name such as com.example.app"},
		{FieldCertificates, s.Certificates, maxEntries, digestForm, "enter SHA-256 fingerprints of 64 hexadecimal digits"},
	} {
		switch {
		case len(list.entries) <= list.most, list.field == FieldPackages && slices.Equal(list.entries, packages):
		case list.field == FieldPackages:
			return s, &InvalidError{list.field, "enter one package: Google's keys belong to one app, so that another app " +
				"needs a project of its own"}
		default:
			return s, &InvalidError{list.field, fmt.Sprintf("enter at most %d lines", list.most)}
		}
		for _, entry := range list.entries {
			if len(entry) > 200 || !list.form.MatchString(entry) {
				return s, &InvalidError{list.field, list.rule}
			}
		}
	}
	if _, err := parseTestKey(s.TestKey); s.TestKey != "" && err != nil {
		return s, &InvalidError{FieldTestKey, err.Error()}
	}
	return s, nil
}

func parseTestKey(text string) (*ecdsa.PublicKey, error) {
	if block, _ := pem.Decode([]byte(text)); block != nil && len(text) < 1000 {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if public, ok := key.(*ecdsa.PublicKey); err == nil && ok && public.Curve == elliptic.P256() {
			return public, nil
		}
	}
	return nil, errors.New("enter a public key on P-256, which begins with BEGIN PUBLIC KEY")
}

func (s Settings) digests() (all [][sha256.Size]byte) {
	for _, text := range s.Certificates {
		if raw, err := hex.DecodeString(text); err == nil && len(raw) == sha256.Size {
			all = append(all, [sha256.Size]byte(raw))
		}
	}
	return all
}

// Install is an install as its project's owner sees it.
type Install struct {
	ID, Platform, App, Environment   string
	CreatedAt, AttestedAt, ExpiresAt time.Time
	RevokedAt                        time.Time // zero unless revoked
	// Ended is set if the project key that the install attested with is revoked, or the settings that it attested with
	// were removed. Its tokens are then not accepted.
	Ended bool
}

// State returns the install's state.
func (i Install) State(now time.Time) State {
	switch {
	case !i.RevokedAt.IsZero():
		return Revoked
	case i.ExpiresAt.After(now) && !i.Ended:
		return Attested
	}
	return Expired
}

// Refusal is the number of attestations refused for one reason.
type Refusal struct {
	Platform, Reason string
	Count            int64
	LastAt           time.Time
}

// Overview is what a project's owner sees.
type Overview struct {
	Settings Settings
	PlayKeys bool // the keys of Play Integrity are stored
	// Unreadable is set if they cannot be decrypted, because this backend does not have the key that encrypted them.
	Unreadable bool
	Counts     map[State]int64
	Latest     []Install // newest attestation first, at most Listed
	Next       string    // position of the installs after Latest, or "" if there are none
	Refusals   []Refusal // of the last 30 days, most frequent first
}

// Listed is the maximum number of installs in an Overview.
const Listed = 20
