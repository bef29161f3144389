// Package server configures, runs and drains a backend, for service-backend and for the adapter that embeds one. It
// must not depend on the backend's features.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/app"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/internal/loopback"
)

// Options configure an embedded backend.
type Options struct {
	// DataDir contains the database, the key, the instance's ID and its port. It is created if missing, and its mode is
	// always set to 0700.
	DataDir string
	// StateDir is the state directory of the daemon that runs the backend, for the commands on its pages; "" for the
	// default directory.
	StateDir string
	// Listeners are the daemon's listeners. The daemon keeps their address open while the backend is not running. If
	// the list is empty, the backend listens itself.
	Listeners []*net.TCPListener
	Log       *slog.Logger
	// HTTP is the client for requests to AI providers; nil uses the proxy and the certificates of the process.
	HTTP *http.Client
	// CodeTTL and PollInterval override the defaults; for tests.
	CodeTTL, PollInterval time.Duration
	// Probe reports whether the owners of connections can be determined; nil queries the system. For tests.
	Probe func() error
}

// Server is an embedded backend that listens on loopback.
type Server struct {
	app       *app.App
	id        string
	url       string // address for programs
	siteURL   string // address for browsers
	word      string
	listeners []net.Listener
	pausable  []*pausableListener // below listeners, if these belong to the daemon
}

// New opens the data directory and starts to listen. Requests are answered only while Serve runs.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	kept, err := openData(o.DataDir)
	if err != nil {
		return nil, err
	}
	listeners, pausable, err := listen(ctx, o, kept.port)
	if err != nil {
		return nil, err
	}
	port := loopback.Port(listeners[0])
	who, err := protect(o, listeners)
	if err != nil {
		_ = loopback.Close(listeners)
		return nil, err
	}
	at := ":" + strconv.Itoa(port)
	s := &Server{id: kept.id, url: "http://localhost" + at, siteURL: "http://" + siteHost(kept.id) + at, word: who.word,
		listeners: who.listeners, pausable: pausable}
	settings := config.Embedded(o.DataDir, s.url, s.siteURL, kept.key, kept.seal)
	if o.CodeTTL > 0 {
		settings.CodeTTL = o.CodeTTL
	}
	if o.PollInterval > 0 {
		settings.PollInterval = o.PollInterval
	}
	s.app, err = app.New(ctx, app.Options{
		Config: settings, Embedded: true, StateDir: o.StateDir, InstanceID: kept.id, Log: o.Log, HTTP: o.HTTP,
		SignInWord:         who.word,
		EndBrowserSessions: mustSignInAgain(kept.port, port, who),
	})
	if err != nil {
		_ = loopback.Close(listeners)
		if errors.Is(err, db.ErrOtherKey) {
			return nil, &otherKeyError{database: settings.Database, key: filepath.Join(o.DataDir, keyFile)}
		}
		return nil, err
	}
	// The port is saved last: if a start fails earlier, the next start still detects that the port changed.
	if port != kept.port {
		if err := writeKept(o.DataDir, portFile, strconv.Itoa(port)); err != nil {
			_ = loopback.Close(listeners)
			s.app.Close()
			return nil, err
		}
	}
	return s, nil
}

// ErrOtherKey reports that a data directory's key does not match its database. A retry does not help.
var ErrOtherKey = db.ErrOtherKey

// otherKeyError is ErrOtherKey with a text for users who have never set a key.
type otherKeyError struct{ database, key string }

func (e *otherKeyError) Error() string {
	return e.key + " is not the key of the database next to it: restore the key of that database; or, to continue " +
		"without it, " +
		"stop the service and run: service-backend admin replace-key --database \"" + e.database + "\" --hmac-key-file \"" +
		e.key + "\"; " +
		"or move the directory away to start with a new one"
}

func (e *otherKeyError) Unwrap() error { return ErrOtherKey }

// ID returns the instance's name, which never changes for a data directory.
func (s *Server) ID() string { return s.id }

// SignInWord returns the word that users must enter to sign up or sign in, because the owners of connections cannot
// be determined. It is empty if the owners can be determined.
func (s *Server) SignInWord() string { return s.word }

// URL returns http://localhost:PORT, the address for programs. The port stays the same across restarts if possible.
func (s *Server) URL() string { return s.url }

// SiteURL returns the address of the pages, http://service-ID.localhost:PORT. Browsers resolve this name to this
// machine, but not every program does.
func (s *Server) SiteURL() string { return s.siteURL }

// LoopbackURL returns the address for this process's own calls with secrets. It always leads to our own listener. At
// localhost, another user's listener on ::1 could respond if that address became available after the start.
func (s *Server) LoopbackURL() string { return "http://" + s.listeners[0].Addr().String() }

// Handler serves every route, for callers inside the process.
func (s *Server) Handler() http.Handler { return s.app.Handler() }

// Activity returns the number of attached apps and pages, and the number of codes that wait for a decision.
func (s *Server) Activity(ctx context.Context) (connections, pendingCodes int, err error) {
	return s.app.Activity(ctx)
}

// Serve serves until ctx ends, and then drains. It returns once everything is closed.
func (s *Server) Serve(ctx context.Context) error { return s.app.Serve(ctx, s.listeners...) }

// ErrNoKey is returned if a backend that is not embedded has no key.
var ErrNoKey = errors.New("no key for stored hashes: set SERVICE_BACKEND_HMAC_KEY or hmac_key_file (make one with: " +
	"openssl rand -hex 32)")
