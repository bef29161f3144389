// Package server is the one door into the backend: service-backend and the embedding adapter configure, run and drain
// it here. It knows how a backend is started, and leaves what it does to the rooms inside.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/service-dev/service/backend/internal/app"
	"github.com/service-dev/service/backend/internal/config"
)

// Options configure an embedded backend.
type Options struct {
	// DataDir holds the database, the key, the instance's id and its port; made 0700 when absent.
	DataDir string
	Log     *slog.Logger
	// CodeTTL and PollInterval override the defaults; for tests.
	CodeTTL, PollInterval time.Duration
}

// Server is an embedded backend that listens on loopback.
type Server struct {
	app       *app.App
	id, url   string
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
	if port != kept.port {
		if err := writeKept(o.DataDir, portFile, strconv.Itoa(port)); err != nil {
			closeAll(listeners)
			return nil, err
		}
	}
	s := &Server{id: kept.id, url: "http://localhost:" + strconv.Itoa(port), listeners: listeners}
	settings := config.Embedded(o.DataDir, s.url, kept.key)
	if o.CodeTTL > 0 {
		settings.CodeTTL = o.CodeTTL
	}
	if o.PollInterval > 0 {
		settings.PollInterval = o.PollInterval
	}
	s.app, err = app.New(ctx, app.Options{Config: settings, Embedded: true, InstanceID: kept.id, Log: o.Log})
	if err != nil {
		closeAll(listeners)
		return nil, err
	}
	return s, nil
}

// ID is the instance's name, stable for the life of the data directory.
func (s *Server) ID() string { return s.id }

// URL is http://localhost:PORT; the port is kept over restarts where it can be.
func (s *Server) URL() string { return s.url }

// Handler serves every route, for callers inside the process.
func (s *Server) Handler() http.Handler { return s.app.Handler() }

// Activity counts attached apps and pages, and codes that wait for a person.
func (s *Server) Activity(ctx context.Context) (connections, pendingCodes int, err error) {
	return s.app.Activity(ctx)
}

// Serve answers until ctx ends and drains. It returns when everything is closed.
func (s *Server) Serve(ctx context.Context) error { return s.app.Serve(ctx, s.listeners...) }

// listen takes the port on 127.0.0.1 and, where there is one, on ::1. Port 0, or one that is taken, gives a new one.
func listen(ctx context.Context, port int) ([]net.Listener, int, error) {
	var lc net.ListenConfig
	v4, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil && port != 0 {
		v4, err = lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("listening on loopback: %w", err)
	}
	port = v4.Addr().(*net.TCPAddr).Port
	listeners := []net.Listener{v4}
	if v6, err := lc.Listen(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(port))); err == nil {
		listeners = append(listeners, v6)
	}
	return listeners, port, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// ErrNoKey refuses to start a backend that is not embedded and was given no key.
var ErrNoKey = errors.New("no key for stored hashes: set SERVICE_BACKEND_HMAC_KEY or hmac_key_file (make one with: openssl rand -hex 32)")
