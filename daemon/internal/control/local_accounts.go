package control

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	api "github.com/service-dev/service/proto/control"
)

// listAccounts lists the embedded backend's accounts, or only the account with the given email address.
func (s *Server) listAccounts(ctx context.Context, r api.AccountsRequest) (api.Accounts, error) {
	list, err := s.o.Daemon.LocalAccounts(ctx, r.Email)
	out := make([]api.LocalAccount, len(list))
	for i, a := range list {
		out[i] = api.LocalAccount{AccountID: a.ID, Email: a.Email, Links: a.Links, Passkeys: a.Passkeys}
	}
	return api.Accounts{Accounts: out}, err
}

// resetPassword sets a new password for an account of the embedded backend.
func (s *Server) resetPassword(ctx context.Context, r api.PasswordRequest) (api.PasswordReset, error) {
	reset, signIn, err := s.o.Daemon.ResetPassword(ctx, backend.NewPassword(r))
	return api.PasswordReset{
		AccountID: reset.AccountID, Email: r.Email, BrowsersSignedOut: reset.Browsers, LinksRevoked: reset.Links,
		PasskeysRemoved: reset.Passkeys, SignInURL: signIn,
	}, err
}
