package attest

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/attest/apple"
	"github.com/service-dev/service/backend/internal/attest/google"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/periodic"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// Service issues challenges and tokens, and manages a project's installs.
type Service struct {
	Store       *Store
	Hasher      secret.Hasher
	Credentials *credentials.Service
	Now         func() time.Time
	// AppleRoot replaces Apple's root certificate in tests. It is nil otherwise.
	AppleRoot *x509.Certificate
	Log       *slog.Logger // nil discards logs
}

// Serve deletes what is no longer kept, until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	return periodic.Run(ctx, sweepEvery, s.Log, "sweep attestations", s.Sweep)
}

// Sweep deletes installs, counts of refusals and challenges that are no longer kept.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now()
	return s.Store.SweepAttestations(ctx, now.Add(-InstallsKept), now.Add(-RefusalsKept), now)
}

// Challenge is what an install has to prove its genuineness for, once and within ChallengeLife.
type Challenge struct {
	Text      string
	Nonce     string // the nonce for a request to Play Integrity
	ExpiresAt time.Time
}

// Token authorises the model calls of an install.
type Token struct {
	Text, Install string
	ExpiresAt     time.Time
}

// Caller is the owner of a token.
type Caller struct{ Account, Project, Install string }

func (s *Service) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

const (
	challengeKind = "attest challenge"
	installKind   = "attest install"
	tokenKind     = "attest token"
)

// Challenge issues a challenge for an app with a project key.
func (s *Service) Challenge(ctx context.Context, who projects.KeyOwner) (Challenge, error) {
	var random [32]byte
	rand.Read(random[:])
	now, text := s.now(), base64.RawURLEncoding.EncodeToString(random[:])
	c := Challenge{Text: text, Nonce: google.Nonce(text, who.Project), ExpiresAt: now.Add(ChallengeLife)}
	if err := s.Store.AddChallenge(ctx, who, s.Hasher.Hash(challengeKind, text), now, c.ExpiresAt); err != nil {
		return Challenge{}, fmt.Errorf("save challenge: %w", err)
	}
	return c, nil
}

// attempt is an attestation of an install.
type attempt struct {
	who       projects.KeyOwner
	challenge string
	platform  string
	now       time.Time
	settings  Settings
}

// try uses the challenge up and verifies. It counts a refusal and returns it as *Refused.
func (s *Service) try(
	ctx context.Context, who projects.KeyOwner, challenge, platform string, verify func(a attempt) (Token, error),
) (Token, error) {
	a := attempt{who: who, challenge: challenge, platform: platform, now: s.now()}
	t, err := s.verify(ctx, a, verify)
	var (
		refused *Refused
		ofApple apple.Reason
		google  google.Reason
	)
	switch {
	case err == nil:
		return t, nil
	case errors.As(err, &ofApple):
		refused = &Refused{string(ofApple)}
	case errors.As(err, &google):
		refused = &Refused{string(google)}
	case !errors.As(err, &refused):
		return Token{}, err
	}
	if err := s.Store.CountRefusal(ctx, who, platform, refused.Reason, a.now); err != nil {
		return Token{}, fmt.Errorf("count refused attestation: %w", err)
	}
	return Token{}, refused
}

// verify uses the challenge up and verifies. It verifies once more if the settings change before the install is saved.
func (s *Service) verify(ctx context.Context, a attempt, verify func(a attempt) (Token, error)) (Token, error) {
	ok, err := s.Store.UseChallenge(ctx, a.who, s.Hasher.Hash(challengeKind, a.challenge), a.now)
	switch {
	case err != nil:
		return Token{}, fmt.Errorf("use challenge: %w", err)
	case !ok:
		return Token{}, &Refused{ReasonChallenge}
	}
	once := func() (Token, error) {
		if a.settings, err = s.Store.Settings(ctx, a.who.AccountID, a.who.Project); err != nil {
			return Token{}, fmt.Errorf("read attestation settings: %w", err)
		}
		return verify(a)
	}
	t, err := once()
	if errors.Is(err, errChanged) {
		return once()
	}
	return t, err
}

func (s *Service) appleSettings(a attempt) (apple.Settings, error) {
	if len(a.settings.AppleApps) == 0 {
		return apple.Settings{}, &Refused{ReasonNotConfigured}
	}
	return apple.Settings{Apps: a.settings.AppleApps, Development: a.settings.AppleDevelopment, Root: s.AppleRoot}, nil
}

