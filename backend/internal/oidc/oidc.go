// Package oidc signs users in with the OpenID Connect providers that the operator configured. It uses the authorisation
// code flow with PKCE (RFC 7636, S256), state and nonce, and verifies the ID token. It stores nothing: the caller keeps
// an Attempt in the browser that started it until the callback. It is independent of accounts and pages.
package oidc

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Errors that callers distinguish. They never wrap a provider's response, because it may contain a code or a token.
var (
	ErrUnknownProvider = errors.New("unknown identity provider")
	// ErrDenied is returned if the user or the provider declined the sign-in.
	ErrDenied = errors.New("sign-in was declined at the provider")
	// ErrUnreachable is returned if the provider does not respond or is unavailable.
	ErrUnreachable = errors.New("identity provider cannot be reached")
	// ErrInvalidAnswer is returned for a response that does not match the attempt.
	ErrInvalidAnswer = errors.New("identity provider's response is not valid")
)

const (
	timeout    = 10 * time.Second
	retryAfter = 5 * time.Second // minimum time between attempts to discover an unreachable provider
)

// Provider is the part of a provider that pages show.
type Provider struct{ ID, Name string }

// Attempt is a sign-in in progress. State, Verifier and Nonce are secrets of the browser that started it.
type Attempt struct {
	Provider    string
	RedirectURL string
	URL         string // where to redirect the browser
	State       string
	Verifier    string
	Nonce       string
}

// Identity is a provider's description of a user.
type Identity struct {
	Provider, Subject, Email string
	EmailVerified            bool
}

// Service signs users in with the configured providers.
type Service struct {
	all  []*provider
	http *http.Client
	now  func() time.Time
	log  *slog.Logger
}

// provider is discovered on first use, so that the backend can start while the provider is down.
type provider struct {
	settings
	mu     sync.Mutex
	found  *gooidc.Provider
	style  oauth2.AuthStyle // how the token endpoint expects the client secret
	failed time.Time        // when discovery last failed
	cause  error            // why discovery failed
	warned bool             // logged that the provider does not vouch for addresses
}

// Load reads the providers file. An empty path means no providers, and a nil now means time.Now.
func Load(file string, now func() time.Time, log *slog.Logger) (*Service, error) {
	if now == nil {
		now = time.Now
	}
	s := &Service{http: newClient(http.DefaultTransport), now: now, log: log}
	if file == "" {
		return s, nil
	}
	all, err := load(file)
	for _, p := range all {
		s.all = append(s.all, &provider{settings: p})
	}
	return s, err
}

// Providers lists the providers in file order.
func (s *Service) Providers() []Provider {
	var all []Provider
	for _, p := range s.all {
		all = append(all, Provider{p.ID, p.Name})
	}
	return all
}

// Begin starts a sign-in. It returns ErrUnknownProvider or ErrUnreachable on failure.
func (s *Service) Begin(ctx context.Context, id, redirectURL string) (Attempt, error) {
	p, found, err := s.find(ctx, id)
	if err != nil {
		return Attempt{}, err
	}
	a := Attempt{Provider: id, RedirectURL: redirectURL, State: rand.Text(), Nonce: rand.Text(),
		Verifier: oauth2.GenerateVerifier()}
	a.URL = p.client(found, redirectURL).AuthCodeURL(a.State, gooidc.Nonce(a.Nonce),
		oauth2.S256ChallengeOption(a.Verifier))
	return a, nil
}

// Finish checks the query of the provider's redirect, redeems its code, and verifies the ID token's signature, issuer,
// audience, nonce and expiry. If the ID token does not vouch for the e-mail address, Finish also reads the provider's
// userinfo endpoint. It returns ErrDenied, ErrUnreachable or ErrInvalidAnswer on failure.
func (s *Service) Finish(ctx context.Context, a Attempt, answer url.Values) (Identity, error) {
	if a.State == "" || subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(a.State)) != 1 {
		return Identity{}, fmt.Errorf("%w: state", ErrInvalidAnswer)
	}
	if answer.Get("error") != "" {
		switch answer.Get("error") {
		case "server_error", "temporarily_unavailable":
			return Identity{}, ErrUnreachable
		}
		return Identity{}, withCode(ErrDenied, answer.Get("error"))
	}
	code := answer.Get("code")
	if code == "" || len(code) > 4096 {
		return Identity{}, fmt.Errorf("%w: code", ErrInvalidAnswer)
	}
	p, found, err := s.find(ctx, a.Provider)
	if err != nil {
		return Identity{}, err
	}
	ctx, cancel := context.WithTimeout(gooidc.ClientContext(ctx, s.http), timeout)
	defer cancel()
	token, err := p.client(found, a.RedirectURL).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return Identity{}, exchangeError(err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return Identity{}, fmt.Errorf("%w: it has no ID token", ErrInvalidAnswer)
	}
	checked, err := found.VerifierContext(ctx, &gooidc.Config{ClientID: p.ClientID, Now: s.now}).Verify(ctx, raw)
	if err != nil {
		return Identity{}, verifyError(err)
	}
	if err := checkParty(checked, p.ClientID); err != nil {
		return Identity{}, err
	}
	id, err := identity(a, checked)
	if err != nil || id.EmailVerified {
		return id, err
	}
	answered, err := emailFrom(ctx, found, token, checked.Subject)
	id.Email, id.EmailVerified = cmp.Or(answered.Email, id.Email), answered.EmailVerified
	if id.Email != "" && !id.EmailVerified {
		id.EmailVerified = p.TrustEmail
		if err == nil {
			s.warnOnce(ctx, p)
		}
	}
	return id, nil
}

