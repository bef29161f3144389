// Package passkey registers an account's passkeys (WebAuthn) and signs users in with them. Between the two steps of a
// ceremony, the browser holds its encrypted state for up to five minutes. The package contains no page or SQL code, and
// uses only the ID and address of an account.
package passkey

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
)

// Errors that callers check for.
var (
	// ErrInvalid is returned for a response that does not match its ceremony, and for an expired or finished ceremony.
	ErrInvalid = errors.New("passkey's response is not valid")
	// ErrUnknown is returned for an unknown account or passkey.
	ErrUnknown   = errors.New("unknown passkey")
	ErrSuspended = errors.New("passkey's account is suspended")
	// ErrClone is returned if a passkey's counter went backwards, which suggests that the passkey was copied.
	ErrClone     = errors.New("passkey may have been copied")
	ErrLastWayIn = errors.New("passkey is the last way to sign in")
	ErrTooMany   = errors.New("account has reached its limit of passkeys")
	// ErrAddress is returned for a site whose host is an IP address: browsers allow passkeys for host names only.
	ErrAddress = errors.New("passkeys need a site with a host name")
)

const (
	// MaxPasskeys is the maximum number of passkeys per account.
	MaxPasskeys = 20
	life        = 5 * time.Minute // how long a ceremony may take
	maxAnswer   = 64 << 10        // bytes
	maxName     = 60              // characters
	maxTries    = 5               // responses per ceremony

	// verification is required because a passkey is the only factor: the device must verify its holder with a PIN, a
	// fingerprint or face recognition.
	verification = protocol.VerificationRequired
)

// Passkey describes a passkey to its owner.
type Passkey struct {
	ID, Name  string
	Host      string // host for which it works; "" if it was added before hosts were stored
	CreatedAt time.Time
	UsedAt    time.Time // zero if it was never used
}

// Stored is a stored passkey: its credential ID, its public key and flags as JSON, and its counter.
type Stored struct {
	Passkey
	AccountID    string
	CredentialID string // base64url
	Credential   []byte
	SignCount    uint32
}

// Holder is an account with its passkeys.
type Holder struct {
	ID, Email string
	Active    bool
	Passkeys  []Stored
}

// Options are the arguments of New.
type Options struct {
	Store *Store
	// SiteURL is the URL of the pages. Passkeys are bound to its host permanently.
	SiteURL string
	// Name is the site name that the browser shows.
	Name string
	// Key encrypts ceremonies. It is 32 bytes long and must be the same on every replica.
	Key []byte
	// Added is called after a passkey has been added to an account. It may be nil.
	Added func(ctx context.Context, accountID string)
	Now   func() time.Time
}

// Service runs the registration and sign-in ceremonies.
type Service struct {
	store *Store
	web   *webauthn.WebAuthn
	host  string
	added func(ctx context.Context, accountID string)
	now   func() time.Time
	seal  sealer
}

