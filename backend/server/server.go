// Package server configures, runs and drains a backend, for service-backend and for the adapter that embeds one. It
// must not know what the backend does.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/app"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/sqlstore"
)

// Options configure an embedded backend.
type Options struct {
	// DataDir holds the database, the key, the instance's id and its port; it is made when absent and kept at 0700.
	DataDir string
	Log     *slog.Logger
	// CodeTTL and PollInterval override the defaults; for tests.
	CodeTTL, PollInterval time.Duration
	// Probe reports whether the owners of connections can be learnt; nil asks the system. For tests.
	Probe func() error
}

// Server is an embedded backend that listens on loopback.
type Server struct {
	app       *app.App
	id, url   string
	word      string
	listeners []net.Listener
}

// New opens the data directory and starts to listen; nothing is answered before Serve.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	kept, err := openData(o.DataDir)
	if err != nil {
		return nil, err
	}
	listeners, port, err := listen(ctx, kept.port)
	if err != nil {
		return nil, err
	}
	who, err := protect(o, listeners)
	if err != nil {
		closeAll(listeners)
		return nil, err
	}
	s := &Server{id: kept.id, url: "http://localhost:" + strconv.Itoa(port), word: who.word, listeners: who.listeners}
	settings := config.Embedded(o.DataDir, s.url, kept.key, kept.seal)
	if o.CodeTTL > 0 {
		settings.CodeTTL = o.CodeTTL
	}
	if o.PollInterval > 0 {
		settings.PollInterval = o.PollInterval
	}
	s.app, err = app.New(ctx, app.Options{
		Config: settings, Embedded: true, InstanceID: kept.id, Log: o.Log, SignInWord: who.word,
		EndBrowserSessions: mustSignInAgain(kept.port, port, who),
	})
	if err != nil {
		closeAll(listeners)
		if errors.Is(err, sqlstore.ErrOtherKey) {
			return nil, &otherKeyError{database: settings.Database, key: filepath.Join(o.DataDir, keyFile)}
		}
		return nil, err
	}
	// The port is kept last: a start that ends before this point must not hide from the next one that it changed.
	if port != kept.port {
		if err := writeKept(o.DataDir, portFile, strconv.Itoa(port)); err != nil {
			closeAll(listeners)
			s.app.Close()
			return nil, err
		}
	}
	return s, nil
}

// ErrOtherKey tells that a data directory's key is not its database's. That does not heal by itself.
var ErrOtherKey = sqlstore.ErrOtherKey

// otherKeyError is ErrOtherKey in words for somebody who never set a key.
type otherKeyError struct{ database, key string }

func (e *otherKeyError) Error() string {
	return e.key + " is not the key that the database beside it was made with: put that one back; or, to go on without " +
		"it, " +
		"stop the service and run: service-backend admin replace-key --database \"" + e.database + "\" --hmac-key-file \"" +
		e.key + "\"; " +
		"or move the directory away to begin anew"
}

func (e *otherKeyError) Unwrap() error { return ErrOtherKey }

// ID is the instance's name, stable for the life of the data directory.
func (s *Server) ID() string { return s.id }

// SignInWord is what people must enter to sign up or in, because other users' browsers cannot be told from theirs. It
// is empty where they can.
func (s *Server) SignInWord() string { return s.word }

// URL is http://localhost:PORT; the port is kept over restarts where it can be.
func (s *Server) URL() string { return s.url }

// LoopbackURL is the address by which this process calls the backend with secrets. It is a listener of ours for
// certain: by the name localhost, another user's listener on ::1 could answer if that address came up after the start.
func (s *Server) LoopbackURL() string { return "http://" + s.listeners[0].Addr().String() }

// Handler serves every route, for callers inside the process.
func (s *Server) Handler() http.Handler { return s.app.Handler() }

// Activity counts attached apps and pages, and codes that wait for a person.
func (s *Server) Activity(ctx context.Context) (connections, pendingCodes int, err error) {
	return s.app.Activity(ctx)
}

// Serve answers until ctx ends and drains. It returns when everything is closed.
func (s *Server) Serve(ctx context.Context) error { return s.app.Serve(ctx, s.listeners...) }

// listen takes the port on 127.0.0.1 and, where there is one, on ::1: a browser may mean either by localhost, so a port
// that somebody else has on one of them is of no use. Port 0, or one that is taken, gives a new one.
func listen(ctx context.Context, port int) ([]net.Listener, int, error) {
	hosts := []string{"127.0.0.1"}
	if probe, err := listenOn(ctx, "::1", 0); err == nil {
		probe.Close()
		hosts = append(hosts, "::1")
	}
	const tries = 10
	for try := 1; ; try++ {
		listeners, got, err := listenAll(ctx, hosts, port)
		if err == nil {
			return listeners, got, nil
		}
		if try == tries || ctx.Err() != nil {
			return nil, 0, fmt.Errorf("listening on loopback: %w", err)
		}
		port = 0
	}
}

// listenAll takes one port on every host.
func listenAll(ctx context.Context, hosts []string, port int) ([]net.Listener, int, error) {
	var listeners []net.Listener
	for _, host := range hosts {
		l, err := listenOn(ctx, host, port)
		if err != nil {
			closeAll(listeners)
			return nil, 0, err
		}
		port = l.Addr().(*net.TCPAddr).Port
		listeners = append(listeners, l)
	}
	return listeners, port, nil
}

func listenOn(ctx context.Context, host string, port int) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// ErrNoKey refuses to start a backend that is not embedded and was given no key.
var ErrNoKey = errors.New("no key for stored hashes: set SERVICE_BACKEND_HMAC_KEY or hmac_key_file (make one with: " +
	"openssl rand -hex 32)")
