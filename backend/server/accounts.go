package server

import (
	"context"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
)

// Errors of ResetPassword.
var (
	ErrNoAccount   = account.ErrNotFound
	ErrBadPassword = account.ErrBadPassword
	ErrSuspended   = account.ErrSuspended
)

// Account is an account of the backend, with the number of its live links and its passkeys.
type Account = account.Overview

// Ended counts the access that a new password ended.
type Ended = account.Ended

// NewPassword is a password to set without the old one. RevokeLinks and RemovePasskeys end further access.
type NewPassword struct {
	Email, Password             string
	RevokeLinks, RemovePasskeys bool
}

// Accounts returns up to account.MaxOverviews of the backend's accounts, oldest first. If email is not empty, it
// returns at most the account with that address.
func (s *Server) Accounts(ctx context.Context, email string) ([]Account, error) {
	return s.app.Accounts().Overviews(ctx, email)
}

// ResetPassword sets a new password for the owner of the data directory, and returns the account's ID. It returns
// ErrNoAccount, ErrBadPassword or ErrSuspended on failure.
func (s *Server) ResetPassword(ctx context.Context, p NewPassword) (accountID string, ended Ended, err error) {
	a, ended, err := s.app.Accounts().ReplacePassword(ctx, p.Email, p.Password,
		account.Access{Links: p.RevokeLinks, Passkeys: p.RemovePasskeys}, audit.Operator())
	return a.ID, ended, err
}
