// Package passkey registers passkeys (WebAuthn) of an account and signs in with them. What a ceremony must remember
// between its two steps travels in the browser, sealed, for five minutes. It knows neither pages nor SQL, and of accounts
// only their id and address.
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

// Errors that callers branch on.
var (
	// ErrInvalid: the answer does not fit the ceremony, or the ceremony is over or was finished before.
	ErrInvalid = errors.New("passkey's answer is not valid")
	// ErrUnknown: no such account or passkey.
	ErrUnknown   = errors.New("unknown passkey")
	ErrSuspended = errors.New("account of the passkey is suspended")
	// ErrClone: the passkey's counter went back, so there may be a copy of it.
	ErrClone     = errors.New("passkey may have been copied")
	ErrLastWayIn = errors.New("last way to sign in")
	ErrTooMany   = errors.New("account has as many passkeys as it may")
	// ErrAddress: browsers give passkeys to host names only, not to IP addresses.
	ErrAddress = errors.New("site's address cannot have passkeys")
)

const (
	// MaxPasskeys is how many an account may have.
	MaxPasskeys = 20
	life        = 5 * time.Minute // of a ceremony
	maxAnswer   = 64 << 10        // bytes
	maxName     = 60              // characters
	maxTries    = 5               // answers to one ceremony

	// verification: a passkey is the whole sign-in, so the device must know who holds it (a PIN, a finger, a face).
	verification = protocol.VerificationRequired
)

// Passkey is one as its owner sees it.
type Passkey struct {
	ID, Name  string
	CreatedAt time.Time
	UsedAt    time.Time // zero: never
}

// Stored is a passkey as kept: the credential's own id, its public key and flags as JSON, and its counter.
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

// Store keeps passkeys.
type Store interface {
	// PasskeyHolder answers ErrUnknown.
	PasskeyHolder(ctx context.Context, accountID string) (Holder, error)
	// TryCeremony counts an answer to a ceremony, in whichever process; false when it is done or had most answers. The row
	// may go after until.
	TryCeremony(ctx context.Context, challenge string, until, now time.Time, most int) (bool, error)
	// InsertPasskey ends a ceremony and stores its passkey in one step: ErrTooMany when the account has most of them,
	// ErrInvalid for a credential that is known or a ceremony that is done.
	InsertPasskey(ctx context.Context, p Stored, most int, challenge string, e audit.Entry) error
	// UsePasskey ends a ceremony and stores what the sign-in changed in one step; false when the counter is no longer was.
	// ErrInvalid: the ceremony is done.
	UsePasskey(ctx context.Context, p Stored, was uint32, challenge string) (bool, error)
	// DeletePasskey answers ErrUnknown and ErrLastWayIn.
	DeletePasskey(ctx context.Context, id string, e audit.Entry) error
}

// Options are what New needs.
type Options struct {
	Store Store
	// SiteURL is the address of the pages; its host is what passkeys are bound to, for good.
	SiteURL string
	// Name is shown by the browser.
	Name string
	// Key seals ceremonies: 32 bytes, the same on every replica.
	Key []byte
	// Added is called after an account got a passkey, so that its person is told; nil calls nobody.
	Added func(ctx context.Context, accountID string)
	Now   func() time.Time
}

// Service runs the ceremonies.
type Service struct {
	store Store
	web   *webauthn.WebAuthn
	added func(ctx context.Context, accountID string)
	now   func() time.Time
	seal  sealer
}

// New checks the options: ErrAddress for a site that cannot have passkeys.
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
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(), UserVerification: verification,
		},
		Timeouts: webauthn.TimeoutsConfig{Login: webauthn.TimeoutConfig{Timeout: life}, Registration: webauthn.TimeoutConfig{Timeout: life}},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	seal, err := newSealer(o.Key)
	if err != nil {
		return nil, err
	}
	return &Service{store: o.Store, web: web, added: o.Added, now: o.Now, seal: seal}, nil
}

