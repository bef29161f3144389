// Package modelapi serves /v1, the interface used by the official clients of model providers: an app changes only its
// base address and key. It defines the form of requests and errors; the rules are in package gateway.
package modelapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/internal/credential"
	"github.com/service-dev/service/internal/problem"
)

// Keys finds the owner of a project key. It returns projects.ErrUnknownKey for an unknown or revoked key. It is an
// interface so that tests can use a new key ID for each call, so that no limit per key applies.
type Keys interface {
	Authenticate(ctx context.Context, key string) (projects.KeyOwner, error)
}

// Options configure the API.
type Options struct {
	Keys     Keys
	Sessions *sessions.Assistants
	Gateway  *gateway.Service
	Installs *attest.Service
	Log      *slog.Logger
	Now      func() time.Time
	// ClientIP returns the address of the app. If it is nil, the address of the connection is used, never a header.
	ClientIP func(*http.Request) string
	// WriteTimeout is how long an app may take to receive a part of an answer. The default is 30 s.
	WriteTimeout time.Duration
}

// API serves the routes below /v1.
type API struct {
	Options
	calls        *limit.Limiter
	attestations *limit.Limiter // requests to attest installs, by key and address
	bodies       *limit.Slots   // large bodies that are being received, by account
}

const (
	callsPerMinute = 600 // limit per project key or session
	// attestationsPerMinute is the limit per project key and address. All installs of an app have one key, which
	// everybody can read, so that a limit per key would let one person keep all of them from attesting.
	attestationsPerMinute = 120
	root                  = "/v1/"

	// These limits apply to bodies larger than largeBody, in bytes, and to bodies of unknown length. Together they
	// use at most 512 MB, and the bodies of one account at most 128 MB.
	largeBody       = 64 << 10
	largeBodies     = 128
	largeBodiesEach = 32
)

// New returns an API with a rate limiter.
func New(o Options) *API {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = 30 * time.Second
	}
	if o.ClientIP == nil {
		o.ClientIP = httpjson.PeerIP
	}
	return &API{Options: o, calls: limit.New(callsPerMinute, o.Now),
		attestations: limit.New(attestationsPerMinute, o.Now),
		bodies:       limit.NewSlots(limit.Bounds{Running: largeBodies, RunningEach: largeBodiesEach})}
}

// route is a route that requires a project key or a token.
type route struct {
	pattern string
	serve   handler
}

// table lists every route that requires a key or token. Add new routes here, so that their callers are authorised.
func (a *API) table() []route {
	routes := []route{{"GET /v1/models", a.withModels(allModels)}, {"GET /v1/models/{id...}", a.withModels(oneModel)}}
	for _, api := range wire.APIs {
		routes = append(routes, route{api.Route(),
			a.remembering(func(w http.ResponseWriter, r *http.Request, who gateway.Caller) { a.call(w, r, who, api) })})
	}
	routes = append(routes, route{wire.Realtime.Route(), a.remembering(a.converse)},
		route{"GET /v1/memory", a.withUser(a.getMemory)}, route{"PUT /v1/memory", a.withUser(a.putMemory)},
		route{"DELETE /v1/memory", a.withUser(a.deleteMemory)})
	return append(routes, a.attestRoutes()...)
}

// Mount adds the routes to mux. Apps in browsers may call from any origin: only the key authorises the call, and
// there is no cookie to misuse.
func (a *API) Mount(mux *http.ServeMux) {
	for _, rt := range a.table() {
		mux.HandleFunc(rt.pattern, a.authorised(rt.serve))
	}
	mux.HandleFunc("OPTIONS "+root, preflight)
	mux.HandleFunc(root, func(w http.ResponseWriter, r *http.Request) { a.noRoute(w, r, mux) })
}

// preflight allows all headers that the browser names, because official clients send many custom headers.
func preflight(w http.ResponseWriter, r *http.Request) {
	asked := httpjson.Clip(r.Header.Get("Access-Control-Request-Headers"), 2000)
	if asked == "" {
		asked = "Authorization, Content-Type"
	}
	httpjson.Preflight(w, "GET, POST, PUT, DELETE", asked)
}

func (a *API) noRoute(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	httpjson.AllowAnyOrigin(w)
	if allow := httpjson.AllowedMethods(mux, r, root); len(allow) > 0 {
		w.Header().Set("Allow", strings.Join(allow, ", "))
		a.fail(w, r, gateway.Refuse(problem.CodeMethodNotAllowed, "use "+strings.Join(allow, " or ")))
		return
	}
	a.fail(w, r, gateway.Refuse(problem.CodeNotFound, "there is no "+httpjson.Clip(r.Method, 20)+" "+
		httpjson.Clip(r.URL.Path, 100)+": the gateway serves /v1/models, /v1/chat/completions, /v1/responses, "+
		"/v1/messages, /v1/realtime, /v1/memory and /v1/attest"))
}

// TooMany responds to a request from an address with too many requests in progress.
func (a *API) TooMany(w http.ResponseWriter, r *http.Request) {
	httpjson.AllowAnyOrigin(w)
	a.fail(w, r, gateway.Refuse(problem.CodeRateLimited,
		"too many requests from this address are in progress: wait 1 s, and send fewer at the same time").After(time.Second))
}

type handler func(w http.ResponseWriter, r *http.Request, who gateway.Caller)

