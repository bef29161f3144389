package control

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/internal/wiretext"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// withCaller returns a context with the request's caller.
func withCaller(ctx context.Context, c *controlv1.Caller) context.Context {
	return caller.With(ctx, caller.New(c.GetEnv(), string(c.GetCwd()), c.GetClient(), c.GetVersion()))
}

// withClient is withCaller for a call that may open pages and use files through the calling process.
func (s *Server) withClient(ctx context.Context, c *controlv1.Caller) context.Context {
	ctx = withCaller(ctx, c)
	if s.o.ClientIO == nil || c.GetClientIo() == "" {
		return ctx
	}
	who := caller.From(ctx)
	who.IO = s.o.ClientIO(c.GetClientIo())
	return caller.With(ctx, who)
}

// errorOf converts any error of a component into the contract's type.
func errorOf(err error) *controlv1.Error {
	var p *backend.Problem
	switch {
	case errors.As(err, &p):
		return &controlv1.Error{Code: p.Code, Message: p.Message, Retryable: p.Retryable, FixHint: p.FixHint}
	case errors.Is(err, context.Canceled):
		return &controlv1.Error{Code: "cancelled", Message: "the call was cancelled", Retryable: true}
	case errors.Is(err, context.DeadlineExceeded):
		return &controlv1.Error{Code: "timeout", Message: "the call took too long", Retryable: true}
	}
	return &controlv1.Error{Code: "internal", Message: err.Error(), FixHint: "Run `servicectl doctor`."}
}

// refuse returns a gRPC error that carries e.
func refuse(c codes.Code, e *controlv1.Error) error {
	wiretext.Repair(e)
	st, err := status.New(c, e.GetMessage()).WithDetails(e)
	if err != nil {
		return status.Error(codes.Internal, "encoding a refusal")
	}
	return st.Err()
}

// statusError returns the gRPC error for a component's error.
func statusError(err error) error {
	e := errorOf(err)
	code := codes.Internal
	switch e.GetCode() {
	case backend.CodeUnreachable, backend.CodeAdapterUnavailable:
		code = codes.Unavailable
	case "cancelled":
		code = codes.Canceled
	case "timeout":
		code = codes.DeadlineExceeded
	case "invalid_request":
		code = codes.InvalidArgument
	}
	return refuse(code, e)
}

func linkMessage(l account.Link, now time.Time) *controlv1.Link {
	out := &controlv1.Link{
		State: string(l.State), AccountId: l.AccountID, Tier: l.Tier, LinkedAt: timestamp(l.LinkedAt),
		ExpiresAt: timestampPtr(l.ExpiresAt), BackendUrl: l.BackendURL, VerifiedAgeMs: -1, Detail: l.Detail,
	}
	if !l.Verified.At.IsZero() {
		out.VerifiedAgeMs = max(0, now.Sub(l.Verified.At).Milliseconds())
	}
	if out.Detail == "" {
		out.Detail = l.Verified.Err
	}
	return out
}

// timestamp formats t as ISO 8601 in UTC; it returns "" for the zero time.
func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func timestampPtr(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := timestamp(*t)
	return &s
}

func consentMessage(c Consent) *controlv1.Consent {
	return &controlv1.Consent{State: c.State, UploadAllowed: c.UploadAllowed, DecidedBy: c.DecidedBy}
}

func pluginMessages(list []Plugin) []*controlv1.Plugin {
	out := make([]*controlv1.Plugin, 0, len(list))
	for _, p := range list {
		out = append(out, pluginMessage(p))
	}
	return out
}

func pluginMessage(p Plugin) *controlv1.Plugin {
	return &controlv1.Plugin{
		Name: p.Name, Path: p.Path, State: p.State, Pid: int64(p.PID), Version: p.Version,
		Restarts: count(p.Restarts), LastError: p.LastError, Verified: p.Verified,
		SinceMs: milliseconds(p.Since), CrashedMs: milliseconds(p.Crashed), ResumeMs: milliseconds(p.Resume),
		AddedMs: milliseconds(p.Added), Sha256: p.SHA256, Owner: p.Owner, Title: p.Title,
	}
}

// milliseconds returns the Unix time of t, and 0 for the zero time.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func codeMessage(c link.Code) *controlv1.DeviceCode {
	out := &controlv1.DeviceCode{
		UserCode: c.UserCode, VerificationUrl: c.VerificationURL, BackendUrl: c.BackendURL,
		ExpiresInSeconds: seconds(c.ExpiresIn), PollIntervalSeconds: seconds(c.PollInterval),
		SignInWord: c.SignInWord,
	}
	if r := c.Replaces; r.AccountID != "" {
		out.Replaces = "account " + r.AccountID + " at " + backend.DisplayName(r.BackendURL)
	}
	return out
}

func seconds(d time.Duration) uint32 { return uint32(max(0, d.Round(time.Second)/time.Second)) }