// Apple verifies the attestation of a new key by App Attest. Its clientDataHash is the SHA-256 of the challenge. It
// returns *Refused on failure.
func (s *Service) Apple(
	ctx context.Context, who projects.KeyOwner, challenge string, keyID, object []byte,
) (Token, error) {
	return s.try(ctx, who, challenge, PlatformApple, func(a attempt) (Token, error) {
		settings, err := s.appleSettings(a)
		if err != nil {
			return Token{}, err
		}
		hash := sha256.Sum256([]byte(challenge))
		key, err := apple.Verify(object, keyID, hash[:], settings, a.now)
		if err != nil {
			return Token{}, err
		}
		environment := Production
		if settings.Development {
			environment = Development
		}
		return s.issue(ctx, a, stored{keyHash: s.keyHash(PlatformApple, hex.EncodeToString(keyID)),
			publicKey: hex.EncodeToString(key.Public), app: key.App, environment: environment}, s.Store.InsertInstall)
	})
}

// AppleAssertion verifies an assertion by a key that was attested before. Its clientDataHash is the SHA-256 of the
// challenge. It returns *Refused on failure.
func (s *Service) AppleAssertion(
	ctx context.Context, who projects.KeyOwner, challenge string, keyID, object []byte,
) (Token, error) {
	return s.try(ctx, who, challenge, PlatformApple, func(a attempt) (Token, error) {
		settings, err := s.appleSettings(a)
		if err != nil {
			return Token{}, err
		}
		i, err := s.Store.installByKey(ctx, who, s.keyHash(PlatformApple, hex.EncodeToString(keyID)))
		switch {
		case errors.Is(err, ErrNoInstall):
			return Token{}, &Refused{ReasonUnknownInstall}
		case err != nil:
			return Token{}, fmt.Errorf("read install: %w", err)
		case i.revoked:
			return Token{}, &Refused{ReasonRevoked}
		}
		public, err := hex.DecodeString(i.publicKey)
		if err != nil {
			return Token{}, fmt.Errorf("read key of install: %w", err)
		}
		hash := sha256.Sum256([]byte(challenge))
		settings.Development = i.environment == Development
		if settings.Development != a.settings.AppleDevelopment {
			return Token{}, apple.WrongEnvironment
		}
		i.counter, err = apple.Assert(object, hash[:], apple.Key{Public: public, App: i.app}, i.counter, settings)
		if err != nil {
			return Token{}, err
		}
		return s.issue(ctx, a, i, s.Store.CountInstall)
	})
}

// Google verifies a token of Play Integrity that was requested with the challenge's nonce. install is a random ID of 16
// to 64 characters that the app keeps. It returns *Refused on failure.
func (s *Service) Google(
	ctx context.Context, who projects.KeyOwner, challenge, install, token string,
) (Token, error) {
	return s.try(ctx, who, challenge, PlatformGoogle, func(a attempt) (Token, error) {
		if !isInstall(install) {
			return Token{}, &Refused{ReasonMalformed}
		}
		text, err := s.Credentials.PlayKeys(ctx, who.AccountID, who.Project)
		switch {
		case errors.Is(err, credentials.ErrNotSet) || len(a.settings.Packages) == 0:
			return Token{}, &Refused{ReasonNotConfigured}
		case errors.Is(err, credentials.ErrUnreadable):
			return Token{}, &Refused{ReasonUnreadableKeys}
		case err != nil:
			return Token{}, fmt.Errorf("read keys of Play Integrity: %w", err)
		}
		decryption, verification, _ := strings.Cut(text, "\n")
		keys, err := google.ParseKeys(decryption, verification)
		if err != nil {
			return Token{}, fmt.Errorf("read keys of Play Integrity: %w", err)
		}
		app, err := google.Verify(token, google.Nonce(challenge, who.Project), google.Settings{
			Packages: a.settings.Packages, Certificates: a.settings.digests(), Keys: keys}, a.now)
		if err != nil {
			return Token{}, err
		}
		return s.issue(ctx, a, stored{keyHash: s.keyHash(PlatformGoogle, install), app: app, environment: Production},
			s.Store.RenewInstall)
	})
}

