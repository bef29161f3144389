package credentials

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// LinkTTL is how long a paste link is valid.
const LinkTTL = 15 * time.Minute

// maxLinks is the maximum number of valid paste links per project. Older ones are deleted.
const maxLinks = 20

const linkKind = "credential link"

// Options configure a Service.
type Options struct {
	Store  *Store
	Hasher secret.Hasher
	// Keys encrypt values. Without keys no value can be stored, but existing credentials can be listed.
	Keys      Keys
	Providers Catalogue
	// HTTP is used for tests of credentials. The default client follows no redirects.
	HTTP *http.Client
	Now  func() time.Time
	Log  *slog.Logger
}

// Service stores credentials. Create one with New.
type Service struct{ o Options }

// New returns a service. It uses defaults for the options that o leaves unset.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.HTTP = withoutRedirects(o.HTTP)
	return &Service{o}
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Truncate(time.Millisecond) }

// Providers lists the providers in the operator's order.
func (s *Service) Providers() []Provider {
	all := make([]Provider, len(s.o.Providers.list))
	for i, p := range s.o.Providers.list {
		all[i] = p.Provider
	}
	return all
}

// Knows reports whether the provider exists.
func (s *Service) Knows(provider string) bool {
	_, ok := s.o.Providers.find(provider)
	return ok
}

// Configured reports whether there is an encryption key.
func (s *Service) Configured() bool { return !s.o.Keys.Empty() }

// Status lists every provider and reports whether the project's credential for it is set. It needs no encryption key.
func (s *Service) Status(ctx context.Context, account, project string) ([]Credential, error) {
	stored, err := s.o.Store.Credentials(ctx, account, project)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	byProvider := map[string]Stored{}
	for _, c := range stored {
		byProvider[c.Provider] = c
	}
	var all []Credential
	for _, p := range s.Providers() {
		c, set := byProvider[p.ID]
		if !set {
			all = append(all, Credential{Provider: p})
			continue
		}
		all = append(all, Credential{Provider: p, Set: true, Hint: c.Hint, SetAt: c.SetAt, SetBy: setBy(c.RequestedBy,
			c.AskedOn),
			TestedAt: c.TestedAt, TestResult: c.TestResult})
	}
	return all, nil
}

func setBy(requestedBy, host string) string {
	if requestedBy == "" {
		return "you"
	}
	return "you, asked by " + agentOn(host)
}

func agentOn(host string) string {
	if host == "" {
		return "an agent"
	}
	return "the agent on " + host
}

// NewLink creates a link to a page on which the account holder pastes one credential. Only a hash of the link's ID is
// stored.
func (s *Service) NewLink(ctx context.Context, account, project, provider string, by audit.Actor) (Link, error) {
	if !s.Configured() {
		return Link{}, ErrNotConfigured
	}
	p, ok := s.o.Providers.find(provider)
	if !ok {
		return Link{}, ErrUnknownProvider
	}
	now := s.now()
	l := Link{ID: secret.New(credential.Credential), Project: project, Provider: p.Provider, ExpiresAt: now.Add(LinkTTL)}
	stored := StoredLink{Hash: s.o.Hasher.Hash(linkKind, l.ID), AccountID: account, Project: project, Provider: provider,
		RequestedBy: by.LinkID, CreatedAt: now, ExpiresAt: l.ExpiresAt}
	entry := audit.New(now, account, by, "credential.link", project, "link to paste the key of "+p.Name)
	if err := s.o.Store.AddCredentialLink(ctx, stored, maxLinks, entry); err != nil {
		return Link{}, fmt.Errorf("save link: %w", err)
	}
	return l, nil
}

