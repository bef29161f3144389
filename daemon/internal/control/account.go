package control

import (
	"context"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/daemon/internal/account"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// The verdicts of whoami, which map to the command's exit codes 0, 1 and 2.
const (
	verdictLinked    = "linked"
	verdictNotLinked = "not_linked"
	verdictUnknown   = "unknown"
)

// Whoami returns the stored verdict. It asks the backend first if the request requires it or if this link was never
// verified.
func (s *Server) Whoami(ctx context.Context, r *controlv1.WhoamiRequest) (*controlv1.WhoamiResponse, error) {
	ctx = withCaller(ctx, r.GetCaller())
	l := s.o.Accounts.Link(ctx)
	if r.GetRefresh() || l.Linked() && l.Verified.At.IsZero() {
		l = s.o.Accounts.Verify(ctx)
	}
	return &controlv1.WhoamiResponse{
		InstallId: s.o.Accounts.InstallID(), Link: linkMessage(l, s.o.Now()), Verdict: verdict(l),
	}, nil
}

// verdict returns the verdict on a token, or unknown if the backend was not reached.
func verdict(l account.Link) string {
	switch {
	case !l.Linked():
		return verdictNotLinked
	case l.Verified.OK:
		return verdictLinked
	}
	return verdictUnknown
}

// Logout deletes auth.json and no other file.
func (s *Server) Logout(ctx context.Context, r *controlv1.LogoutRequest) (*controlv1.LogoutResponse, error) {
	out, err := s.o.Accounts.Logout(withCaller(ctx, r.GetCaller()))
	if err != nil {
		return nil, statusError(err)
	}
	return &controlv1.LogoutResponse{WasLinked: out.Was, AuthFile: out.Path, Revoked: out.Revoked,
		RevokeUrl: out.RevokeURL}, nil
}

// SetConsent records a telemetry decision.
func (s *Server) SetConsent(ctx context.Context, r *controlv1.SetConsentRequest) (*controlv1.SetConsentResponse,
	error) {
	ctx = withCaller(ctx, r.GetCaller())
	if st := r.GetState(); st != "accepted" && st != "declined" {
		return nil, refuse(codes.InvalidArgument, &controlv1.Error{
			Code: "invalid_request", Message: "the telemetry decision is neither accepted nor declined",
			FixHint: "Use accept-privacy or decline-privacy.",
		})
	}
	path, err := s.o.Consents.SetConsent(ctx, r.GetState())
	if err != nil {
		return nil, statusError(err)
	}
	return &controlv1.SetConsentResponse{Consent: consentMessage(s.o.Consents.Consent(ctx)), File: path}, nil
}
