// Package api serves the backend's JSON routes. It defines who may call each route and the status of each refusal, and
// converts between proto/backendapi and the features' types. It contains no feature logic and no SQL.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/backend/internal/telemetry"
	"github.com/service-dev/service/backend/internal/usage"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// Options configure the API.
type Options struct {
	Links    *link.Service
	Accounts *account.Service
	// Sessions serves /api/sessions.
	Sessions *sessions.Service
	Scripts  *sessions.Assistants
	// Projects serves /api/projects, and checks project keys and the owner of a project.
	Projects *projects.Service
	// Grants determines what an account allows agents to do; Audit records what agents read.
	Grants *grants.Service
	Audit  *audit.Service
	// These services implement the routes for a project's settings and usage.
	Assistant    *assistant.Service
	Credentials  *credentials.Service
	Analytics    *analytics.Service // analytics service, which also counts the events of shipped apps
	GatewayUsage *usage.Service
	Memory       *memory.Service // nil if nothing is remembered
	Pages        *connpage.Service
	// Telemetry stores usage events.
	Telemetry *telemetry.Service
	// SiteURL is the URL of the website; BaseURL is the URL of this API.
	SiteURL string
	BaseURL string
	// SupportContact is shown when a call with a revoked token is refused. It may be empty.
	SupportContact string
	// ClientIP returns the caller's address.
	ClientIP func(*http.Request) string
	// CodesPerMinute is the maximum number of device codes issued to one address per minute.
	CodesPerMinute int
	// Ready returns nil if the database responds.
	Ready func(context.Context) error
	Log   *slog.Logger
	Now   func() time.Time
}

// API serves the JSON routes.
type API struct {
	Options
	started    time.Time
	codes      *limit.Limiter
	batches    *limit.Limiter
	changes    *limit.Limiter
	running    *limit.Slots   // concurrent changes, by account
	mints      *limit.Limiter // created project keys
	secrets    *limit.Limiter // created session secrets
	uploads    *limit.Limiter
	events     *limit.Limiter // telemetry events
	guesses    *limit.Limiter // polls of unknown codes
	guessQueue *limit.Slots   // polls from addresses with too many guesses

	readiness readiness
}

// New returns an API with its rate limiters.
func New(o Options) *API {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.SiteURL, o.BaseURL = strings.TrimSuffix(o.SiteURL, "/"), strings.TrimSuffix(o.BaseURL, "/")
	return &API{
		Options: o, started: o.Now(), codes: limit.New(o.CodesPerMinute, o.Now),
		batches: limit.New(batchesPerMinute, o.Now), changes: limit.New(changesPerMinute, o.Now),
		mints: limit.New(keysPerMinute, o.Now), uploads: limit.New(uploadsPerMinute, o.Now),
		events: limit.New(eventsPerMinute, o.Now), secrets: limit.New(secretsPerMinute, o.Now),
		running: limit.NewSlots(changeBounds),
		guesses: limit.New(guessesPerMinute, o.Now), guessQueue: limit.NewSlots(guessBounds),
	}
}

// Mount adds the routes to mux.
func (a *API) Mount(mux *http.ServeMux) {
	for _, rt := range a.table() {
		mux.HandleFunc(rt.method+" "+rt.path, a.enforce(rt))
	}
	mux.HandleFunc(anyAPI, func(w http.ResponseWriter, r *http.Request) { a.noRoute(w, r, mux) })
}

// TooMany responds to a request from an address with too many requests in progress.
func (a *API) TooMany(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == backendapi.PathIngest {
		httpjson.AllowAnyOrigin(w)
	}
	a.fail(w, r, rateLimited(time.Second, "too many requests from this address are in progress",
		"Wait %d s and try again, with fewer requests at the same time."))
}

// anyAPI matches requests without a route, so that they also get a problem document.
const anyAPI = "/api/"