// authorised wraps the handlers of all routes. It checks the key or token and limits the rate of its calls.
func (a *API) authorised(serve handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		httpjson.AllowAnyOrigin(w)
		if r.Header.Get(gateway.ForwardedHeader) != "" {
			a.fail(w, r, gateway.Forwarded())
			return
		}
		who, err := a.caller(r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if err := a.take(r, who); err != nil {
			a.fail(w, r, err)
			return
		}
		serve(w, r, who)
	}
}

// take counts a request, or returns the refusal of a request over a limit.
func (a *API) take(r *http.Request, who gateway.Caller) error {
	counter, caller, whose := a.calls, who.Key, "too many calls with this key"
	if strings.HasPrefix(r.URL.Path, attestPath) {
		counter, caller = a.attestations, who.Key+" "+limit.Caller(a.ClientIP(r))
		whose = "too many requests to attest from this address"
	}
	wait := counter.Take(caller)
	if wait == 0 {
		return nil
	}
	return gateway.Refuse(problem.CodeRateLimited, fmt.Sprintf("%s: wait %d s", whose, httpjson.Seconds(wait))).After(wait)
}

var (
	errInvalidKey = gateway.Refuse(problem.CodeInvalidKey,
		"the project key is missing, unknown or revoked: create a key on the project's page")
	errInstallToken = gateway.Refuse(problem.CodeInvalidKey,
		"the token is unknown, revoked or has expired: "+gateway.AttestAgain)
	errInvalidToken = gateway.Refuse(problem.CodeInvalidKey,
		"the token is unknown or has expired: attach to the session; its welcome has a new one")
)

// caller returns the owner of the request's key. Clients send the key as a bearer token or in x-api-key, and pages that
// open a WebSocket as a subprotocol. The key is a project key, or the token of a simulator session or of an
// attested install.
func (a *API) caller(r *http.Request) (gateway.Caller, error) {
	key := r.Header.Get("X-Api-Key")
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		token, ok := httpjson.Bearer(authorization)
		if !ok || key != "" && key != token {
			return gateway.Caller{}, errInvalidKey
		}
		key = token
	}
	if token := protocolToken(r); token != "" {
		if key != "" && key != token {
			return gateway.Caller{}, errInvalidKey
		}
		key = token
	}
	if strings.HasPrefix(key, credential.Gateway) {
		s, err := a.Sessions.Open(r.Context(), key)
		if errors.Is(err, sessions.ErrBadSecret) {
			err = errInvalidToken
		}
		return gateway.Caller{Account: s.Owner.AccountID, Project: s.Project, Key: s.ID, Session: s.ID}, err
	}
	if strings.HasPrefix(key, credential.Attested) {
		c, err := a.Installs.Open(r.Context(), key)
		if errors.Is(err, attest.ErrBadToken) {
			err = errInstallToken
		}
		return gateway.Caller{Account: c.Account, Project: c.Project, Key: c.Install, Install: c.Install}, err
	}
	owner, err := a.Keys.Authenticate(r.Context(), key)
	if errors.Is(err, projects.ErrUnknownKey) {
		err = errInvalidKey
	}
	return gateway.Caller{Account: owner.AccountID, Project: owner.Project, Key: owner.KeyID}, err
}

// call serves one call through an interface.
func (a *API) call(w http.ResponseWriter, r *http.Request, who gateway.Caller, api wire.API) {
	body, err := a.readBody(w, r, who.Account)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	// The server's read timeout is meant for requests. It would close the connection while an answer is streamed.
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	s := &sink{w: w, control: control, timeout: a.WriteTimeout}
	err = a.Gateway.Do(r.Context(), who, api, body, s)
	switch {
	case errors.Is(err, gateway.ErrBroken):
		_ = s.Write(brokenFrame(api, err))
		panic(http.ErrAbortHandler) // a clean end would look like a complete answer
	case err != nil:
		a.fail(w, r, err)
	}
}

func (a *API) readBody(w http.ResponseWriter, r *http.Request, account string) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > largeBody {
		leave, err := a.bodies.Enter(r.Context(), account) // never waits
		if err != nil {
			return nil, gateway.TooManyCalls()
		}
		defer leave()
	}
	return readJSON(w, r, wire.MaxBody, fmt.Sprintf("%d MB", wire.MaxBody>>20))
}

// readJSON reads a body of at most most bytes, which errors call limit. It returns a *gateway.Refusal on failure.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, limit string) ([]byte, error) {
	body, err := httpjson.ReadBody(w, r, most)
	switch {
	case errors.Is(err, httpjson.ErrTooLarge):
		return nil, gateway.Refuse(problem.CodeBodyTooLarge, "the body is over "+limit)
	case errors.Is(err, httpjson.ErrNotJSON):
		return nil, gateway.Refuse(problem.CodeUnsupportedMediaType, "set Content-Type: application/json")
	case err != nil:
		return nil, gateway.Refuse(problem.CodeInvalidJSON, "the body ended early: send it again")
	}
	return body, nil
}

// sink writes an answer to the app and flushes each part.
type sink struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
}

// Begin writes the headers, which prevent proxies from buffering or changing a stream.
func (s *sink) Begin(streamed bool) {
	h := s.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if streamed {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no")
	}
	s.w.WriteHeader(http.StatusOK)
}

// Write returns an error if the app has disconnected or reads too slowly.
func (s *sink) Write(p []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.timeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write(p); err != nil {
		return err
	}
	return s.control.Flush()
}
