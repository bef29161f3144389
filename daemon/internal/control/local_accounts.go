package control

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// LocalAccounts manages the accounts of the embedded backend. Its methods return a *backend.Problem if the caller uses
// another backend.
type LocalAccounts interface {
	// LocalAccounts returns all accounts, or only the account with the given email address.
	LocalAccounts(ctx context.Context, email string) ([]backend.LocalAccount, error)
	// ResetPassword also returns the page on which to sign in.
	ResetPassword(ctx context.Context, p backend.NewPassword) (reset backend.PasswordReset, signInURL string, err error)
}

// ListAccounts lists the accounts of the embedded backend, or only the account with the given email address.
func (s *Server) ListAccounts(ctx context.Context, r *controlv1.ListAccountsRequest) (*controlv1.ListAccountsResponse,
	error) {
	list, err := s.o.LocalAccounts.LocalAccounts(withCaller(ctx, r.GetCaller()), r.GetEmail())
	if err != nil {
		return nil, statusError(err)
	}
	messages := make([]*controlv1.LocalAccount, len(list))
	for i, a := range list {
		messages[i] = &controlv1.LocalAccount{AccountId: a.ID, Email: a.Email, Links: count(a.Links),
			Passkeys: count(a.Passkeys)}
	}
	return &controlv1.ListAccountsResponse{Accounts: messages}, nil
}

// ResetPassword sets a new password for an account of the embedded backend.
func (s *Server) ResetPassword(ctx context.Context,
	r *controlv1.ResetPasswordRequest) (*controlv1.ResetPasswordResponse, error) {
	reset, signIn, err := s.o.LocalAccounts.ResetPassword(withCaller(ctx, r.GetCaller()), backend.NewPassword{
		Email: r.GetEmail(), Password: r.GetPassword(),
		RevokeLinks: r.GetRevokeLinks(), RemovePasskeys: r.GetRemovePasskeys(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &controlv1.ResetPasswordResponse{
		AccountId: reset.AccountID, Browsers: count(reset.Browsers), Links: count(reset.Links),
		Passkeys: count(reset.Passkeys), SignInUrl: signIn,
	}, nil
}