// algorithms are those that every authenticator has one of.
var algorithms = []protocol.CredentialParameter{
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgES256},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgEdDSA},
	{Type: protocol.PublicKeyCredentialType, Algorithm: webauthncose.AlgRS256},
}

// BeginRegister gives what navigator.credentials.create takes, as JSON, and the ceremony for FinishRegister: ErrUnknown,
// ErrSuspended, ErrTooMany.
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
		return nil, "", fmt.Errorf("beginning a passkey: %w", err)
	}
	return s.begun(creation, ceremony{Kind: registering, Account: accountID, Session: *session})
}

// FinishRegister checks the browser's answer and keeps the passkey under a name: ErrInvalid, ErrTooMany, ErrSuspended.
func (s *Service) FinishRegister(ctx context.Context, accountID, sealed string, response []byte, name string, by audit.Actor) (Passkey, error) {
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
	p := Stored{Passkey: Passkey{ID: uuid.NewString(), Name: named(name), CreatedAt: s.now()}, AccountID: accountID}
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

// BeginLogin gives what navigator.credentials.get takes, as JSON, and the ceremony for FinishLogin. The person need not
// say who they are.
func (s *Service) BeginLogin(context.Context) (options []byte, sealed string, err error) {
	assertion, session, err := s.web.BeginDiscoverableLogin(webauthn.WithUserVerification(verification))
	if err != nil {
		return nil, "", fmt.Errorf("beginning a sign-in: %w", err)
	}
	return s.begun(assertion, ceremony{Kind: signingIn, Session: *session})
}

// FinishLogin checks the browser's answer and tells whose passkey it is: ErrInvalid, ErrUnknown, ErrClone, ErrSuspended.
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
	_, credential, err := s.web.ValidatePasskeyLogin(func(_, _ []byte) (webauthn.User, error) { return who, nil }, c.Session, parsed)
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
	if err == nil && !fresh { // somebody signed in with it in this very moment
		return "", ErrClone
	}
	return who.ID, err
}

// List gives the account's passkeys, the oldest first: ErrUnknown.
func (s *Service) List(ctx context.Context, accountID string) ([]Passkey, error) {
	who, err := s.store.PasskeyHolder(ctx, accountID)
	var all []Passkey
	for _, p := range who.Passkeys {
		all = append(all, p.Passkey)
	}
	return all, err
}

// Remove takes a passkey off the account: ErrUnknown, ErrLastWayIn.
func (s *Service) Remove(ctx context.Context, accountID, id string, by audit.Actor) error {
	return s.store.DeletePasskey(ctx, id, audit.New(s.now(), accountID, by, "account.passkey_removed", "", "removed a passkey"))
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
		return nil, "", fmt.Errorf("writing options: %w", err)
	}
	c.Until = s.now().Add(life)
	sealed, err := s.seal.close(c)
	return text, sealed, err
}

// opened opens a ceremony that is not overdue.
func (s *Service) opened(sealed, kind string, response []byte) (ceremony, error) {
	c, err := s.seal.open(sealed)
	if err != nil || c.Kind != kind || !s.now().Before(c.Until) || len(response) > maxAnswer {
		return ceremony{}, ErrInvalid
	}
	return c, nil
}

// try counts an answer before its signature is checked, so that many at once are not more than maxTries. A wrong answer
// leaves the ceremony open; the right one ends it in the transaction that stores what it brought.
func (s *Service) try(ctx context.Context, c ceremony) error {
	ok, err := s.store.TryCeremony(ctx, c.Session.Challenge, c.Until, s.now(), maxTries)
	if err != nil {
		return fmt.Errorf("counting an answer to a passkey ceremony: %w", err)
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

// take keeps what is needed to check the next answer; how the passkey was attested is not.
func (p *Stored) take(c *webauthn.Credential) error {
	kept := *c
	kept.Attestation = webauthn.CredentialAttestation{}
	text, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("writing a passkey: %w", err)
	}
	p.CredentialID, p.Credential, p.SignCount = base64.RawURLEncoding.EncodeToString(c.ID), text, c.Authenticator.SignCount
	return nil
}
