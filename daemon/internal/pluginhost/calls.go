package pluginhost

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/service-dev/service/daemon/internal/backend"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// callTimeout bounds one call; an adapter's own network timeouts are shorter.
const callTimeout = 30 * time.Second

// method is one RPC of a generated client.
type method[Client, Req, Resp any] func(Client, context.Context, *Req, ...grpc.CallOption) (*Resp, error)

// call calls the adapter of t's backend. On failure it returns a *backend.Problem, or ctx's error if the caller gave
// up, and a nil reply, which the generated getters accept.
func call[Req, Resp any](
	ctx context.Context, h *Host, t backend.Target, m method[pluginv1.BackendClient, Req, Resp], req *Req,
) (*Resp, error) {
	inst, done, err := h.backendOf(ctx, t)
	if err != nil {
		return nil, err
	}
	defer done()
	h.addNetwork(req)
	return invoke(ctx, h, t, callTimeout, func(ctx context.Context) (*Resp, error) { return m(inst.rpc, ctx, req) }, inst)
}

// backendOf returns the running adapter of t's backend, and starts it if necessary. The caller must call done after
// its call.
func (h *Host) backendOf(ctx context.Context, t backend.Target) (inst *instance, done func(), err error) {
	inst, done, err = h.pick(t).get(ctx)
	if err != nil {
		return nil, nil, err
	}
	if t.BaseURL != backend.EmbeddedURL && strings.HasPrefix(t.BaseURL, backend.EmbeddedURL) &&
		t.BaseURL != inst.about.GetEmbeddedId() {
		done()
		return nil, nil, embeddedReset()
	}
	return inst, done, nil
}

// invoke makes one RPC to the last of the instances, which may call the ones before it. The caller must have reserved
// them (instance.use). It returns the same errors as call.
func invoke[Resp any](
	ctx context.Context, h *Host, t backend.Target, limit time.Duration, rpc func(context.Context) (*Resp, error),
	on ...*instance,
) (*Resp, error) {
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := rpc(inner)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		err = problemOf(inner, on[len(on)-1].name, err)
		var p *backend.Problem
		isProblem := errors.As(err, &p)
		for _, inst := range on {
			if inst.isAtFault(isProblem && p.Code == backend.CodeUnreachable) {
				return nil, stuckProblem(inst.name)
			}
		}
		if isProblem && p.DeviceCode != nil {
			p.DeviceCode.SignInWord = on[0].about.GetSignInWord()
		}
		resp = nil
	}
	h.contacts.record(t.BaseURL, err, h.now())
	if p := (*backend.Problem)(nil); errors.As(err, &p) && p.Code == backend.CodeUnreachable && h.opts.Explain != nil {
		h.opts.Explain(ctx, t.BaseURL, p)
	}
	return resp, err
}

// embeddedReset returns the refusal to send one embedded backend's token to its successor, which has other data.
func embeddedReset() *backend.Problem {
	return &backend.Problem{
		Code:    backend.CodeAuthRequired,
		Message: "the link belongs to an embedded backend that was reset",
		FixHint: "Link the account again: a new embedded backend has replaced the one that issued the link.",
	}
}

// IssueDeviceCode starts a device-code flow.
func (h *Host) IssueDeviceCode(ctx context.Context, t backend.Target, scope string) (backend.DeviceCode, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.IssueDeviceCode,
		&pluginv1.IssueDeviceCodeRequest{Target: target(t), Scope: scope})
	if err != nil {
		return backend.DeviceCode{}, err
	}
	code := deviceCode(r.GetDeviceCode())
	if inst := h.pick(t).running(); inst != nil {
		code.SignInWord = inst.about.GetSignInWord()
	}
	return code, nil
}

