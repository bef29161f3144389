package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

// Find returns the account with the ID or e-mail address, even if it is suspended. It is for operators. It returns
// ErrNotFound if no account matches.
func (s *Service) Find(ctx context.Context, idOrEmail string) (Account, error) {
	idOrEmail = strings.TrimSpace(idOrEmail)
	a, err := s.store.AccountByID(ctx, idOrEmail)
	if !errors.Is(err, ErrNotFound) {
		return a, err
	}
	a, err = s.byEmail(ctx, FoldEmail(idOrEmail))
	if errors.Is(err, ErrBadCredentials) {
		return Account{}, ErrNotFound
	}
	return a, err
}

// Suspend blocks sign-ins to the account and calls made with its links, until Restore is called. It reports whether
// the account was active.
func (s *Service) Suspend(ctx context.Context, accountID string, by audit.Actor) (bool, error) {
	was, err := s.store.SetActive(ctx, false, s.entry(accountID, by, "account.suspended", "suspended the account"),
		s.trace(audit.TrailSuspend))
	if err == nil && was {
		s.ended(accountID)
	}
	return was, err
}

// Restore reactivates a suspended account and its links. It reports whether the account was suspended.
func (s *Service) Restore(ctx context.Context, accountID string, by audit.Actor) (bool, error) {
	return s.store.SetActive(ctx, true, s.entry(accountID, by, "account.restored", "restored the account"),
		s.trace(audit.TrailRestore))
}

func (s *Service) trace(action audit.TrailAction) audit.Trace {
	return audit.Trace{Action: action, At: s.now(), Ref: audit.NewTrailRef(s.hash.Hash)}
}

// NewLink holds a newly linked install's description of itself, and the time and network address of its request.
type NewLink struct {
	Host, OS, Client, Address string
	At                        time.Time
}

// newLink is a NewLink together with its account.
type newLink struct {
	accountID string
	link      NewLink
}

// LinkMade queues a mail about an agent that was linked to the account. Serve sends it. LinkMade never blocks.
func (s *Service) LinkMade(accountID string, l NewLink) {
	if !s.CanMail() {
		return
	}
	select {
	case s.linked <- newLink{accountID, l}:
	default:
		s.log.Warn("dropped notice of a new link: queue is full", "account", accountID)
	}
}

func (s *Service) mailNewLink(ctx context.Context, l newLink) {
	s.sendNotice(ctx, l.accountID, func(a Account) mail.Message { return newLinkMail(a, l.link, s.SiteURL+"/account") })
}
