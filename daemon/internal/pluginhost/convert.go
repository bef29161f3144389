package pluginhost

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/daemon/internal/backend"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// maxSeconds is one year. It keeps a number sent by a backend from overflowing a time.Duration.
const maxSeconds = 365 * 24 * 3600

func seconds(n int64) time.Duration {
	return time.Duration(min(max(n, -maxSeconds), maxSeconds)) * time.Second
}

func target(t backend.Target) *pluginv1.Target {
	p := &pluginv1.Target{
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

// addNetwork adds the settings for HTTPS requests to a request that names its target.
func (h *Host) addNetwork(req any) {
	if r, ok := req.(interface{ GetTarget() *pluginv1.Target }); ok && r.GetTarget() != nil {
		r.GetTarget().Network = h.network()
	}
}

func deviceCode(c *pluginv1.DeviceCode) backend.DeviceCode {
	return backend.DeviceCode{
		DeviceCode:      c.GetDeviceCode(),
		UserCode:        c.GetUserCode(),
		VerificationURL: c.GetVerificationUrl(),
		ExpiresIn:       seconds(int64(c.GetExpiresInSeconds())),
		PollInterval:    seconds(int64(c.GetPollIntervalSeconds())),
	}
}

func account(id, tier, linkedAt string, expiresAt *string) (backend.Account, error) {
	linked, err := time.Parse(time.RFC3339Nano, linkedAt)
	if err != nil {
		return backend.Account{}, invalid("the backend sent a linkedAt that is not a timestamp")
	}
	a := backend.Account{AccountID: id, Tier: tier, LinkedAt: linked}
	if expiresAt != nil {
		expires, err := time.Parse(time.RFC3339Nano, *expiresAt)
		if err != nil {
			return backend.Account{}, invalid("the backend sent an expiresAt that is not a timestamp")
		}
		a.ExpiresAt = &expires
	}
	return a, nil
}

func invalid(message string) *backend.Problem {
	return &backend.Problem{
		Code:    backend.CodeInvalidResponse,
		Message: message,
		FixHint: "The backend is incompatible with this version of the service: update the service, or check " +
			"SERVICE_BACKEND_URL.",
	}
}

func session(s *pluginv1.Session) backend.Session {
	return backend.Session{
		SessionID: s.GetSessionId(), Project: s.GetProject(), Platform: s.GetPlatform(), DeviceModel: s.GetDeviceModel(),
		State: s.GetState(), SessionURL: s.GetSessionUrl(), AppEndpoint: s.GetAppEndpoint(),
		CreatedAt: timestamp(s.GetCreatedAt()), LastActiveAt: timestamp(s.GetLastActiveAt()),
		ExpiresAt: timestamp(s.GetExpiresAt()), ClosedAt: timestamp(s.GetClosedAt()),
		Apps: int(s.GetApps()), Pages: int(s.GetPages()), LastSeq: s.GetLastSeq(),
	}
}

// timestamp returns the zero time for a missing or malformed s: a session is useful without it.
func timestamp(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

// problemOf returns the problem in an RPC's error. If there is none, the adapter itself failed or ctx expired.
func problemOf(ctx context.Context, name string, err error) error {
	st := status.Convert(err)
	for _, d := range st.Details() {
		if p, ok := d.(*pluginv1.Problem); ok {
			return problem(p)
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded), st.Code() == codes.DeadlineExceeded:
		return &backend.Problem{
			Code:      backend.CodeUnreachable,
			Message:   "the backend did not answer in time",
			Retryable: true,
			FixHint:   "Check the network and try again.",
		}
	case st.Code() == codes.Unimplemented:
		return &backend.Problem{
			Code:    backend.CodeAdapterUnavailable,
			Message: "adapter " + name + " does not implement this call",
			FixHint: "Install the service again so that all its binaries are of one version.",
		}
	}
	return unavailable(name, "it exited during the call", 0)
}

func problem(p *pluginv1.Problem) *backend.Problem {
	b := &backend.Problem{
		Code: p.GetCode(), Message: p.GetMessage(), Retryable: p.GetRetryable(), FixHint: p.GetFixHint(),
		HTTPStatus: int(p.GetHttpStatus()), RetryAfter: seconds(int64(p.GetRetryAfterSeconds())),
		Capability: p.GetCapability(), Field: p.GetField(), Needed: p.GetNeeded(), Granted: p.GetGranted(),
		CurrentVersion: p.GetCurrentVersion(), Untrusted: p.GetUntrusted(),
	}
	if c := p.GetDeviceCode(); c != nil {
		dc := deviceCode(c)
		b.DeviceCode = &dc
	}
	return b
}
