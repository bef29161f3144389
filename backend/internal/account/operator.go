package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/mail"
)

// Find gives an account, a suspended one too, by its id or e-mail address, for an operator: ErrNotFound.
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

// Suspend shuts the account: nobody signs in to it and its links are refused, until Restore. It tells whether it was
// open.
func (s *Service) Suspend(ctx context.Context, accountID string, by audit.Actor) (bool, error) {
	was, err := s.store.SetActive(ctx, false, s.entry(accountID, by, "account.suspended", "suspended the account"), s.trace(audit.TrailSuspend))
	if err == nil && was {
		s.ended(accountID)
	}
	return was, err
}

// Restore opens a suspended account again, with the links that it had. It tells whether it was suspended.
func (s *Service) Restore(ctx context.Context, accountID string, by audit.Actor) (bool, error) {
	return s.store.SetActive(ctx, true, s.entry(accountID, by, "account.restored", "restored the account"), s.trace(audit.TrailRestore))
}

func (s *Service) trace(action audit.TrailAction) audit.Trace {
	return audit.Trace{Action: action, At: s.now(), Ref: audit.NewTrailRef(s.hash.Hash)}
}

// NewLink is what an install that was linked says of itself, and when and from where it asked.
type NewLink struct {
	Host, OS, Client, Address string
	At                        time.Time
}

// linked is a link whose account's person is to be told.
type linked struct {
	accountID string
	link      NewLink
}

// LinkMade has the account's person mailed that an agent was linked. It never waits: Serve does the rest. Where no mail
// is sent the log has said so already.
func (s *Service) LinkMade(accountID string, l NewLink) {
	if !s.CanMail() {
		return
	}
	select {
	case s.linked <- linked{accountID, l}:
	default:
		s.log.Warn("a notice of a new link is dropped: too many wait", "account", accountID)
	}
}

func (s *Service) tellLinked(ctx context.Context, l linked) {
	s.tell(ctx, l.accountID, func(a Account) mail.Message { return newLinkMail(a, l.link, s.SiteURL+"/account") })
}
