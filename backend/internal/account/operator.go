package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

// Find returns an account by its id or e-mail address, for an operator. Suspended accounts are found too. It returns
// ErrNotFound if there is none.
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

// Suspend refuses sign-ins to the account and calls by its links until Restore. It reports whether the account was
// active.
func (s *Service) Suspend(ctx context.Context, accountID string, by audit.Actor) (bool, error) {
	was, err := s.store.SetActive(ctx, false, s.entry(accountID, by, "account.suspended", "suspended the account"),
		s.trace(audit.TrailSuspend))
	if err == nil && was {
		s.ended(accountID)
	}
	return was, err
}

// Restore reactivates a suspended account together with the links it had. It reports whether the account was
// suspended.
func (s *Service) Restore(ctx context.Context, accountID string, by audit.Actor) (bool, error) {
	return s.store.SetActive(ctx, true, s.entry(accountID, by, "account.restored", "restored the account"),
		s.trace(audit.TrailRestore))
}

func (s *Service) trace(action audit.TrailAction) audit.Trace {
	return audit.Trace{Action: action, At: s.now(), Ref: audit.NewTrailRef(s.hash.Hash)}
}

// NewLink holds what a newly linked install says about itself, and when and from where it asked.
type NewLink struct {
	Host, OS, Client, Address string
	At                        time.Time
}

// newLink is a NewLink together with its account.
type newLink struct {
	accountID string
	link      NewLink
}

// LinkMade queues a mail, sent by Serve, that an agent was linked to the account. It never blocks.
func (s *Service) LinkMade(accountID string, l NewLink) {
	if !s.CanMail() {
		return
	}
	select {
	case s.linked <- newLink{accountID, l}:
	default:
		s.log.Warn("dropped notice of a new link: too many are queued", "account", accountID)
	}
}

func (s *Service) mailNewLink(ctx context.Context, l newLink) {
	s.sendNotice(ctx, l.accountID, func(a Account) mail.Message { return newLinkMail(a, l.link, s.SiteURL+"/account") })
}
