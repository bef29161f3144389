package link

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// touchEvery is how often the use of a token is written down at most.
const touchEvery = 5 * time.Minute

// TokenStores is all that is kept of links.
type TokenStores interface {
	TokenStore
	InstallStore
	TrailStore
}

// InstallStore shows an account its links and revokes them.
type InstallStore interface {
	// AccountLinks lists the links that are not revoked, the last used first.
	AccountLinks(ctx context.Context, accountID string) ([]Link, error)
	// AllLinks lists those that were revoked too.
	AllLinks(ctx context.Context, accountID string) ([]Link, error)
	// AnyLink reads one by its id, a revoked one too: ErrUnknown.
	AnyLink(ctx context.Context, linkID string) (Link, error)
	// RevokeLinks revokes the live link of the entry's account with that id, or with linkID "" all of them, and counts
	// them; the entry is written when there was one.
	RevokeLinks(ctx context.Context, linkID string, now time.Time, e audit.Entry, t audit.Trace) (int, error)
}

type addressKey struct{}

// WithAddress notes in ctx where a call comes from, for Authenticate.
func WithAddress(ctx context.Context, ip string) context.Context {
	return context.WithValue(ctx, addressKey{}, ip)
}

func addressOf(ctx context.Context) string {
	ip, _ := ctx.Value(addressKey{}).(string)
	return ip[:min(len(ip), 64)]
}

// Links lists the account's live links, the last used first. They hold no hash of a token.
func (s *Service) Links(ctx context.Context, accountID string) ([]Link, error) {
	return s.tokens.AccountLinks(ctx, accountID)
}

// AllLinks lists the account's links, those that were revoked too, for an operator.
func (s *Service) AllLinks(ctx context.Context, accountID string) ([]Link, error) {
	return s.tokens.AllLinks(ctx, accountID)
}

// AnyLink reads one link by its id, for an operator: ErrUnknown.
func (s *Service) AnyLink(ctx context.Context, linkID string) (Link, error) {
	return s.tokens.AnyLink(ctx, linkID)
}

// RevokeLink revokes one link of the account: its next call gets 401. ErrUnknown.
func (s *Service) RevokeLink(ctx context.Context, accountID, linkID string, by audit.Actor) error {
	if linkID == "" {
		return ErrUnknown
	}
	summary := "revoked a link"
	if by.LinkID == linkID {
		summary = "logged out: revoked its own link"
	}
	n, err := s.revoke(ctx, linkID, audit.New(s.now(), accountID, by, "link.revoked", "", summary))
	if err == nil && n == 0 {
		return ErrUnknown
	}
	return err
}

// RevokeAll revokes every link of the account and counts them.
func (s *Service) RevokeAll(ctx context.Context, accountID string, by audit.Actor) (int, error) {
	return s.revoke(ctx, "", audit.New(s.now(), accountID, by, "link.revoked", "", "revoked every link"))
}

func (s *Service) revoke(ctx context.Context, linkID string, e audit.Entry) (int, error) {
	n, err := s.tokens.RevokeLinks(ctx, linkID, e.At, e, s.trace(ctx, audit.TrailRevoke))
	if err != nil || n == 0 {
		return n, err
	}
	s.log.InfoContext(ctx, "links revoked", "account", e.AccountID, "count", n, "by", e.Actor.Kind)
	if s.Revoked != nil {
		s.Revoked(e.AccountID, linkID)
	}
	return n, nil
}
