package pluginhost

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// callTimeout bounds one call; an adapter's own network timeouts are shorter.
const callTimeout = 30 * time.Second

// method is one RPC of the generated client.
type method[Req, Resp any] func(pluginv1.BackendClient, context.Context, *Req, ...grpc.CallOption) (*Resp, error)

// call calls the adapter that serves t. Errors are a *backend.Problem, or that of ctx if the caller gave up. With an
// error the reply is nil, which the generated getters accept.
func call[Req, Resp any](ctx context.Context, h *Host, t backend.Target, m method[Req, Resp], req *Req) (*Resp, error) {
	return callWithin(ctx, h, t, callTimeout, m, req)
}

// callWithin is call with a different time limit.
func callWithin[Req, Resp any](
	ctx context.Context, h *Host, t backend.Target, limit time.Duration, m method[Req, Resp], req *Req,
) (*Resp, error) {
	a := h.pick(t)
	inst, err := a.get(ctx)
	if err != nil {
		return nil, err
	}
	if t.BaseURL != backend.EmbeddedURL && strings.HasPrefix(t.BaseURL, backend.EmbeddedURL) &&
		t.BaseURL != inst.about.GetEmbeddedId() {
		return nil, embeddedReset()
	}
	defer inst.use()()
	inner, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	resp, err := m(inst.rpc, inner, req)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		if inst.isAtFault(inner) {
			return nil, stuckProblem(a.name)
		}
		err = problemOf(inner, a.name, err)
		var p *backend.Problem
		if errors.As(err, &p) && p.DeviceCode != nil {
			p.DeviceCode.SignInWord = inst.about.GetSignInWord()
		}
		resp = nil
	}
	h.contacts.record(t.BaseURL, err, h.now())
	return resp, err
}

// embeddedReset refuses to send one embedded backend's token to its successor, which has other data.
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
	return account(r.GetAccountId(), r.GetTier(), r.GetLinkedAt(), r.ExpiresAt)
}

// RevokeLink revokes the target's own bearer token.
func (h *Host) RevokeLink(ctx context.Context, t backend.Target) error {
	_, err := call(ctx, h, t, pluginv1.BackendClient.RevokeLink, &pluginv1.RevokeLinkRequest{Target: target(t)})
	return err
}

// Health returns the health that the backend reports.
func (h *Host) Health(ctx context.Context, t backend.Target) (backend.Health, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.Health, &pluginv1.HealthRequest{Target: target(t)})
	return backend.Health{
		OK: r.GetOk(), Service: r.GetService(), Version: r.GetVersion(), Commit: r.GetCommit(), BuiltAt: r.GetBuiltAt(),
		Phase: r.GetPhase(), Uptime: time.Duration(r.GetUptimeMs()) * time.Millisecond, Hints: r.GetHints(),
	}, err
}

// CreateSession creates or resumes a session; created reports which.
func (h *Host) CreateSession(ctx context.Context, t backend.Target, q backendapi.SessionRequest) (s backend.Session,
	created bool, err error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.CreateSession, &pluginv1.CreateSessionRequest{
		Target: target(t), Project: q.Project, Platform: q.Platform, DeviceModel: q.DeviceModel, Fresh: q.Fresh,
	})
	return session(r.GetSession()), r.GetCreated(), err
}

// GetSession reads one session.
func (h *Host) GetSession(ctx context.Context, t backend.Target, id string) (backend.Session, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.GetSession,
		&pluginv1.GetSessionRequest{Target: target(t), SessionId: id})
	return session(r.GetSession()), err
}

// ListSessions lists the open sessions of the linked account, newest first.
func (h *Host) ListSessions(ctx context.Context, t backend.Target) ([]backend.Session, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.ListSessions, &pluginv1.ListSessionsRequest{Target: target(t)})
	if err != nil {
		return nil, err
	}
	list := make([]backend.Session, 0, len(r.GetSessions()))
	for _, s := range r.GetSessions() {
		list = append(list, session(s))
	}
	return list, nil
}

// CloseSession closes a session; closing it again is not an error.
func (h *Host) CloseSession(ctx context.Context, t backend.Target, id string) (backend.Session, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.CloseSession,
		&pluginv1.CloseSessionRequest{Target: target(t), SessionId: id})
	return session(r.GetSession()), err
}

// MintSessionSecret creates another app secret for an open session. The result is a secret.
func (h *Host) MintSessionSecret(ctx context.Context, t backend.Target, id string) (string, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.MintSessionSecret,
		&pluginv1.MintSessionSecretRequest{Target: target(t), SessionId: id})
	return r.GetAppSecret(), err
}

// ListEvents returns the rows of the event log after the cursor since.
func (h *Host) ListEvents(ctx context.Context, t backend.Target, id string, since int64,
	limit int) (backendapi.EventPage,
	error) {
	return h.WaitEvents(ctx, t, id, since, limit, 0)
}

// maxWait bounds the wait of WaitEvents, as documented in backend.proto.
const maxWait = 25 * time.Second

// WaitEvents is ListEvents, but waits up to 25 s for a row if there is none. An empty page is not an error.
func (h *Host) WaitEvents(
	ctx context.Context, t backend.Target, id string, since int64, limit int, wait time.Duration,
) (backendapi.EventPage, error) {
	wait = min(max(wait, 0), maxWait)
	r, err := callWithin(ctx, h, t, callTimeout+wait, pluginv1.BackendClient.ListEvents, &pluginv1.ListEventsRequest{
		Target: target(t), SessionId: id, Since: since, Limit: uint32(min(max(limit, 0), 500)),
		WaitMs: int32(wait.Milliseconds()),
	})
	page := backendapi.EventPage{
		Events: make([]json.RawMessage, len(r.GetEvents())), Next: r.GetNext(), More: r.GetMore(),
		Truncated: r.GetTruncated(),
	}
	for i, e := range r.GetEvents() {
		page.Events[i] = json.RawMessage(e)
	}
	return page, err
}

// Control sends a control request to a session's simulated glasses and returns the payload of their result
// (proto/glasses.Result), which may be an error of the glasses.
func (h *Host) Control(
	ctx context.Context, t backend.Target, id, typ string, payload json.RawMessage, media []byte,
) (json.RawMessage, error) {
	r, err := call(ctx, h, t, pluginv1.BackendClient.Control, &pluginv1.ControlRequest{
		Target: target(t), SessionId: id, Type: typ, Payload: payload, Media: media,
	})
	return r.GetResult(), err
}

// SetAssistantScript sets the script of a session's assistant.
func (h *Host) SetAssistantScript(ctx context.Context, t backend.Target, id string, script []byte) error {
	_, err := call(ctx, h, t, pluginv1.BackendClient.SetAssistantScript,
		&pluginv1.SetAssistantScriptRequest{Target: target(t), SessionId: id, Script: script})
	return err
}

// MintProjectKey creates a key for a project of the linked account, labelled name.
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

// Activity reports what keeps the running adapters busy. It starts none. An adapter that does not answer counts as
// idle.
func (h *Host) Activity(ctx context.Context) (connections, pendingCodes int) {
	for _, a := range h.adapters {
		inst := a.running()
		if inst == nil {
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
