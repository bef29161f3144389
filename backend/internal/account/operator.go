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
	a, err = s.store.AccountByEmail(ctx, strings.ToLower(idOrEmail))
	if errors.Is(err, ErrBadCredentials) {
		return Account{}, ErrNotFound
	}
	return a, err
}

// Suspend shuts the account: nobody signs in to it and its links are refused, until Restore. It tells whether it was
// open.
func (s *Service) Suspend(ctx context.Context, accountID string, by audit.Actor) (bool, error) {
	return s.store.SetActive(ctx, false, s.entry(accountID, by, "account.suspended", "suspended the account"), s.trace(audit.TrailSuspend))
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

// LinkMade mails the account's person that an agent was linked. Where no mail is sent the log has said so already.
func (s *Service) LinkMade(ctx context.Context, accountID string, l NewLink) {
	if !s.CanMail() {
		return
	}
	s.tell(ctx, accountID, func(a Account) mail.Message { return newLinkMail(a, l, s.SiteURL+"/account") })
}
