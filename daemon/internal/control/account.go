package control

import (
	"context"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/internal/problem"
	api "github.com/service-dev/service/proto/control"
)

// whoami returns the identity with the stored verdict. It asks the backend first if the request requires it or if this
// link was never verified.
func (s *Server) whoami(ctx context.Context, r api.WhoamiRequest) (api.Identity, error) {
	l := s.o.Daemon.Link(ctx)
	if r.Refresh || l.Linked() && l.Verified.At.IsZero() {
		l = s.o.Daemon.Verify(ctx)
	}
	link := linkOf(l, s.o.Now())
	out := api.Identity{
		InstallID: s.o.Daemon.InstallID(), Linked: verdict(l), State: link.State, AccountID: optional(link.AccountID),
		Tier: optional(link.Tier), LinkedAt: optional(link.LinkedAt), ExpiresAt: link.ExpiresAt,
		BackendURL: optional(link.BackendURL), Detail: link.Detail,
	}
	if age := link.VerifiedAgeMs; age >= 0 && link.AccountID != "" {
		seconds := age / 1000
		out.VerifiedAgeSeconds = &seconds
	}
	return out, nil
}

// verdict reports whether the token is valid. It returns nil if the backend did not answer.
func verdict(l account.Link) *bool {
	linked := l.Linked()
	if linked && !l.Verified.OK {
		return nil
	}
	return &linked
}

// optional returns a pointer to text, or nil for "", which is encoded as null.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// logout deletes auth.json and no other file.
func (s *Server) logout(ctx context.Context, _ api.None) (api.LoggedOut, error) {
	out, err := s.o.Daemon.Logout(ctx)
	return api.LoggedOut{WasLinked: out.Was, AuthFile: out.Path, Revoked: out.Revoked,
		RevokeURL: optional(out.RevokeURL)}, err
}

// setConsent records a telemetry decision.
func (s *Server) setConsent(ctx context.Context, r api.ConsentRequest) (api.Decision, error) {
	if r.State != "accepted" && r.State != "declined" {
		return api.Decision{}, problem.New(problem.CodeInvalidRequest,
			"the telemetry decision is neither accepted nor declined", "Use accept-privacy or decline-privacy.")
	}
	path, err := s.o.Daemon.SetConsent(ctx, r.State)
	if err != nil {
		return api.Decision{}, err
	}
	c := s.o.Daemon.Consent(ctx)
	return api.Decision{Consent: c.State, UploadAllowed: c.UploadAllowed, DecidedBy: c.DecidedBy, File: path}, nil
}