// New returns a service, or ErrAddress for a site that cannot use passkeys.
func New(o Options) (*Service, error) {
	site, err := url.Parse(o.SiteURL)
	if err != nil || protocol.ValidateRPID(site.Hostname()) != nil {
		return nil, ErrAddress
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Added == nil {
		o.Added = func(context.Context, string) {}
	}
	if o.Name == "" {
		o.Name = "Service"
	}
	web, err := webauthn.New(&webauthn.Config{
		RPID: site.Hostname(), RPDisplayName: o.Name, RPOrigins: []string{site.Scheme + "://" + site.Host},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: verification,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: webauthn.TimeoutConfig{Timeout: life},
			Registration: webauthn.TimeoutConfig{Timeout: life}},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	seal, err := newSealer(o.Key)
	if err != nil {
		return nil, err
	}
	return &Service{store: o.Store, web: web, host: site.Hostname(), added: o.Added, now: o.Now, seal: seal}, nil
}

// algorithms are chosen so that every authenticator supports at least one of them.
var algorithms = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// BeginRegister returns the options for navigator.credentials.create, as JSON, and the ceremony for FinishRegister. It
// returns ErrUnknown, ErrSuspended or ErrTooMany on failure.
func (s *Service) BeginRegister(ctx context.Context, accountID string) (options []byte, sealed string, err error) {
	who, err := s.holder(ctx, accountID)
	if err != nil {
		return nil, "", err
	}
	if len(who.Passkeys) >= MaxPasskeys {
		return nil, "", ErrTooMany
	}
	creation, session, err := s.web.BeginRegistration(who, webauthn.WithCredentialParameters(algorithms),
		webauthn.WithExclusions(webauthn.Credentials(who.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return nil, "", fmt.Errorf("begin passkey: %w", err)
	}
	return s.begun(creation, ceremony{Kind: registering, Account: accountID, Session: *session})
}

// FinishRegister checks the browser's response and stores the passkey under name. It returns ErrInvalid, ErrTooMany
// or ErrSuspended on failure.
func (s *Service) FinishRegister(
	ctx context.Context, accountID, sealed string, response []byte, name string, by audit.Actor,
) (Passkey, error) {
	c, err := s.opened(sealed, registering, response)
	if err != nil {
		return Passkey{}, err
	}
	if c.Account != accountID {
		return Passkey{}, ErrInvalid
	}
	who, err := s.holder(ctx, accountID)
	if err != nil {
		return Passkey{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return Passkey{}, ErrInvalid
	}
	if err := s.try(ctx, c); err != nil {
		return Passkey{}, err
	}
	credential, err := s.web.CreateCredential(who, c.Session, parsed)
	if err != nil {
		return Passkey{}, ErrInvalid
	}
	p := Stored{Passkey: Passkey{ID: uuid.NewString(), Name: named(name), Host: s.host, CreatedAt: s.now()},
		AccountID: accountID}
	if err := p.take(credential); err != nil {
		return Passkey{}, err
	}
	e := audit.New(s.now(), accountID, by, "account.passkey_added", "", "added the passkey "+p.Name)
	if err := s.store.InsertPasskey(ctx, p, MaxPasskeys, c.Session.Challenge, e); err != nil {
		return Passkey{}, err
	}
	s.added(ctx, accountID)
	return p.Passkey, nil
}

// BeginLogin returns the options for navigator.credentials.get, as JSON, and the ceremony for FinishLogin. It works
// for any account.
func (s *Service) BeginLogin(context.Context) (options []byte, sealed string, err error) {
	assertion, session, err := s.web.BeginDiscoverableLogin(webauthn.WithUserVerification(verification))
	if err != nil {
		return nil, "", fmt.Errorf("begin sign-in: %w", err)
	}
	return s.begun(assertion, ceremony{Kind: signingIn, Session: *session})
}

// FinishLogin checks the browser's response and returns the ID of the passkey's account. It returns ErrInvalid,
// ErrUnknown, ErrClone or ErrSuspended on failure.
func (s *Service) FinishLogin(ctx context.Context, sealed string, response []byte) (string, error) {
	c, err := s.opened(sealed, signingIn, response)
	if err != nil {
		return "", err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return "", ErrInvalid
	}
	if err := s.try(ctx, c); err != nil {
		return "", err
	}
	who, err := s.holder(ctx, string(parsed.Response.UserHandle))
	if err != nil {
		return "", err
	}
	known := who.with(parsed.RawID)
	if known == nil {
		return "", ErrUnknown
	}
	user := respondent{who, parsed.Response.AuthenticatorData.Flags.HasBackupEligible()}
	_, credential, err := s.web.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) { return user, nil },
		c.Session, parsed)
	if err != nil {
		return "", ErrInvalid
	}
	if credential.Authenticator.CloneWarning {
		return "", ErrClone
	}
	was := known.SignCount
	known.UsedAt = s.now()
	if err := known.take(credential); err != nil {
		return "", err
	}
	fresh, err := s.store.UsePasskey(ctx, *known, was, c.Session.Challenge)
	if err == nil && !fresh { // a concurrent sign-in changed the counter
		return "", ErrClone
	}
	return who.ID, err
}

// List returns the account's passkeys, oldest first, or ErrUnknown.
func (s *Service) List(ctx context.Context, accountID string) ([]Passkey, error) {
	who, err := s.store.PasskeyHolder(ctx, accountID)
	var all []Passkey
	for _, p := range who.Passkeys {
		all = append(all, p.Passkey)
	}
	return all, err
}

// Remove deletes a passkey of the account. It returns ErrUnknown or ErrLastWayIn on failure.
func (s *Service) Remove(ctx context.Context, accountID, id string, by audit.Actor) error {
	return s.store.DeletePasskey(ctx, id, audit.New(s.now(), accountID, by, "account.passkey_removed", "",
		"removed a passkey"))
}

func (s *Service) holder(ctx context.Context, accountID string) (Holder, error) {
	who, err := s.store.PasskeyHolder(ctx, accountID)
	if err == nil && !who.Active {
		return Holder{}, ErrSuspended
	}
	return who, err
}

func (s *Service) begun(options any, c ceremony) ([]byte, string, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, "", fmt.Errorf("encode options: %w", err)
	}
	c.Until = s.now().Add(life)
	sealed, err := s.seal.close(c)
	return text, sealed, err
}

// opened decrypts a ceremony and checks that it has not expired.
func (s *Service) opened(sealed, kind string, response []byte) (ceremony, error) {
	c, err := s.seal.open(sealed)
	if err != nil || c.Kind != kind || !s.now().Before(c.Until) || len(response) > maxAnswer {
		return ceremony{}, ErrInvalid
	}
	return c, nil
}

// try counts a response before its signature is checked, so that at most maxTries are checked even if they arrive
// concurrently. A wrong response leaves the ceremony open. A correct response finishes it in the transaction that
// stores the result.
func (s *Service) try(ctx context.Context, c ceremony) error {
	ok, err := s.store.TryCeremony(ctx, c.Session.Challenge, c.Until, s.now(), maxTries)
	if err != nil {
		return fmt.Errorf("count response to a passkey ceremony: %w", err)
	}
	if !ok {
		return ErrInvalid
	}
	return nil
}

func named(name string) string {
	name = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))), " ")
	if name == "" {
		return "Passkey"
	}
	if r := []rune(name); len(r) > maxName {
		return strings.TrimSpace(string(r[:maxName]))
	}
	return name
}

// take copies the fields of c that the next sign-in needs. It omits the attestation.
func (p *Stored) take(c *webauthn.Credential) error {
	kept := *c
	kept.Attestation = webauthn.CredentialAttestation{}
	text, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode passkey: %w", err)
	}
	p.CredentialID, p.Credential, p.SignCount = base64.RawURLEncoding.EncodeToString(c.ID), text, c.Authenticator.SignCount
	return nil
}
