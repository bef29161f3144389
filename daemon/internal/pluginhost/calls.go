package pluginhost

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// callTimeout bounds one call. An adapter's own network timeouts are shorter.
const callTimeout = 30 * time.Second

// call makes one RPC about t's backend to an adapter, starting the adapter if necessary. On failure it returns a
// *problem.Error, or ctx's error if the caller gave up. The reply is then nil, which the generated getters accept.
func call[Resp any](
	ctx context.Context, h *Host, a *adapter, t backend.Target, limit time.Duration,
	rpc func(context.Context, pluginv1.BackendClient) (*Resp, error),
) (*Resp, error) {
	inst, done, err := a.get(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if t.BaseURL != backend.EmbeddedURL && strings.HasPrefix(t.BaseURL, backend.EmbeddedURL) &&
		t.BaseURL != inst.about.GetEmbeddedId() {
		return nil, embeddedReset()
	}
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := rpc(inner, inst.rpc)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		err = problemOf(inner, inst.name, err)
		if inst.isAtFault(problem.CodeOf(err) == problem.CodeBackendUnreachable) {
			return nil, stuckProblem(inst.name)
		}
		if refused := (*backend.AuthRequired)(nil); errors.As(err, &refused) {
			refused.DeviceCode.SignInWord = inst.about.GetSignInWord()
		}
		resp = nil
	}
	h.contacts.record(t.BaseURL, err, h.now())
	if p := problem.From(err); p != nil && p.Code == problem.CodeBackendUnreachable && h.opts.Explain != nil {
		h.opts.Explain(ctx, t.BaseURL, p)
	}
	return resp, err
}

// embeddedReset returns the error of a call whose token belongs to an earlier embedded backend. The token is not sent
// to the current one, which has other data.
func embeddedReset() *problem.Error {
	return &problem.Error{
		Code:    problem.CodeAuthRequired,
		Message: "the link belongs to an embedded backend that was reset",
		FixHint: "Link the account again: a new embedded backend has replaced the one that issued the link.",
	}
}

// IssueDeviceCode starts a device-code flow.
func (h *Host) IssueDeviceCode(ctx context.Context, t backend.Target, scope string) (backend.DeviceCode, error) {
	r, err := fetch[backendapi.DeviceCode](ctx, h, t,
		request{route: backendapi.RouteIssueCode, body: backendapi.DeviceCodeRequest{Scope: scope}})
	if err != nil {
		return backend.DeviceCode{}, err
	}
	code := deviceCode(r)
	if inst := h.pick(t).running(); inst != nil {
		code.SignInWord = inst.about.GetSignInWord()
	}
	return code, nil
}

// PollDeviceToken polls a code once.
func (h *Host) PollDeviceToken(ctx context.Context, t backend.Target, code string) (backend.Poll, error) {
	r, err := fetch[backendapi.TokenAnswer](ctx, h, t,
		request{route: backendapi.RoutePollCode, body: backendapi.TokenRequest{DeviceCode: code}})
	if err != nil || r.Token == nil {
		return backend.Poll{PollInterval: seconds(r.PollIntervalSeconds)}, err
	}
	return backend.Poll{Token: &backend.Token{AuthToken: r.AuthToken, Account: account(r.Account)}}, nil
}

// CancelDeviceCode cancels a code that will not be polled again.
func (h *Host) CancelDeviceCode(ctx context.Context, t backend.Target, code string) error {
	_, err := h.send(ctx, t, request{route: backendapi.RouteCancelCode, body: backendapi.TokenRequest{DeviceCode: code}})
	return err
}

// Account returns the account of the target's bearer token.
func (h *Host) Account(ctx context.Context, t backend.Target) (backend.Account, error) {
	a, err := fetch[backendapi.Account](ctx, h, t, request{route: backendapi.RouteAccount})
	return account(a), err
}

// LocalAccounts returns the accounts of the embedded backend, starting the backend if necessary. With an email address,
// it returns only the matching account, if any.
func (h *Host) LocalAccounts(ctx context.Context, email string) ([]backend.LocalAccount, error) {
	r, err := call(ctx, h, h.adapters[Local], embedded, callTimeout,
		func(ctx context.Context, c pluginv1.BackendClient) (*pluginv1.ListAccountsResponse, error) {
			return c.ListAccounts(ctx, &pluginv1.ListAccountsRequest{Email: email})
		})
	if err != nil {
		return nil, err
	}
	var list []backend.LocalAccount
	for _, a := range r.GetAccounts() {
		list = append(list, backend.LocalAccount{ID: a.GetAccountId(), Email: a.GetEmail(), Links: int(a.GetLinks()),
			Passkeys: int(a.GetPasskeys())})
	}
	return list, nil
}

// ResetPassword sets a new password for an account of the embedded backend, starting the backend if necessary.
func (h *Host) ResetPassword(ctx context.Context, p backend.NewPassword) (backend.PasswordReset, error) {
	req := &pluginv1.ResetPasswordRequest{
		Email: p.Email, Password: p.Password, RevokeLinks: p.RevokeLinks, RemovePasskeys: p.RemovePasskeys,
	}
	r, err := call(ctx, h, h.adapters[Local], embedded, callTimeout,
		func(ctx context.Context, c pluginv1.BackendClient) (*pluginv1.ResetPasswordResponse, error) {
			return c.ResetPassword(ctx, req)
		})
	return backend.PasswordReset{AccountID: r.GetAccountId(), Browsers: int(r.GetBrowsers()), Links: int(r.GetLinks()),
		Passkeys: int(r.GetPasskeys())}, err
}

// embedded is the target of calls about the embedded backend itself.
var embedded = backend.Target{BaseURL: backend.EmbeddedURL}

// RevokeLink revokes the target's bearer token.
func (h *Host) RevokeLink(ctx context.Context, t backend.Target) error {
	if t.Bearer == "" { // the backend would answer with a new device code
		return problem.New(problem.CodeInvalidRequest, "no token to revoke", "Set the token as the target's bearer.")
	}
	_, err := h.send(ctx, t, request{route: backendapi.RouteRevokeLink})
	return err
}

// Health returns the health that the backend reports. It needs no credential.
func (h *Host) Health(ctx context.Context, t backend.Target) (backend.Health, error) {
	r, err := fetch[backendapi.Health](ctx, h, backend.Target{BaseURL: t.BaseURL}, request{route: backendapi.RouteHealth})
	return backend.Health{
		OK: r.OK, Service: r.Service, Version: r.Version, Commit: r.Commit, BuiltAt: r.BuiltAt, Phase: r.Phase,
		Uptime: time.Duration(r.UptimeMs) * time.Millisecond, Hints: r.Hints,
	}, err
}

// Activity returns the numbers of connections and pending codes that keep the running adapters busy. It does not start
// adapters. An adapter that does not respond counts as idle.
func (h *Host) Activity(ctx context.Context) (connections, pendingCodes int) {
	for _, a := range h.adapters {
		inst := a.running()
		if inst == nil || inst.rpc == nil {
			continue
		}
		inner, cancel := context.WithTimeout(ctx, 2*time.Second)
		r, err := inst.rpc.Activity(inner, &pluginv1.ActivityRequest{})
		cancel()
		if err == nil {
			connections += int(r.GetConnections())
			pendingCodes += int(r.GetPendingCodes())
		}
	}
	return connections, pendingCodes
}
