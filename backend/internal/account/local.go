package account

import (
	"context"
	"errors"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
)

// MaxOverviews bounds the result of Overviews.
const MaxOverviews = 50

// Overview is an account with the number of its live links and its passkeys.
type Overview struct {
	ID, Email       string
	Links, Passkeys int
}

// Ended counts the browsers, links and passkeys that lost access because of a new password.
type Ended struct{ Browsers, Links, Passkeys int }

// Overviews returns up to MaxOverviews accounts, oldest first. If email is not empty, it returns at most the account
// with that address. It is for the owner of the database.
func (s *Service) Overviews(ctx context.Context, email string) ([]Overview, error) {
	if email == "" {
		return s.store.AccountOverviews(ctx, "", MaxOverviews)
	}
	a, err := s.byEmail(ctx, FoldEmail(email))
	if errors.Is(err, ErrBadCredentials) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.store.AccountOverviews(ctx, a.Email, 1)
}

// ReplacePassword sets a new password without the current one and without a mailed link, for the owner of the database.
// It signs out every browser and revokes only the access that revoke selects. It also restores the allowance of
// password guesses, because a user who forgot the password has usually spent it. It returns ErrNotFound, ErrBadPassword
// or ErrSuspended.
func (s *Service) ReplacePassword(ctx context.Context, email, newPass string, revoke Access, by audit.Actor) (Account,
	Ended, error) {
	a, err := s.byEmail(ctx, FoldEmail(email))
	if errors.Is(err, ErrBadCredentials) {
		err = ErrNotFound
	}
	if err != nil {
		return Account{}, Ended{}, err
	}
	hashed, err := newPassword(ctx, newPass)
	if err != nil {
		return Account{}, Ended{}, err
	}
	summary := "set a new password on the backend's computer"
	if names := revoke.names(); len(names) > 0 {
		summary += "; removed " + strings.Join(names, ", ")
	}
	e := s.entry(a.ID, by, "account.password_changed", "%s", summary)
	ended, err := s.store.ReplacePassword(ctx, hashed, revoke, s.now(), e, s.trace(audit.TrailRevoke))
	if err != nil {
		return Account{}, Ended{}, err
	}
	s.ended(a.ID)
	for _, of := range []allowance{s.signInAllowance(a.Email, ""), s.ownAllowance(a.ID)} {
		if err := s.store.ReturnGuess(ctx, of.key, s.now(), maxGuesses*of.every); err != nil {
			s.log.WarnContext(ctx, "failed to restore guesses at the password", "account", a.ID, "err", err)
		}
	}
	s.notice(ctx, passwordChangedMail(a))
	return a, ended, nil
}