func (a *API) noRoute(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	allow := httpjson.AllowedMethods(mux, r, anyAPI)
	if len(allow) > 0 {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		a.fail(w, r, problem.New(problem.CodeMethodNotAllowed,
			clip(r.Method, 20)+" is not allowed for "+clip(r.URL.Path, 100), "Use "+strings.Join(allow, " or ")+"."))
		return
	}
	a.fail(w, r, problem.New(problem.CodeNotFound, "there is no "+r.Method+" "+clip(r.URL.Path, 100),
		"Check the path and the method; GET "+backendapi.PathHealth+" identifies this service."))
}

// whoAmI returns the account of the caller's token. It includes the e-mail address, because the caller belongs to that
// account.
func (a *API) whoAmI(c *call) (any, error) {
	owner, err := a.Accounts.ByID(c.Context(), c.who.AccountID)
	// The account may have been deleted or suspended after authentication.
	if errors.Is(err, account.ErrNotFound) || errors.Is(err, account.ErrSuspended) {
		return nil, link.ErrRevoked
	}
	answer := accountOf(c.who)
	answer.Email = owner.Email
	return answer, err
}

// revokeOwnLink revokes the link of the caller's token. Clients call it when they log out, and after they have been
// linked again.
func (a *API) revokeOwnLink(c *call) (any, error) {
	ctx := link.WithAddress(c.Context(), a.ClientIP(c.Request))
	err := a.Links.RevokeLink(ctx, c.who.AccountID, c.who.LinkID, c.by())
	if errors.Is(err, link.ErrUnknown) { // another request revoked the link after this one was authenticated
		return nil, link.ErrRevoked
	}
	c.status = http.StatusNoContent
	return nil, err
}

const (
	readyTimeout = 2 * time.Second // limit for the database's response
	readyFor     = time.Second     // how long the result is reused
)

// readiness caches whether the database responds. It queries at most once per readyFor.
type readiness struct {
	mu    sync.Mutex
	until time.Time
	err   error
}

// ready returns nil if the database responds. Concurrent callers share one query.
func (a *API) ready() error {
	r := &a.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := a.Now(); now.Before(r.until) && r.until.Sub(now) <= readyFor {
		return r.err
	}
	// Do not use the caller's context: if one caller disconnects, the others must not fail.
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if r.err = a.Ready(ctx); r.err != nil {
		a.Log.ErrorContext(ctx, "database does not respond", "err", r.err)
	}
	r.until = a.Now().Add(readyFor)
	return r.err
}

// health serves GET /api/health, which is cheap enough for load balancers to poll.
func (a *API) health(c *call) (any, error) {
	ok := a.ready() == nil
	if !ok {
		c.status = http.StatusServiceUnavailable
	}
	return backendapi.Health{
		OK: ok, Service: "service-backend", Version: buildinfo.Version, Commit: buildinfo.Commit, BuiltAt: buildinfo.BuiltAt,
		UptimeMs: a.Now().Sub(a.started).Milliseconds(), Phase: "beta",
		Hints: map[string]string{
			"sessions": "POST /api/sessions requires the header X-Service-Install-Id (anonymous) " +
				"or a bearer token (linked).",
			"versionCheck": "To verify a deploy, compare commit with the revision you expect.",
		},
	}, nil
}

func accountOf(who link.Principal) backendapi.Account {
	return backendapi.Account{AccountID: who.AccountID, Tier: who.Tier, LinkedAt: timestamp(who.LinkedAt),
		ExpiresAt: timeOrNull(who.ExpiresAt)}
}

// timeOrNull returns nil for the zero time.
func timeOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	at := timestamp(t)
	return &at
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// answer writes v as JSON with a header that forbids caching. It writes no body if the status is
// 204.
func (a *API) answer(w http.ResponseWriter, status int, v any) { httpjson.Write(w, a.Log, status, v) }

func clip(s string, limit int) string { return httpjson.Clip(s, limit) }
