package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/internal/problem"
)

// The ways to pay for a project's calls. The gateway never falls back from one to the other.
const (
	KeySourceCredit = "credit" // the account's credit; calls use the operator's keys
	KeySourceOwn    = "own"    // the project's own keys; the provider bills their owner
)

// Errors of a project's own keys.
var (
	ErrNoOwnKey  = errors.New("the project has stored no key for this provider")
	ErrKeySource = errors.New("the key source must be credit or own")
)

// OwnKeys provides the keys that projects store, and reports whether they pay for calls.
type OwnKeys struct {
	KeySources
	Credentials *credentials.Service
}

// key returns the project's key of a credential provider, or ErrNoOwnKey.
func (k *OwnKeys) key(ctx context.Context, account, project, provider string) (string, error) {
	value, err := k.Credentials.Open(ctx, account, project, provider)
	if errors.Is(err, credentials.ErrNotSet) {
		err = ErrNoOwnKey
	}
	return value, err
}

// stored returns the credential providers for which the project has a key.
func (k *OwnKeys) stored(ctx context.Context, account, project string) (map[string]bool, error) {
	all, err := k.Credentials.Status(ctx, account, project)
	set := map[string]bool{}
	for _, c := range all {
		set[c.Provider.ID] = c.Set
	}
	return set, err
}

// KeySources reads and changes the key sources of projects.
type KeySources struct {
	Store *Store
	Now   func() time.Time
}

// KeySource returns a project's key source, KeySourceCredit or KeySourceOwn.
func (k KeySources) KeySource(ctx context.Context, account, project string) (string, error) {
	return k.Store.KeySource(ctx, account, project)
}

// SetKeySource changes the key source, starting with the next call. It returns ErrKeySource for an unknown source.
func (k KeySources) SetKeySource(ctx context.Context, account, project, source string, by audit.Actor) error {
	if source != KeySourceCredit && source != KeySourceOwn {
		return ErrKeySource
	}
	summary := "calls to models are paid with credit"
	if source == KeySourceOwn {
		summary = "calls to models are paid with the project's own keys"
	}
	e := audit.New(k.Now().UTC().Truncate(time.Millisecond), account, by, "gateway.key_source_changed", project, summary)
	if err := k.Store.SetKeySource(ctx, source, e); err != nil {
		return fmt.Errorf("set key source: %w", err)
	}
	return nil
}

// paysItself reports whether a project's own keys pay for its calls to a model. Local models cost nothing.
func (s *Service) paysItself(ctx context.Context, who Caller, m *Model) (bool, error) {
	if s.OwnKeys == nil || m.Provider.Local {
		return false, nil
	}
	source, err := s.OwnKeys.KeySource(ctx, who.Account, who.Project)
	if err != nil {
		return false, refusalOf(err)
	}
	return source == KeySourceOwn, nil
}

// whyNotOwn returns the reason why projects cannot call a model with their own keys, or "".
func (m *Model) whyNotOwn() string {
	if m.Provider.OwnKeys != "" {
		return ""
	}
	return "this project pays with its own keys, and the operator accepts none for " + m.Provider.Name
}

// takeOwnKey sets the project's own key for the call.
func (c *call) takeOwnKey(ctx context.Context) error {
	p := c.model.Provider
	text, err := c.s.OwnKeys.key(ctx, c.who.Account, c.who.Project, p.OwnKeys)
	switch {
	case errors.Is(err, ErrNoOwnKey):
		return Refuse(problem.CodeOwnKeyMissing, "this project pays with its own keys and has none for "+p.Name+
			": its owner stores one on the project's credentials page")
	case err != nil:
		return refusalOf(fmt.Errorf("read the project's own key: %w", err))
	}
	c.key = newKey(text)
	return nil
}

// refusesOwnKey reports whether a status means that the provider rejected the project's own key or that the key's
// budget is spent.
func (c *call) refusesOwnKey(status int, spent bool) bool {
	return c.own && (spent || status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusPaymentRequired)
}

// ownKeyRefused records for the owner that the provider refused the key, and returns the refusal.
// Credit does not pay for the call instead.
func (c *call) ownKeyRefused(ctx context.Context) *Refusal {
	ctx, cancel := settleContext(ctx)
	defer cancel()
	p := c.model.Provider
	if err := c.s.OwnKeys.Credentials.NoteRefused(ctx, c.who.Account, c.who.Project, p.OwnKeys); err != nil {
		c.s.Log.ErrorContext(ctx, "failed to record refused key", "provider", p.ID, "err", err)
	}
	return Refuse(problem.CodeOwnKeyRefused,
		p.Name+" refused this project's own key, or its budget there is spent: its owner "+
			"can test or replace it on the project's credentials page")
}
