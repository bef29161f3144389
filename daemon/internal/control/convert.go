package control

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/internal/problem"
	api "github.com/service-dev/service/proto/control"
)

// withCaller returns the request's context with its caller.
func (s *Server) withCaller(r *http.Request) (context.Context, error) {
	c, err := api.ParseCaller(r.Header.Get(api.CallerHeader))
	if err != nil {
		return nil, problem.New(problem.CodeInvalidRequest, err.Error(), "Send the fields cwd, client, version, clientIO "+
			"and env.NAME once each, in the format of a URL's query; or omit the header.")
	}
	who := caller.New(c.Env, c.Cwd, c.Client, c.Version)
	if s.o.ClientIO != nil && c.ClientIO != "" {
		who.IO = s.o.ClientIO(c.ClientIO)
	}
	return caller.With(r.Context(), who), nil
}

// errorOf converts an error of any component to the API's type.
func errorOf(err error) *problem.Error {
	if p := problem.From(err); p != nil {
		return p
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &problem.Error{Code: problem.CodeCancelled, Message: "the call was cancelled", Retryable: true}
	case errors.Is(err, context.DeadlineExceeded):
		return &problem.Error{Code: problem.CodeTimeout, Message: "the call took too long", Retryable: true}
	}
	return &problem.Error{Code: "internal", Message: err.Error(), FixHint: "Run `servicectl doctor`."}
}

func linkOf(l account.Link, now time.Time) api.Link {
	out := api.Link{
		State: string(l.State), AccountID: l.AccountID, Tier: l.Tier, LinkedAt: timestamp(l.LinkedAt),
		ExpiresAt: timestampPtr(l.ExpiresAt), BackendURL: l.BackendURL, VerifiedAgeMs: -1,
		Detail: cmp.Or(l.Detail, l.Verified.Err),
	}
	if !l.Verified.At.IsZero() {
		out.VerifiedAgeMs = max(0, now.Sub(l.Verified.At).Milliseconds())
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

func pluginsOf(list []Plugin) []api.Plugin {
	out := make([]api.Plugin, 0, len(list))
	for _, p := range list {
		out = append(out, pluginOf(p))
	}
	return out
}

func pluginOf(p Plugin) api.Plugin {
	return api.Plugin{
		Name: p.Name, Path: p.Path, State: p.State, PID: p.PID, Version: p.Version, Restarts: p.Restarts,
		LastError: p.LastError, Verified: p.Verified,
		SinceMs: milliseconds(p.Since), CrashedMs: milliseconds(p.Crashed), ResumeMs: milliseconds(p.Resume),
		AddedMs: milliseconds(p.Added), SHA256: p.SHA256, Owner: p.Owner, Title: p.Title,
	}
}

// milliseconds returns the Unix time of t in milliseconds, or 0 for the zero time.
func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func codeOf(c link.Code) *api.DeviceCode {
	out := &api.DeviceCode{
		UserCode: c.UserCode, VerificationURL: c.VerificationURL, ExpiresInSeconds: seconds(c.ExpiresIn),
		PollIntervalSeconds: seconds(c.PollInterval), SignInWord: c.SignInWord,
	}
	if r := c.Replaces; r.AccountID != "" {
		out.Replaces = "account " + r.AccountID + " at " + backend.DisplayName(r.BackendURL)
	}
	return out
}

func seconds(d time.Duration) int { return int(max(0, d.Round(time.Second)/time.Second)) }
