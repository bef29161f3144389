package backendlocal

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/backend/server"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/serve"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// ListAccounts lists the accounts of the embedded backend, or only the account with the address in the
// request.
func (l *local) ListAccounts(ctx context.Context, r *pluginv1.ListAccountsRequest) (*pluginv1.ListAccountsResponse,
	error) {
	s, err := l.started()
	if err != nil {
		return nil, err
	}
	list, err := s.Accounts(ctx, r.GetEmail())
	if err != nil {
		return nil, failed("list the accounts", err)
	}
	out := &pluginv1.ListAccountsResponse{}
	for _, a := range list {
		out.Accounts = append(out.Accounts, &pluginv1.LocalAccount{
			AccountId: a.ID, Email: a.Email, Links: uint32(a.Links), Passkeys: uint32(a.Passkeys),
		})
	}
	return out, nil
}

// ResetPassword sets a new password for an account of the embedded backend. The daemon and this process run as the
// owner of the data, who could change the database anyway.
func (l *local) ResetPassword(ctx context.Context, r *pluginv1.ResetPasswordRequest) (*pluginv1.ResetPasswordResponse,
	error) {
	s, err := l.started()
	if err != nil {
		return nil, err
	}
	id, ended, err := s.ResetPassword(ctx, server.NewPassword{
		Email: r.GetEmail(), Password: r.GetPassword(),
		RevokeLinks: r.GetRevokeLinks(), RemovePasskeys: r.GetRemovePasskeys(),
	})
	if err != nil {
		return nil, notReset(err)
	}
	return &pluginv1.ResetPasswordResponse{AccountId: id, Browsers: uint32(ended.Browsers), Links: uint32(ended.Links),
		Passkeys: uint32(ended.Passkeys)}, nil
}

// notReset returns the error for a password that could not be reset.
func notReset(err error) error {
	p := &pluginv1.Problem{}
	switch {
	case errors.Is(err, server.ErrNoAccount):
		p.Code, p.Message = problem.CodeAccountNotFound, "no account of the embedded backend has this e-mail address"
		p.FixHint = "Check the address; `servicectl account reset-password` without one names the accounts."
	case errors.Is(err, server.ErrBadPassword):
		p.Code, p.Message = problem.CodePasswordNotAccepted, err.Error()
		p.FixHint = "Choose another password."
	case errors.Is(err, server.ErrSuspended):
		p.Code, p.Message = problem.CodeAccountSuspended, "this account is suspended"
		p.FixHint = "Restore it first with `service-backend admin restore`."
	default:
		return failed("set the password", err)
	}
	return serve.Refuse(codes.FailedPrecondition, p)
}

// failed returns the error for a call that the embedded backend failed to execute.
func failed(what string, err error) error {
	return serve.Refuse(codes.Internal, &pluginv1.Problem{
		Code: "internal_error", Message: what + ": " + err.Error(), Retryable: true,
		FixHint: "Try again; `servicectl daemon logs` shows more.",
	})
}

// started returns the running embedded backend.
func (l *local) started() (*server.Server, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server == nil {
		return nil, serve.Refuse(codes.FailedPrecondition, &pluginv1.Problem{
			Code: problem.CodeAdapterUnavailable, Message: "the embedded backend was not started", Retryable: true,
		})
	}
	return l.server, nil
}
