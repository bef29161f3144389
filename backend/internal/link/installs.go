package link

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// touchEvery is the minimum time between two recorded uses of a token.
const touchEvery = 5 * time.Minute

type addressKey struct{}

// WithAddress returns a context with the caller's address, which Authenticate records.
func WithAddress(ctx context.Context, ip string) context.Context {
	return context.WithValue(ctx, addressKey{}, ip)
}

func addressOf(ctx context.Context) string {
	ip, _ := ctx.Value(addressKey{}).(string)
	return ip[:min(len(ip), 64)]
}

// Links lists the account's active links, most recently used first, without token hashes.
func (s *Service) Links(ctx context.Context, accountID string) ([]Link, error) {
	return s.store.AccountLinks(ctx, accountID)
}

// AllLinks lists the account's links, including revoked ones, for operators.
func (s *Service) AllLinks(ctx context.Context, accountID string) ([]Link, error) {
	return s.store.AllLinks(ctx, accountID)
}

// AnyLink returns a link by its ID, for operators. It returns ErrUnknown for an unknown ID.
func (s *Service) AnyLink(ctx context.Context, linkID string) (Link, error) {
	return s.store.AnyLink(ctx, linkID)
}

// RevokeLink revokes one link of the account. Later calls with the link are answered with 401. It returns ErrUnknown
// if the account has no such link.
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

// RevokeAll revokes every link of the account and returns the number of revoked links.
func (s *Service) RevokeAll(ctx context.Context, accountID string, by audit.Actor) (int, error) {
	return s.revoke(ctx, "", audit.New(s.now(), accountID, by, "link.revoked", "", "revoked every link"))
}

func (s *Service) revoke(ctx context.Context, linkID string, e audit.Entry) (int, error) {
	n, err := s.store.RevokeLinks(ctx, linkID, e.At, e, s.trace(ctx, audit.TrailRevoke))
	if err != nil || n == 0 {
		return n, err
	}
	s.log.InfoContext(ctx, "links revoked", "account", e.AccountID, "count", n, "by", e.Actor.Kind)
	if s.Revoked != nil {
		s.Revoked(e.AccountID, linkID)
	}
	return n, nil
}
