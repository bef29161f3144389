package pluginhost

import (
	"context"
	"encoding/json"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// hosted is the client of the browser simulator's adapter, whose sessions are hosted by a backend.
type hosted = pluginv1.HostedSessionsClient

// targeted is a request that names its target.
type targeted[Req any] interface {
	*Req
	GetTarget() *pluginv1.Target
}

// callHosted calls the browser simulator's adapter about the sessions of t's backend. Only this adapter receives the
// token, because it ships with the service; the descriptions of other adapters do not matter. The embedded backend is
// started if necessary, because its address is known only then. It returns the same errors as call.
func callHosted[Req, Resp any, R targeted[Req]](
	ctx context.Context, h *Host, t backend.Target, limit time.Duration, m method[hosted, Req, Resp], req R,
) (*Resp, error) {
	var on []*instance
	if isEmbedded(t.BaseURL) {
		home, done, err := h.backendOf(ctx, t)
		if err != nil {
			return nil, err
		}
		defer done()
		req.GetTarget().BaseUrl = home.about.GetLoopbackUrl()
		on = append(on, home)
	}
	inst, done, err := h.adapters[BrowserSim].get(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	h.addNetwork(req)
	return invoke(ctx, h, t, limit, func(ctx context.Context) (*Resp, error) { return m(inst.sessions, ctx, req) },
		append(on, inst)...)
}

// CreateSession creates or resumes a session; created reports which.
func (h *Host) CreateSession(ctx context.Context, t backend.Target, q backendapi.SessionRequest) (s backend.Session,
	created bool, err error) {
	r, err := callHosted(ctx, h, t, callTimeout, hosted.CreateSession, &pluginv1.CreateSessionRequest{
		Target: target(t), Project: q.Project, Platform: q.Platform, DeviceModel: q.DeviceModel, Fresh: q.Fresh,
	})
	return session(r.GetSession()), r.GetCreated(), err
}

// GetSession reads one session.
func (h *Host) GetSession(ctx context.Context, t backend.Target, id string) (backend.Session, error) {
	r, err := callHosted(ctx, h, t, callTimeout, hosted.GetSession,
		&pluginv1.GetSessionRequest{Target: target(t), SessionId: id})
	return session(r.GetSession()), err
}

// ListSessions lists the open sessions of the linked account, newest first.
func (h *Host) ListSessions(ctx context.Context, t backend.Target) ([]backend.Session, error) {
	r, err := callHosted(ctx, h, t, callTimeout, hosted.ListSessions,
		&pluginv1.ListSessionsRequest{Target: target(t)})
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
	r, err := callHosted(ctx, h, t, callTimeout, hosted.CloseSession,
		&pluginv1.CloseSessionRequest{Target: target(t), SessionId: id})
	return session(r.GetSession()), err
}

// MintSessionSecret creates an additional app secret for an open session. The result is a secret.
func (h *Host) MintSessionSecret(ctx context.Context, t backend.Target, id string) (string, error) {
	r, err := callHosted(ctx, h, t, callTimeout, hosted.MintSessionSecret,
		&pluginv1.MintSessionSecretRequest{Target: target(t), SessionId: id})
	return r.GetAppSecret(), err
}

// ListEvents returns the rows of the event log after the cursor since.
func (h *Host) ListEvents(ctx context.Context, t backend.Target, id string, since int64,
	limit int) (backendapi.EventPage,
	error) {
	return h.WaitEvents(ctx, t, id, since, limit, 0)
}

// maxWait is the maximum wait of WaitEvents, as documented in sessions.proto.
const maxWait = 25 * time.Second

// WaitEvents is ListEvents, but waits up to 25 s for a row if there is none. An empty page is not an error.
func (h *Host) WaitEvents(
	ctx context.Context, t backend.Target, id string, since int64, limit int, wait time.Duration,
) (backendapi.EventPage, error) {
	wait = min(max(wait, 0), maxWait)
	r, err := callHosted(ctx, h, t, callTimeout+wait, hosted.ListEvents, &pluginv1.ListEventsRequest{
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
// (glasses.Result), which may be an error of the glasses.
func (h *Host) Control(
	ctx context.Context, t backend.Target, id, typ string, payload json.RawMessage, media []byte,
) (json.RawMessage, error) {
	r, err := callHosted(ctx, h, t, callTimeout, hosted.Control, &pluginv1.ControlRequest{
		Target: target(t), SessionId: id, Type: typ, Payload: payload, Media: media,
	})
	return r.GetResult(), err
}

// SetAssistantScript sets the script of a session's assistant.
func (h *Host) SetAssistantScript(ctx context.Context, t backend.Target, id string, script []byte) error {
	_, err := callHosted(ctx, h, t, callTimeout, hosted.SetAssistantScript,
		&pluginv1.SetAssistantScriptRequest{Target: target(t), SessionId: id, Script: script})
	return err
}
