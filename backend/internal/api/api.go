// Package api is the JSON face of the backend: routes, who may call them, and what status each refusal has. It maps
// between proto/backendapi and the features' types and knows neither their rules nor any SQL.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/buildinfo"
)

// Links is what the routes need of the device-code machine.
type Links interface {
	Start(ctx context.Context, who link.Requester) (link.Issued, error)
	Poll(ctx context.Context, deviceCode string) (link.Poll, error)
	// Throttled notes that the caller in ctx was refused for asking too often.
	Throttled(ctx context.Context)
	Authenticate(ctx context.Context, token string) (link.Principal, error)
	// RevokeLink answers link.ErrUnknown when the link was revoked already.
	RevokeLink(ctx context.Context, accountID, linkID string, by audit.Actor) error
}

// Options are what the API needs from the composition root.
type Options struct {
	Links Links
	// Sessions serves /api/sessions.
	Sessions Sessions
	// Projects serves /api/projects and tells whose a project is.
	Projects Projects
	// Grants are what an account lets agents do; Audit keeps what they read.
	Grants Grants
	Audit  AuditReads
	// The records of a project.
	Assistant   Assistant
	Credentials Credentials
	Analytics   AnalyticsReports
	Pages       ConnectionPages
	// Keys and Ingest serve shipped apps; nil leaves their route out.
	Keys   ProjectKeys
	Ingest Ingester
	// Telemetry keeps what installs tell about their use; nil leaves its routes out.
	Telemetry Telemetry
	// SiteURL is where people open pages; BaseURL is where programs call.
	SiteURL string
	BaseURL string
	// SupportContact is named in the refusal of a revoked token; may be empty.
	SupportContact string
	// ClientIP names the caller's address.
	ClientIP func(*http.Request) string
	// CodesPerMinute is how many device codes one address may have issued.
	CodesPerMinute int
	// Ready tells whether the database answers.
	Ready func(context.Context) error
	Log   *slog.Logger
	Now   func() time.Time
}

// API serves the JSON routes.
type API struct {
	Options
	started time.Time
	codes   *limit.Limiter
	batches *limit.Limiter
	changes *limit.Limiter
	uploads *limit.Limiter
	events  *limit.Limiter // of telemetry
	guesses *limit.Limiter // polls of codes that nobody knows
	aside   *lanes         // where who made too many of them waits

	readiness readiness
}

// New wires the routes to the features.
func New(o Options) *API {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.SiteURL, o.BaseURL = strings.TrimSuffix(o.SiteURL, "/"), strings.TrimSuffix(o.BaseURL, "/")
	return &API{Options: o, started: o.Now(), codes: limit.New(o.CodesPerMinute, o.Now),
		batches: limit.New(batchesPerMinute, o.Now), changes: limit.New(changesPerMinute, o.Now),
		uploads: limit.New(uploadsPerMinute, o.Now), events: limit.New(eventsPerMinute, o.Now), guesses: limit.New(guessesPerMinute, o.Now), aside: newLanes()}
}

// Mount adds the routes to mux.
func (a *API) Mount(mux *http.ServeMux) {
	for _, rt := range a.table() {
		mux.HandleFunc(rt.method+" "+rt.path, a.enforce(rt))
	}
	mux.HandleFunc(anyAPI, func(w http.ResponseWriter, r *http.Request) { a.noRoute(w, r, mux) })
}

// anyAPI catches what no route takes, so that it too is answered as a problem.
const anyAPI = "/api/"

func (a *API) noRoute(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != anyAPI {
			allow = append(allow, method)
		}
	}
	if len(allow) > 0 {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		a.fail(w, r, refusal(backendapi.CodeMethodNotAllowed, clip(r.Method, 20)+" is not for "+clip(r.URL.Path, 100), "use "+strings.Join(allow, " or ")))
		return
	}
	a.fail(w, r, refusal(backendapi.CodeNotFound, "there is no "+r.Method+" "+clip(r.URL.Path, 100),
		"check the path and the method; GET "+backendapi.PathHealth+" tells which service answers"))
}

func (a *API) whoAmI(c *call) (any, error) { return accountOf(c.who), nil }

// revokeOwnLink revokes the link of the token that asks, for a client that logs out or was linked anew.
func (a *API) revokeOwnLink(c *call) (any, error) {
	ctx := link.WithAddress(c.Context(), a.ClientIP(c.Request))
	err := a.Links.RevokeLink(ctx, c.who.AccountID, c.who.LinkID, c.by())
	if errors.Is(err, link.ErrUnknown) { // another request revoked it since this one was authenticated
		return nil, link.ErrRevoked
	}
	c.status = http.StatusNoContent
	return nil, err
}

const (
	readyWait = 2 * time.Second // for the database to answer
	readyFor  = time.Second     // how long its answer counts
)

// readiness is whether the database answered lately. However many ask, it is asked once in readyFor.
type readiness struct {
	mu    sync.Mutex
	until time.Time
	err   error
}

// ready returns nil when the database answers. Callers that come while it is asked wait for that one answer.
func (a *API) ready() error {
	r := &a.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := a.Now(); now.Before(r.until) && r.until.Sub(now) <= readyFor {
		return r.err
	}
	// Not the caller's context: one that goes away must not decide for the others.
	ctx, cancel := context.WithTimeout(context.Background(), readyWait)
	defer cancel()
	if r.err = a.Ready(ctx); r.err != nil {
		a.Log.ErrorContext(ctx, "the database does not answer", "err", r.err)
	}
	r.until = a.Now().Add(readyFor)
	return r.err
}

// health is the one route that a load balancer may call as often as it likes.
func (a *API) health(c *call) (any, error) {
	ok := a.ready() == nil
	if !ok {
		c.status = http.StatusServiceUnavailable
	}
	return backendapi.Health{
		OK: ok, Service: "service-backend", Version: buildinfo.Version, Commit: buildinfo.Commit, BuiltAt: buildinfo.BuiltAt,
		UptimeMs: a.Now().Sub(a.started).Milliseconds(), Phase: "beta",
		Hints: map[string]string{
			"sessions":     "POST /api/sessions requires the header X-Service-Install-Id (anonymous) or a bearer token (linked).",
			"versionCheck": "To verify a deploy, compare commit with the revision you expect.",
		},
	}, nil
}

func accountOf(who link.Principal) backendapi.Account {
	return backendapi.Account{AccountID: who.AccountID, Tier: who.Tier, LinkedAt: timestamp(who.LinkedAt), ExpiresAt: timeOrNull(who.ExpiresAt)}
}

// timeOrNull is a time, or null for the zero one.
func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	at := timestamp(t)
	return &at
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// answer writes v as JSON, or no body with status 204. Nothing of this API may be kept by a cache.
func (a *API) answer(w http.ResponseWriter, status int, v any) {
	if status == http.StatusNoContent {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		a.Log.Error("encoding an answer", "err", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// clip keeps text of a request short and printable before it goes into an answer or the store.
func clip(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1 // control, bidirectional and invisible characters could make the activation page lie
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}
