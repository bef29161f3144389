package pluginhost

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// maxSeconds is one year. It keeps a number sent by a backend from overflowing a time.Duration.
const maxSeconds = 365 * 24 * 3600

func seconds(n int64) time.Duration {
	return time.Duration(min(max(n, -maxSeconds), maxSeconds)) * time.Second
}

func (h *Host) target(t backend.Target) *pluginv1.Target {
	p := &pluginv1.Target{
		Network:   h.network(),
		Requester: &pluginv1.Requester{Host: t.Requester.Host, Os: t.Requester.OS, Client: t.Requester.Client},
	}
	if !isEmbedded(t.BaseURL) {
		p.BaseUrl = t.BaseURL
	}
	if t.Bearer != "" {
		p.Credential = &pluginv1.Target_Bearer{Bearer: t.Bearer}
	} else if t.InstallID != "" {
		p.Credential = &pluginv1.Target_InstallId{InstallId: t.InstallID}
	}
	return p
}

// network returns the settings for requests over HTTPS.
func (h *Host) network() *pluginv1.Network {
	if h.opts.Outbound == nil {
		return nil
	}
	s := h.opts.Outbound()
	return &pluginv1.Network{HttpsProxy: s.HTTPSProxy, NoProxy: s.NoProxy, CaFile: s.CAFile}
}

func deviceCode(c backendapi.DeviceCode) backend.DeviceCode {
	return backend.DeviceCode{
		DeviceCode: c.DeviceCode, UserCode: c.UserCode, VerificationURL: c.VerificationURL,
		ExpiresIn: seconds(c.ExpiresInSeconds), PollInterval: seconds(max(c.PollIntervalSeconds, 0)),
	}
}

func account(a backendapi.Account) backend.Account {
	account := backend.Account{AccountID: a.AccountID, Tier: a.Tier, LinkedAt: timestamp(a.LinkedAt), Email: a.Email}
	if a.ExpiresAt != nil {
		account.ExpiresAt = new(timestamp(*a.ExpiresAt))
	}
	return account
}

func session(s backendapi.Session) backend.Session {
	session := backend.Session{
		SessionID: s.SessionID, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel, State: s.State,
		SessionURL: s.SessionURL, AppEndpoint: s.AppEndpoint, CreatedAt: timestamp(s.CreatedAt),
		LastActiveAt: timestamp(s.LastActiveAt), ExpiresAt: timestamp(s.ExpiresAt), Apps: max(s.Apps, 0),
		Pages: max(s.Pages, 0), LastSeq: s.LastSeq,
	}
	if s.ClosedAt != nil {
		session.ClosedAt = timestamp(*s.ClosedAt)
	}
	return session
}

// timestamp returns the time in a checked response, or the zero time if there is none.
func timestamp(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

// problemOf returns the problem in an RPC's error. If the error contains none, the adapter itself failed or ctx
// expired.
func problemOf(ctx context.Context, name string, err error) error {
	st := status.Convert(err)
	for _, d := range st.Details() {
		if p, ok := d.(*pluginv1.Problem); ok {
			return fromProto(p)
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), st.Code() == codes.DeadlineExceeded:
		return &problem.Error{
			Code:      problem.CodeBackendUnreachable,
			Message:   "the backend did not answer in time",
			Retryable: true,
			FixHint:   "Check the network and try again.",
		}
	case st.Code() == codes.Unimplemented:
		hint := restartReplaced
		if !slices.Contains(shipped(), name) {
			hint = "Ask the adapter's author to add this call, or choose another transport."
		}
		return &problem.Error{
			Code:    problem.CodeAdapterUnavailable,
			Message: "adapter " + name + " does not implement this call",
			FixHint: hint,
		}
	}
	return unavailable(name, "it exited during the call", 0)
}

// fromProto returns a refusal as a *problem.Error, or as a *backend.AuthRequired if it has a device code.
func fromProto(p *pluginv1.Problem) error {
	e := &problem.Error{
		Code: p.GetCode(), Message: p.GetMessage(), Retryable: p.GetRetryable(), FixHint: p.GetFixHint(),
		HTTPStatus: int(p.GetHttpStatus()), RetryAfter: seconds(int64(p.GetRetryAfterSeconds())),
		Capability: p.GetCapability(), Field: p.GetField(), Needed: p.GetNeeded(), Granted: p.GetGranted(),
		Untrusted: p.GetUntrusted(),
	}
	if e.Code == problem.CodeVersionConflict {
		e.CurrentVersion = new(p.GetCurrentVersion())
	}
	var code backendapi.DeviceCode
	if data := p.GetDeviceCode(); data != nil && json.Unmarshal(data, &code) == nil {
		return &backend.AuthRequired{Problem: e, DeviceCode: deviceCode(code)}
	}
	return e
}