// Development verifies that the project's test key signed a challenge and an install, for simulators and CI: an ASN.1
// signature with ECDSA over the SHA-256 of the challenge, a newline and the install. It returns *Refused on failure.
func (s *Service) Development(
	ctx context.Context, who projects.KeyOwner, challenge, install string, signature []byte,
) (Token, error) {
	return s.try(ctx, who, challenge, PlatformDevelopment, func(a attempt) (Token, error) {
		if !isInstall(install) {
			return Token{}, &Refused{ReasonMalformed}
		}
		key, err := parseTestKey(a.settings.TestKey)
		if err != nil {
			return Token{}, &Refused{ReasonNotConfigured}
		}
		if digest := sha256.Sum256([]byte(challenge + "\n" + install)); !ecdsa.VerifyASN1(key, digest[:], signature) {
			return Token{}, &Refused{ReasonSignature}
		}
		return s.issue(ctx, a, stored{keyHash: s.keyHash(PlatformDevelopment, install), environment: Development},
			s.Store.RenewInstall)
	})
}

// isInstall reports whether text is 16 to 64 letters, digits, hyphens and underscores.
func isInstall(text string) bool {
	return len(text) >= 16 && len(text) <= 64 && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

func (s *Service) keyHash(platform, id string) string {
	return s.Hasher.Hash(installKind, platform+" "+id)
}

// issue stores an install with write, together with a new token.
func (s *Service) issue(
	ctx context.Context, a attempt, i stored, write func(context.Context, stored) (string, error),
) (Token, error) {
	t := Token{Text: secret.New(credential.Attested), ExpiresAt: a.now.Add(TokenLife)}
	if i.id == "" {
		i.id = uuid.NewString()
	}
	i.who, i.platform, i.now, i.expires, i.settings = a.who, a.platform, a.now, t.ExpiresAt, a.settings.Version
	i.tokenHash = s.Hasher.Hash(tokenKind, t.Text)
	id, err := write(ctx, i)
	if err != nil {
		return Token{}, err
	}
	t.Install = id
	return t, nil
}

// Open returns the owner of a token, or ErrBadToken.
func (s *Service) Open(ctx context.Context, token string) (Caller, error) {
	if !secret.Valid(credential.Attested, token) {
		return Caller{}, ErrBadToken
	}
	return s.Store.CallerByToken(ctx, s.Hasher.Hash(tokenKind, token), s.now())
}

// Overview returns a project's settings, refusals, and the installs after a position, which is "" or the Next of
// another Overview. An invalid position is ignored.
func (s *Service) Overview(ctx context.Context, account, project, after string) (o Overview, err error) {
	now := s.now()
	if o.Settings, err = s.Store.Settings(ctx, account, project); err != nil {
		return Overview{}, fmt.Errorf("read attestation settings: %w", err)
	}
	if o.Counts, err = s.Store.Counts(ctx, account, project, now); err != nil {
		return Overview{}, fmt.Errorf("count installs: %w", err)
	}
	if o.Latest, err = s.Store.Latest(ctx, account, project, parsePosition(after), Listed+1); err != nil {
		return Overview{}, fmt.Errorf("list installs: %w", err)
	}
	if len(o.Latest) > Listed {
		o.Latest = o.Latest[:Listed]
		o.Next = positionOf(o.Latest[Listed-1]).String()
	}
	if o.Refusals, err = s.Store.Refusals(ctx, account, project, now.Add(-RefusalsKept)); err != nil {
		return Overview{}, fmt.Errorf("list refused attestations: %w", err)
	}
	_, err = s.Credentials.PlayKeys(ctx, account, project)
	o.Unreadable = errors.Is(err, credentials.ErrUnreadable)
	o.PlayKeys = err == nil || o.Unreadable
	if o.Unreadable || errors.Is(err, credentials.ErrNotSet) {
		err = nil
	}
	return o, err
}

// Set replaces version next.Version of a project's settings. It returns an *InvalidError, ErrConflict or
// projects.ErrNotFound on failure. It ends the tokens of installs that attested with what next no longer has, and
// reports whether there was such a removal. The caller must check that the project's ID is not an alias.
func (s *Service) Set(
	ctx context.Context, account, project string, next Settings, by audit.Actor,
) (ended bool, err error) {
	was, err := s.Store.Settings(ctx, account, project)
	if err != nil {
		return false, fmt.Errorf("read attestation settings: %w", err)
	}
	if next, err = next.check(was.Packages); err != nil {
		return false, err
	}
	if was.Version != next.Version {
		return false, ErrConflict
	}
	what := changes(was, next)
	if what == "" {
		return false, nil
	}
	entry, removed := audit.New(s.now(), account, by, "attestation.changed", project, what), removals(was, next)
	return len(removed) > 0, s.Store.SetSettings(ctx, next, removed, entry)
}

// removals returns the installs whose attestation next no longer accepts. An install's row does not contain the
// certificate of its app, so that a removed certificate ends all tokens of Android.
func removals(was, next Settings) (all []removal) {
	removed := func(from, to []string) []string {
		return slices.DeleteFunc(slices.Clone(from), func(one string) bool { return slices.Contains(to, one) })
	}
	if was.TestKey != "" && was.TestKey != next.TestKey {
		all = append(all, removal{PlatformDevelopment, nil})
	}
	apps := removed(was.AppleApps, next.AppleApps)
	if was.AppleDevelopment != next.AppleDevelopment && len(was.AppleApps) > 0 {
		all = append(all, removal{PlatformApple, nil})
	} else if len(apps) > 0 {
		all = append(all, removal{PlatformApple, apps})
	}
	if packages := removed(was.Packages, next.Packages); len(removed(was.Certificates, next.Certificates)) > 0 {
		all = append(all, removal{PlatformGoogle, nil})
	} else if len(packages) > 0 {
		all = append(all, removal{PlatformGoogle, packages})
	}
	return all
}

// changes describes the difference between two settings, or returns "".
func changes(was, next Settings) string {
	var all []string
	for _, list := range []struct {
		name     string
		from, to []string
	}{
		{"Apple apps", was.AppleApps, next.AppleApps}, {"Android packages", was.Packages, next.Packages},
		{"Android certificates", was.Certificates, next.Certificates},
	} {
		if !slices.Equal(list.from, list.to) {
			all = append(all, list.name+": "+listed(list.from)+" -> "+listed(list.to))
		}
	}
	if was.AppleDevelopment != next.AppleDevelopment {
		all = append(all, fmt.Sprintf("Apple's development environment: %v -> %v", was.AppleDevelopment,
			next.AppleDevelopment))
	}
	if was.TestKey != next.TestKey {
		all = append(all, "test key changed")
	}
	return strings.Join(all, "; ")
}

func listed(entries []string) string {
	if len(entries) == 0 {
		return "none"
	}
	return strings.Join(entries, ", ")
}

// SetPlayKeys stores the two keys of Play Integrity as a credential of the project. If it replaces others, or keys that
// cannot be read, it ends the tokens of the installs that attested with them, and returns true. It returns an
// *InvalidError or credentials.ErrNotConfigured on failure.
func (s *Service) SetPlayKeys(
	ctx context.Context, account, project, decryption, verification string, by audit.Actor,
) (ended bool, err error) {
	decryption, verification = strings.TrimSpace(decryption), strings.TrimSpace(verification)
	if _, err := google.ParseKeys(decryption, verification); err != nil {
		return false, &InvalidError{FieldDecryption, err.Error()}
	}
	next := decryption + "\n" + verification
	was, err := s.Credentials.PlayKeys(ctx, account, project)
	if err != nil && !errors.Is(err, credentials.ErrNotSet) && !errors.Is(err, credentials.ErrUnreadable) {
		return false, fmt.Errorf("read keys of Play Integrity: %w", err)
	}
	ended = !errors.Is(err, credentials.ErrNotSet) && was != next
	if err := s.Credentials.SetPlayKeys(ctx, account, project, next, by); err != nil || !ended {
		return false, err
	}
	return true, s.Store.EndTokens(ctx, account, project, removal{PlatformGoogle, nil})
}

// RemovePlayKeys deletes the keys of Play Integrity and ends the tokens of the installs that attested with them. It
// returns credentials.ErrNotSet if there are no keys. Even then it ends the tokens, because an earlier attempt may have
// failed in between.
func (s *Service) RemovePlayKeys(ctx context.Context, account, project string, by audit.Actor) error {
	err := s.Credentials.RemovePlayKeys(ctx, account, project, by)
	if err != nil && !errors.Is(err, credentials.ErrNotSet) {
		return err
	}
	return cmp.Or(s.Store.EndTokens(ctx, account, project, removal{PlatformGoogle, nil}), err)
}

// Revoke ends the tokens of an install for good, and its running calls within a second. It returns ErrNoInstall for an
// unknown install. Revoking a revoked install succeeds.
func (s *Service) Revoke(ctx context.Context, account, project, id string, by audit.Actor) error {
	return s.Store.Revoke(ctx, id, audit.New(s.now(), account, by, "attestation.revoked", project, "install "+id))
}