// emailFrom returns the user's address from the userinfo endpoint, if the provider has one. The answer must be about
// the subject of the ID token (OpenID Connect Core 1.0, section 5.3.2).
func emailFrom(ctx context.Context, found *gooidc.Provider, token *oauth2.Token, subject string) (Identity, error) {
	if found.UserInfoEndpoint() == "" {
		return Identity{}, nil
	}
	answer, err := found.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil || answer.Subject != subject {
		return Identity{}, err
	}
	return Identity{Email: answer.Email, EmailVerified: answer.EmailVerified && answer.Email != ""}, nil
}

// warnOnce logs that a provider does not vouch for addresses, and the setting that accepts them anyway.
func (s *Service) warnOnce(ctx context.Context, p *provider) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.TrustEmail || p.warned {
		return
	}
	p.warned = true
	s.log.WarnContext(ctx, "identity provider does not confirm e-mail addresses, so people cannot sign up with it; "+
		"set trust_email if it checks them itself", "provider", p.ID, "claim", "email_verified", "setting", "trust_email")
}

// checkParty rejects an ID token for several clients that was issued to another client (OpenID Connect Core 1.0,
// section 3.1.3.7).
func checkParty(token *gooidc.IDToken, clientID string) error {
	var claims struct {
		Party string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return fmt.Errorf("%w: claims", ErrInvalidAnswer)
	}
	if len(token.Audience) > 1 && claims.Party != clientID {
		return fmt.Errorf("%w: the ID token was issued to another client", ErrInvalidAnswer)
	}
	return nil
}

func identity(a Attempt, token *gooidc.IDToken) (Identity, error) {
	if a.Nonce == "" || subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(a.Nonce)) != 1 {
		return Identity{}, fmt.Errorf("%w: nonce", ErrInvalidAnswer)
	}
	var claims struct {
		Email         string `json:"email"`
		EmailVerified truth  `json:"email_verified"`
	}
	if err := token.Claims(&claims); err != nil {
		return Identity{}, fmt.Errorf("%w: claims", ErrInvalidAnswer)
	}
	if token.Subject == "" || len(token.Subject) > 255 {
		return Identity{}, fmt.Errorf("%w: subject", ErrInvalidAnswer)
	}
	return Identity{Provider: a.Provider, Subject: token.Subject, Email: claims.Email,
		EmailVerified: bool(claims.EmailVerified) && claims.Email != ""}, nil
}

// truth is a boolean that some providers encode as a string.
type truth bool

// UnmarshalJSON decodes true and "true" as true, and everything else as false.
func (t *truth) UnmarshalJSON(b []byte) error {
	*t = string(b) == "true" || string(b) == `"true"`
	return nil
}

func (p *provider) client(found *gooidc.Provider, redirectURL string) *oauth2.Config {
	end := found.Endpoint()
	end.AuthStyle = p.style
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: end, RedirectURL: redirectURL,
		Scopes: p.Scopes}
}

func verifyError(err error) error {
	var overdue *gooidc.TokenExpiredError
	if errors.As(err, &overdue) {
		return fmt.Errorf("%w: the ID token has expired", ErrInvalidAnswer)
	}
	return fmt.Errorf("%w: the ID token cannot be verified", ErrInvalidAnswer)
}

// find returns the provider's endpoints and keys. It discovers them once. After a failure, it does not retry discovery
// for retryAfter, so that a provider that is down does not delay every visitor.
func (s *Service) find(ctx context.Context, id string) (*provider, *gooidc.Provider, error) {
	for _, p := range s.all {
		if p.ID == id {
			found, err := s.discover(ctx, p)
			return p, found, err
		}
	}
	return nil, nil, ErrUnknownProvider
}

func (s *Service) discover(ctx context.Context, p *provider) (*gooidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if !p.failed.IsZero() && s.now().Sub(p.failed) < retryAfter {
		return nil, p.cause
	}
	// This context is also used later to fetch the keys, so it must outlive the request.
	lasting := gooidc.ClientContext(context.WithoutCancel(ctx), s.http)
	found, err := gooidc.NewProvider(lasting, p.Issuer)
	if err == nil {
		err = checkEndpoints(found)
	}
	if err != nil {
		p.failed, p.cause = s.now(), discoveryError(err)
		return nil, p.cause
	}
	p.found, p.style, p.failed = found, secretStyle(found), time.Time{}
	return found, nil
}

// secretStyle returns how the provider expects the client secret; the default is the header (OpenID Connect
// Discovery 1.0, section 3). The library would otherwise try both, but a code must not be sent twice.
func secretStyle(found *gooidc.Provider) oauth2.AuthStyle {
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if found.Claims(&says) == nil && slices.Contains(says.Methods, "client_secret_post") && !slices.Contains(says.Methods,
		"client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}
