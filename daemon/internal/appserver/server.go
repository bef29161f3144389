// Package appserver is the WebSocket server for apps on this machine that attach to local sessions. It listens on the
// loopback address, keeps its port across restarts, authenticates connections and enforces the limits of the hello. It
// passes frames to and from the session without interpreting them.
package appserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/internal/loopback"
)

// Sessions manages the local sessions.
type Sessions interface {
	// Attach attaches an app to a session. It returns a *session.Refusal if the session rejects the app.
	Attach(id string, hello glasses.Hello, helloID string, peer host.Receiver) (*session.App, error)
	// RenewSecrets replaces the secrets of all sessions.
	RenewSecrets() error
	// OpensAssistant reports whether token gives access to a session's assistant.
	OpensAssistant(token string) bool
	// AskAssistant and Converse use that assistant: for one answer, or for a realtime conversation. user is the secret of
	// the user to remember, or empty. They return a *assistantscript.Failure on failure.
	AskAssistant(ctx context.Context, token, user string, body []byte) (session.AssistantReply, error)
	Converse(token, user string, rate int, peer host.Receiver) (*session.Conversation, error)
	// Memory, SetMemory and EraseMemory read, replace and delete what is known about a user. They return a
	// *assistantscript.Failure on failure.
	Memory(token, user string) (profiles.Profile, error)
	SetMemory(token, user, text string) (profiles.Profile, error)
	EraseMemory(token, user string) error
}

// Options configures a Server. Dir and Log are required; the durations and sizes have defaults, which tests shorten.
type Options struct {
	// Dir is the directory of the sessions in the state directory. The port is saved there.
	Dir string
	Log *slog.Logger

	HelloWait  time.Duration // how long to wait for an app's first frame; 5 s
	PingEvery  time.Duration // 8 s; the app is disconnected if no pong arrives within the same time
	OutboxSize int           // limit on frames queued for one app; 4096, and a quarter of that for stream frames
	OutboxMax  int           // limit on bytes of all queued frames; 32 MiB, and a quarter of that for stream frames

	// Probe returns an error if the owner of a connection cannot be determined. If Probe is nil, the server asks the
	// system. Tests set it.
	Probe func() error
}

// portName is the name of the file that contains the port.
const portName = "door.port"

// Server is the app server. It starts listening on first use.
type Server struct {
	o        Options
	sessions Sessions
	group    *host.Group
	pending  atomic.Int64 // connections that have not sent a hello

	mu        sync.Mutex
	base      string // ws://127.0.0.1:PORT
	server    *http.Server
	isClosing bool
	life      context.Context
	end       context.CancelFunc
	wg        sync.WaitGroup // counts the server and the handlers of attached apps
}

