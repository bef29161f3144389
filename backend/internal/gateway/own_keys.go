package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// What pays for the calls of a project. Neither ever stands in for the other.
const (
	KeySourceCredit = "credit" // the account's credit, with the operator's keys
	KeySourceOwn    = "own"    // the project's own keys: their provider bills whoever they belong to
)

// Errors of own keys.
var (
	ErrNoOwnKey  = errors.New("the project has no key of its own for this provider")
	ErrKeySource = errors.New("the key source is credit or own")
)

// OwnKeys are the keys that projects keep, and whether they pay.
type OwnKeys interface {
	// KeySource returns KeySourceCredit or KeySourceOwn.
	KeySource(ctx context.Context, account, project string) (string, error)
	// OwnKey returns the project's key of a provider of credentials, or ErrNoOwnKey.
	OwnKey(ctx context.Context, account, project, provider string) (string, error)
	// OwnKeysSet returns the providers of credentials that the project has a key of.
	OwnKeysSet(ctx context.Context, account, project string) (map[string]bool, error)
	// OwnKeyRefused notes that the provider refused the project's key.
	OwnKeyRefused(ctx context.Context, account, project, provider string) error
}

// KeySourceStore keeps what pays for the calls of projects.
type KeySourceStore interface {
	KeySource(ctx context.Context, account, project string) (string, error)
	// SetKeySource sets it for the entry's project, or returns projects.ErrNotFound.
	SetKeySource(ctx context.Context, source string, e audit.Entry) error
}

// KeySources reads and changes what pays for the calls of projects.
type KeySources struct {
	Store KeySourceStore
	Now   func() time.Time
}

// KeySource returns KeySourceCredit or KeySourceOwn.
func (k KeySources) KeySource(ctx context.Context, account, project string) (string, error) {
	return k.Store.KeySource(ctx, account, project)
}

// SetKeySource changes it from the next call on. It returns ErrKeySource for any other word.
func (k KeySources) SetKeySource(ctx context.Context, account, project, source string, by audit.Actor) error {
	if source != KeySourceCredit && source != KeySourceOwn {
		return ErrKeySource
	}
	summary := "calls to models are paid from credit"
	if source == KeySourceOwn {
		summary = "calls to models are paid by the project's own keys"
	}
	e := audit.New(k.Now().UTC().Truncate(time.Millisecond), account, by, "gateway.key_source_changed", project, summary)
	if err := k.Store.SetKeySource(ctx, source, e); err != nil {
		return fmt.Errorf("set key source: %w", err)
	}
	return nil
}

// paysItself reports whether a project's own keys pay for its calls of a model. Local models cost nothing.
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

// whyNotOwn returns the reason for which projects cannot call a model with their own keys, or "".
func (m *Model) whyNotOwn() string {
	if m.Provider.OwnKeys != "" {
		return ""
	}
	return "this project pays with its own keys, and the operator takes none for " + m.Provider.Name
}

// takeOwnKey has the call use the project's key.
func (c *call) takeOwnKey(ctx context.Context) error {
	p := c.model.Provider
	text, err := c.s.OwnKeys.OwnKey(ctx, c.who.Account, c.who.Project, p.OwnKeys)
	switch {
	case errors.Is(err, ErrNoOwnKey):
		return refuse(CodeOwnKeyMissing, "this project pays with its own keys and has none for "+p.Name+
			": its owner stores one on the project's credentials page")
	case err != nil:
		return refusalOf(fmt.Errorf("read the project's own key: %w", err))
	}
	c.key = newKey(text)
	return nil
}

// refusesOwnKey reports whether a status means that the provider does not take the project's own key, or that its
// budget is spent.
func (c *call) refusesOwnKey(status int, spent bool) bool {
	return c.own && (spent || status == http.StatusUnauthorized || status == http.StatusForbidden ||
		status == http.StatusPaymentRequired)
}

// ownKeyRefused notes the refusal for the owner. Credit does not stand in.
func (c *call) ownKeyRefused(ctx context.Context) *Refusal {
	ctx, cancel := settleContext(ctx)
	defer cancel()
	p := c.model.Provider
	if err := c.s.OwnKeys.OwnKeyRefused(ctx, c.who.Account, c.who.Project, p.OwnKeys); err != nil {
		c.s.Log.ErrorContext(ctx, "failed to note a refused key", "provider", p.ID, "err", err)
	}
	return refuse(CodeOwnKeyRefused, p.Name+" refused this project's own key, or its budget there is spent: its owner "+
		"tests or replaces it on the project's credentials page")
}