// Link returns a valid link of the account. It returns ErrUnknownLink for a link of another account and for a used or
// expired link.
func (s *Service) Link(ctx context.Context, account, linkID string) (Link, error) {
	if !secret.Valid(credential.Credential, linkID) {
		return Link{}, ErrUnknownLink
	}
	l, err := s.o.Store.CredentialLink(ctx, s.o.Hasher.Hash(linkKind, linkID), s.now())
	if err != nil {
		return Link{}, fmt.Errorf("read link: %w", err)
	}
	p, known := s.o.Providers.find(l.Provider)
	if l.AccountID != account || !known {
		return Link{}, ErrUnknownLink
	}
	link := Link{ID: linkID, Project: l.Project, Provider: p.Provider, ExpiresAt: l.ExpiresAt}
	if l.RequestedBy != "" {
		link.AskedBy = agentOn(l.AskedOn)
	}
	return link, nil
}

// Set stores a value and replaces any earlier one. If the value was entered through a paste link, linkID is the ID of
// that link, and Set consumes it; otherwise linkID is empty. It returns ErrNotConfigured, ErrUnknownProvider,
// ErrUnknownLink or an *InvalidError; the error never contains the value.
func (s *Service) Set(ctx context.Context, account, project, provider, value, linkID string, by audit.Actor) error {
	if !s.Configured() {
		return ErrNotConfigured
	}
	p, ok := s.o.Providers.find(provider)
	if !ok {
		return ErrUnknownProvider
	}
	linkHash := ""
	if linkID != "" {
		if !secret.Valid(credential.Credential, linkID) {
			return ErrUnknownLink
		}
		linkHash = s.o.Hasher.Hash(linkKind, linkID)
	}
	value, err := p.check(value)
	if err != nil {
		return err
	}
	return s.put(ctx, credentialOf(account, project, provider), value, linkHash, p.Name, by)
}

// put encrypts and stores a value. name is the name of the key's owner, for display.
func (s *Service) put(ctx context.Context, o owner, value, linkHash, name string, by audit.Actor) error {
	e, err := s.o.Keys.seal(o, value)
	if err != nil {
		return err
	}
	now := s.now()
	c := Stored{AccountID: o.account, Project: o.project, Provider: o.name, SealedFor: o.project,
		Sealed: e.sealed, Wrapped: e.wrapped, KeyID: e.keyID, Hint: hint(value), SetAt: now}
	entry := audit.New(now, o.account, by, "credential.set", o.project, "key of "+name+" set")
	if err := s.o.Store.PutCredential(ctx, c, linkHash, entry); err != nil {
		return fmt.Errorf("save credential: %w", err)
	}
	return nil
}

// Remove deletes a credential, or returns ErrNotSet. It needs no encryption key, and also works for providers that are
// no longer listed.
func (s *Service) Remove(ctx context.Context, account, project, provider string, by audit.Actor) error {
	p, _ := s.o.Providers.find(provider)
	return s.remove(ctx, account, project, provider, cmp.Or(p.Name, provider), by)
}

// remove deletes a credential that the audit log calls name.
func (s *Service) remove(ctx context.Context, account, project, provider, name string, by audit.Actor) error {
	entry := audit.New(s.now(), account, by, "credential.removed", project, "key of "+name+" removed")
	if err := s.o.Store.DeleteCredential(ctx, account, project, provider, entry); err != nil {
		return fmt.Errorf("remove credential: %w", err)
	}
	return nil
}

// Open returns the decrypted value. Use it only for calls to the provider. It returns ErrNotSet, ErrNotConfigured or a
// *MissingKeyError on failure.
func (s *Service) Open(ctx context.Context, account, project, provider string) (string, error) {
	_, value, err := s.open(ctx, account, project, provider)
	return value, err
}

func (s *Service) open(ctx context.Context, account, project, provider string) (Stored, string, error) {
	c, err := s.o.Store.Credential(ctx, account, project, provider)
	if err != nil {
		return Stored{}, "", fmt.Errorf("read credential: %w", err)
	}
	value, err := s.o.Keys.open(credentialOf(account, c.SealedFor, provider), envelope{c.Sealed, c.Wrapped, c.KeyID})
	return c, value, err
}