// New returns a server without sessions. Call SetSessions before any other method.
func New(o Options) *Server {
	o.HelloWait = cmp.Or(o.HelloWait, 5*time.Second)
	o.PingEvery = cmp.Or(o.PingEvery, 8*time.Second)
	o.OutboxSize = cmp.Or(o.OutboxSize, 4096)
	o.OutboxMax = cmp.Or(o.OutboxMax, 32<<20)
	s := &Server{o: o, group: host.NewGroup(broker.Bounds{
		Frames: o.OutboxSize, Bytes: o.OutboxMax, StreamFrames: o.OutboxSize / 4, StreamBytes: o.OutboxMax / 4,
	}, o.Log)}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// SetSessions sets the sessions. Call it exactly once, before any other method.
func (s *Server) SetSessions(sessions Sessions) { s.sessions = sessions }

// Serve waits until ctx ends, then stops listening, closes every connection and waits for its handler. If listen is
// set, it starts listening right away, because apps of an earlier daemon may reconnect.
func (s *Server) Serve(ctx context.Context, listen bool) error {
	if listen {
		if _, err := s.listen(); err != nil {
			s.o.Log.Warn("failed to start the app server", "err", err)
		}
	}
	<-ctx.Done()
	s.mu.Lock()
	s.isClosing = true
	server := s.server
	s.mu.Unlock()
	if server != nil {
		_ = server.Close() // hijacked connections stay open
	}
	s.end()
	s.wg.Wait()
	return nil
}

// AppEndpoint starts listening if necessary and returns the WebSocket address of a session.
func (s *Server) AppEndpoint(_ context.Context, id string) (string, error) {
	base, err := s.listen()
	if err != nil {
		return "", err
	}
	return base + "/api/sessions/" + url.PathEscape(id) + "/app", nil
}

// GatewayURL starts listening if necessary and returns the base URL at which assistants call models.
func (s *Server) GatewayURL(context.Context) (string, error) {
	base, err := s.listen()
	return "http" + strings.TrimPrefix(base, "ws") + gatewayPath, err
}

var errClosing = errors.New("the daemon is stopping")

func (s *Server) listen() (base string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosing {
		return "", errClosing
	}
	if s.server != nil {
		return s.base, nil
	}
	l, err := s.listenOwn()
	if err != nil {
		return "", fmt.Errorf("listen on the loopback address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/sessions/{id}/app", s.serveApp)
	s.mountGateway(mux)
	s.server = &http.Server{
		Handler: requireLocal(mux), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}
	s.base = "ws://" + l.Addr().String()
	s.wg.Go(func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.o.Log.Error("app server failed", "err", err)
		}
	})
	return s.base, nil
}

// listenOwn returns a listener that accepts connections from this user only, because other users of this machine share
// the loopback address. An app that reconnects while no daemon is running sends its secret to whichever program listens
// on the port. Other users cannot use that secret, because the listener refuses their connections. listenOwn still
// replaces the secrets in two cases: if the port had to change, because another program then uses the old port, and at
// every start if the owner of a connection cannot be determined.
func (s *Server) listenOwn() (net.Listener, error) {
	l, isSame, err := s.listenSaved()
	if err != nil {
		return nil, err
	}
	probe := s.o.Probe
	if probe == nil {
		probe = loopback.ProbePeers
	}
	probeErr := probe()
	if !isSame || probeErr != nil {
		if err := s.sessions.RenewSecrets(); err != nil {
			l.Close()
			return nil, err
		}
	}
	if !isSame {
		s.savePort(l)
	}
	if probeErr != nil {
		s.o.Log.Warn("cannot determine the owner of a connection; only an app's secret keeps other users out",
			"err", probeErr)
		return l, nil
	}
	return loopback.Guard(l, func(err error) { s.o.Log.Warn("refused an app's connection", "err", err) }), nil
}

// listenSaved listens on the saved port, so that apps find their session again. If that fails, it listens on any port.
func (s *Server) listenSaved() (l net.Listener, isSame bool, err error) {
	var listen net.ListenConfig
	path := filepath.Join(s.o.Dir, portName)
	if data, err := statefile.Read(path, 64); err == nil {
		if port, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 16); err == nil && port >= 1024 {
			if l, err := listen.Listen(s.life, "tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				return l, true, nil
			}
		}
	}
	l, err = listen.Listen(s.life, "tcp4", "127.0.0.1:0")
	return l, false, err
}

// savePort saves the port for the next start.
func (s *Server) savePort(l net.Listener) {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	err := os.MkdirAll(s.o.Dir, 0o700)
	if err == nil {
		err = statefile.Write(filepath.Join(s.o.Dir, portName), []byte(port+"\n"))
	}
	if err != nil {
		s.o.Log.Warn("failed to save the port for apps", "err", err)
	}
}

// requireLocal refuses requests that a foreign page may have caused: requests to another host name for this address
// (DNS rebinding) and requests from the origin of a website. Apps in a browser on this machine have a loopback origin;
// other apps have no origin.
func requireLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback.IsHost((&url.URL{Host: r.Host}).Hostname()) {
			http.Error(w, "this address is for apps on this machine; call it as 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			u, err := url.Parse(origin)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || !loopback.IsBrowserHost(u.Hostname()) {
				http.Error(w, "pages of other sites cannot attach to a session", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
