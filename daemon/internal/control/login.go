package control

import (
	"context"

	"github.com/service-dev/service/daemon/internal/link"
	api "github.com/service-dev/service/proto/control"
)

// login issues a code and sends it before the browser is opened. It then reports each poll until there is an outcome.
// Polling ends when the client disconnects.
func (s *Server) login(ctx context.Context, r api.LoginRequest, send func(api.LoginEvent) error) error {
	attempt, err := s.o.Daemon.Begin(ctx, r.Replace)
	if err != nil {
		return err
	}
	code := attempt.Code()
	// Call Wait even if the stream has failed, because only Wait ends the polling.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	try := func(e api.LoginEvent) {
		if send(e) != nil {
			cancel()
		}
	}
	try(api.LoginEvent{Code: codeOf(code)})
	if ctx.Err() == nil {
		opened, reason := s.o.Daemon.Open(ctx, code.VerificationURL)
		try(api.LoginEvent{Opened: &api.Opened{Opened: opened, Reason: reason}})
	}
	out, err := attempt.Wait(ctx, func(e link.PollEvent) {
		try(api.LoginEvent{Waiting: &api.Waiting{
			PollCount: e.PollCount, RemainingSeconds: seconds(e.Remaining), Note: e.Note,
		}})
	})
	if err != nil {
		return err
	}
	return send(api.LoginEvent{Linked: &api.Linked{
		AccountID: out.AccountID, Tier: out.Tier, LinkedAt: timestamp(out.LinkedAt), ExpiresAt: timestampPtr(out.ExpiresAt),
		AuthFile: out.File.Path, PollCount: out.PollCount, WriteError: out.File.Error, RevokeURL: out.RevokeURL,
		Email: out.Email,
	}})
}
