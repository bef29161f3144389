// Package app composes the backend from the database, the features, the API, the pages and the relay, and starts and
// drains it. It is the only package that imports all the others.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/relay"
	"github.com/service-dev/service/backend/internal/secret"
)

// Options configure a backend.
type Options struct {
	Config config.Config
	// Embedded makes the backend serve plain HTTP on localhost only.
	Embedded bool
	// StateDir appears in the commands on the pages, unless it is "".
	StateDir string
	// InstanceID becomes part of the cookie names.
	InstanceID string
	// SignInWord is required to sign up or sign in. If it is empty, no word is required.
	SignInWord string
	// EndBrowserSessions signs out every browser at startup, because others may have obtained their cookies.
	EndBrowserSessions bool
	// GatewayLimits limit calls to models. Zero values mean the defaults.
	GatewayLimits gateway.Limits
	// ConnLimits limit connections. Zero values mean the defaults.
	ConnLimits ConnLimits
	// HTTP is the client for tests of providers' keys. If it is nil, a client with the proxy and certificates of the
	// process is used.
	HTTP *http.Client
	Log  *slog.Logger
}

// App is a composed backend. Serve closes it; if Serve is never called, call Close.
type App struct {
	config    config.Config
	log       *slog.Logger
	db        *db.DB
	links     *link.Service
	accounts  *account.Service
	hub       *relay.Hub
	gateway   *gateway.Service
	usage     *connUsage // nil unless the backend is embedded
	signedOut bool       // browsers were signed out at startup
	serving   []server   // run while requests are served
	last      []server   // finish work after requests; stopped in order once all requests have ended
	addresses *clientAddresses
	limits    ConnLimits
	handler   http.Handler
}

// New opens and migrates the database and composes the backend's parts. ctx applies only to the
// startup.
func New(ctx context.Context, o Options) (*App, error) {
	c := o.Config
	d, err := db.Open(ctx, c.Database, o.Log)
	if err != nil {
		return nil, err
	}
	if err := d.KeepKey(ctx, secret.NewHasher(c.HMACKey).Check()); err != nil {
		d.Close()
		return nil, err
	}
	ended := 0
	if o.EndBrowserSessions {
		if ended, err = account.NewStore(d).EndAllWebSessions(ctx); err != nil {
			d.Close()
			return nil, fmt.Errorf("end browser sessions: %w", err)
		}
		o.Log.Info("signed out all browsers", "count", ended)
	}
	a := &App{config: c, log: o.Log, db: d, signedOut: ended > 0, limits: o.ConnLimits.orDefaults()}
	if o.Embedded {
		a.usage = newConnUsage()
	}
	if err := a.compose(o); err != nil {
		d.Close()
		return nil, err
	}
	return a, nil
}

// Handler returns the handler of all routes and pages.
func (a *App) Handler() http.Handler { return a.handler }

// Accounts returns the account service.
func (a *App) Accounts() *account.Service { return a.accounts }

// Close closes the database of an App that was never served.
func (a *App) Close() error { return a.db.Close() }

// Activity returns the number of attached apps and pages, and the number of device codes that wait for a decision. A
// backend with neither is idle.
func (a *App) Activity(ctx context.Context) (connections, pendingCodes int, err error) {
	pendingCodes, err = a.links.PendingCodes(ctx)
	return a.hub.Connections(), pendingCodes, err
}

// Idle returns how long an embedded backend has been idle: no request or model call in progress, no app or page
// attached, and no device code pending. It returns 0 if the backend is in use.
func (a *App) Idle(ctx context.Context) (time.Duration, error) {
	connections, pending, err := a.Activity(ctx)
	if err != nil {
		return 0, err
	}
	if connections+pending+a.gateway.Running() > 0 {
		a.usage.touch()
	}
	return a.usage.idle(), nil
}

// Serve serves on the listeners until ctx ends and then drains the backend. It accepts no new requests and lets open
// ones finish within the drain timeout. Then it asks live connections to reconnect, commits pending rows, sends
// queued mail and closes the database.
func (a *App) Serve(ctx context.Context, listeners ...net.Listener) error {
	defer a.db.Close()
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	server := &http.Server{
		Handler: a.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	if a.usage != nil {
		server.ConnState = a.usage.note
	}
	group, ctx := errgroup.WithContext(ctx)
	open := limit.NewSlots(limit.Bounds{Running: math.MaxInt, RunningEach: a.limits.PerAddress})
	for _, l := range listeners {
		group.Go(func() error {
			if err := server.Serve(a.limitConnections(l, open)); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	for _, s := range a.serving {
		group.Go(func() error { return s.Serve(ctx) })
	}
	group.Go(func() error {
		tick := time.NewTicker(idleInterval)
		defer tick.Stop()
		freeIdleMemory(ctx, tick.C, a.hub.Connections, debug.FreeOSMemory)
		return nil
	})
	endLast := serveLast(ctx, group, a.last)
	group.Go(func() error {
		<-ctx.Done()
		defer endLast()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.config.DrainTimeout)
		defer cancel()
		if err := server.Shutdown(drain); err != nil {
			a.log.Warn("aborted open requests after the drain timeout", "err", err)
			server.Close()
		}
		return nil
	})
	return group.Wait()
}

// serveLast runs the parts in group. The returned function stops them in order and waits for each to end.
func serveLast(ctx context.Context, group *errgroup.Group, parts []server) (end func()) {
	var ends []func()
	for _, s := range parts {
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		ended := make(chan struct{})
		group.Go(func() error {
			defer close(ended)
			return s.Serve(own)
		})
		ends = append(ends, func() { cancel(); <-ended })
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
