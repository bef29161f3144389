package control

import (
	"context"

	"google.golang.org/grpc"

	"github.com/service-dev/service/daemon/internal/link"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

type loginStream = grpc.ServerStreamingServer[controlv1.LoginResponse]

// Login issues a code, sends it before the browser is opened, and streams the polls until the outcome. A refusal is
// sent as an event of the stream, to preserve the order. Polling ends when the client disconnects.
func (s *Server) Login(r *controlv1.LoginRequest, stream loginStream) error {
	ctx := s.withClient(stream.Context(), r.GetCaller())
	attempt, err := s.o.Logins.Begin(ctx, r.GetReplace())
	if err != nil {
		return loginFailed(ctx, stream, err)
	}
	code := attempt.Code()
	// Call Wait even if the stream has failed, because only Wait ends the polling.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	send := func(e *controlv1.LoginResponse) {
		if stream.Send(e) != nil {
			cancel()
		}
	}
	send(&controlv1.LoginResponse{Event: &controlv1.LoginResponse_Code{Code: codeMessage(code)}})
	if ctx.Err() == nil {
		opened, reason := s.o.Logins.Open(ctx, code.VerificationURL)
		send(&controlv1.LoginResponse{Event: &controlv1.LoginResponse_Opened{Opened: &controlv1.Opened{Opened: opened,
			Reason: reason}}})
	}
	out, err := attempt.Wait(ctx, func(e link.PollEvent) {
		send(&controlv1.LoginResponse{Event: &controlv1.LoginResponse_Waiting{Waiting: &controlv1.Waiting{
			PollCount: uint32(e.PollCount), RemainingSeconds: seconds(e.Remaining), Note: e.Note,
		}}})
	})
	if err != nil {
		return loginFailed(ctx, stream, err)
	}
	return stream.Send(&controlv1.LoginResponse{Event: &controlv1.LoginResponse_Linked{Linked: &controlv1.Linked{
		AccountId: out.AccountID, Tier: out.Tier, LinkedAt: timestamp(out.LinkedAt), ExpiresAt: timestampPtr(out.ExpiresAt),
		AuthFile: out.File.Path, PollCount: uint32(out.PollCount), WriteError: out.File.Error, RevokeUrl: out.RevokeURL,
		Email: out.Email,
	}}})
}

func loginFailed(ctx context.Context, stream loginStream, err error) error {
	if ctx.Err() != nil {
		return statusError(ctx.Err())
	}
	return stream.Send(&controlv1.LoginResponse{Event: &controlv1.LoginResponse_Error{Error: errorOf(err)}})
}