// PollDeviceToken polls a code once.
func (h *Host) PollDeviceToken(ctx context.Context, t backend.Target, code string) (backend.Poll, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.PollDeviceToken,
		&pluginv1.PollDeviceTokenRequest{Target: target(t), DeviceCode: code})
	if err != nil {
		return backend.Poll{}, err
	}
	tok := r.GetToken()
	if tok == nil {
		return backend.Poll{PollInterval: seconds(r.GetPending().GetPollIntervalSeconds())}, nil
	}
	acc, err := account(tok.GetAccountId(), tok.GetTier(), tok.GetLinkedAt(), tok.ExpiresAt)
	if err != nil {
		return backend.Poll{}, err
	}
	return backend.Poll{Token: &backend.Token{AuthToken: tok.GetAuthToken(), Account: acc}}, nil
}

// CancelDeviceCode cancels a code that will not be polled again.
func (h *Host) CancelDeviceCode(ctx context.Context, t backend.Target, code string) error {
	_, err := call(ctx, h, t, pluginv1.BackendClient.CancelDeviceCode,
		&pluginv1.CancelDeviceCodeRequest{Target: target(t), DeviceCode: code})
	return err
}

// Account returns the account that the target's bearer token belongs to.
func (h *Host) Account(ctx context.Context, t backend.Target) (backend.Account, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.GetAccount, &pluginv1.GetAccountRequest{Target: target(t)})
	if err != nil {
		return backend.Account{}, err
	}
	a, err := account(r.GetAccountId(), r.GetTier(), r.GetLinkedAt(), r.ExpiresAt)
	a.Email = r.GetEmail()
	return a, err
}

// LocalAccounts returns the accounts of the embedded backend, which it starts if necessary. With an email address it
// returns only the matching account, or none.
func (h *Host) LocalAccounts(ctx context.Context, email string) ([]backend.LocalAccount, error) {
	r, err := call(ctx, h, embedded(), pluginv1.BackendClient.ListAccounts, &pluginv1.ListAccountsRequest{Email: email})
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

// ResetPassword sets a new password for an account of the embedded backend, which it starts if necessary.
func (h *Host) ResetPassword(ctx context.Context, p backend.NewPassword) (backend.PasswordReset, error) {
	r, err := call(ctx, h, embedded(), pluginv1.BackendClient.ResetPassword, &pluginv1.ResetPasswordRequest{
		Email: p.Email, Password: p.Password, RevokeLinks: p.RevokeLinks, RemovePasskeys: p.RemovePasskeys,
	})
	return backend.PasswordReset{AccountID: r.GetAccountId(), Browsers: int(r.GetBrowsers()), Links: int(r.GetLinks()),
		Passkeys: int(r.GetPasskeys())}, err
}

// embedded is the target of calls about the embedded backend itself.
func embedded() backend.Target { return backend.Target{BaseURL: backend.EmbeddedURL} }

// RevokeLink revokes the target's own bearer token.
func (h *Host) RevokeLink(ctx context.Context, t backend.Target) error {
	_, err := call(ctx, h, t, pluginv1.BackendClient.RevokeLink, &pluginv1.RevokeLinkRequest{Target: target(t)})
	return err
}

// Health returns the health reported by the backend.
func (h *Host) Health(ctx context.Context, t backend.Target) (backend.Health, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.Health, &pluginv1.HealthRequest{Target: target(t)})
	return backend.Health{
		OK: r.GetOk(), Service: r.GetService(), Version: r.GetVersion(), Commit: r.GetCommit(), BuiltAt: r.GetBuiltAt(),
		Phase: r.GetPhase(), Uptime: time.Duration(r.GetUptimeMs()) * time.Millisecond, Hints: r.GetHints(),
	}, err
}

// MintProjectKey creates a key labelled name for a project of the linked account.
func (h *Host) MintProjectKey(ctx context.Context, t backend.Target, project, name string) (backend.ProjectKey, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.MintProjectKey,
		&pluginv1.MintProjectKeyRequest{Target: target(t), Project: project, Name: name})
	if err != nil {
		return backend.ProjectKey{}, err
	}
	return backend.ProjectKey{
		Key: r.GetProjectKey(), Hint: r.GetHint(), CreatedAt: time.UnixMilli(r.GetCreatedAt()).UTC(),
	}, nil
}

// Activity reports what keeps the running adapters busy. It does not start adapters. An adapter that does not respond
// counts as idle.
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
