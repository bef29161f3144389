// Package appdoor is where apps on this machine attach to local sessions: a WebSocket listener on the loopback address
// that keeps its port over restarts. It checks who calls, reads the hello within its limits, and moves frames; what a
// frame means is the session's business.
package appdoor

import (
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

	"golang.org/x/time/rate"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/peerowner"
)

// Rooms lets apps in. The error is a *session.Refusal.
type Rooms interface {
	Attach(id string, hello glasses.Hello, helloID string, peer session.Peer) (*session.App, error)
	// RenewSecrets replaces the secret of every session.
	RenewSecrets() error
}

// Options are the parts of a Door. Dir and Log are required; the durations and sizes have defaults that tests shorten.
type Options struct {
	// Dir is the sessions' folder of the state directory; it keeps the port.
	Dir string
	Log *slog.Logger

	HelloWait  time.Duration // for an app's first frame; 5 s
	PingEvery  time.Duration // 8 s; an app that does not answer within as much again is gone
	OutboxSize int           // frames that wait for one app; 4096
	OutboxMax  int           // their bytes; 32 MiB
	FrameRate  int           // frames a second that are read of one app, and at once; 2000

	// Probe reports whether the owners of connections can be learnt; nil asks the system. For tests.
	Probe func() error
}

// portName is the file that remembers the port.
const portName = "door.port"

// Door is the listener. It opens when it is first needed.
type Door struct {
	o     Options
	rooms Rooms

	mu      sync.Mutex
	base    string // ws://127.0.0.1:PORT
	server  *http.Server
	closing bool
	life    context.Context
	end     context.CancelFunc
	wg      sync.WaitGroup // the server, and handlers of attached apps

	strangers atomic.Int64
}

// New makes a door that leads to no rooms yet.
func New(o Options) *Door {
	setDefault(&o.HelloWait, 5*time.Second)
	setDefault(&o.PingEvery, 8*time.Second)
	setDefault(&o.OutboxSize, 4096)
	setDefault(&o.OutboxMax, 32<<20)
	setDefault(&o.FrameRate, 2000)
	d := &Door{o: o}
	d.life, d.end = context.WithCancel(context.Background())
	return d
}

func setDefault[T time.Duration | int](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// LeadTo tells the door where apps go. It is called once, before anything else.
func (d *Door) LeadTo(rooms Rooms) { d.rooms = rooms }

// Serve waits until ctx ends, then stops listening, ends every connection and waits for them. With open it listens from
// the beginning: apps of an earlier daemon may come back.
func (d *Door) Serve(ctx context.Context, open bool) error {
	if open {
		if _, err := d.listen(); err != nil {
			d.o.Log.Warn("opening the door for apps", "err", err)
		}
	}
	<-ctx.Done()
	d.mu.Lock()
	d.closing = true
	server := d.server
	d.mu.Unlock()
	if server != nil {
		_ = server.Close() // it does not know of hijacked connections
	}
	d.end()
	d.wg.Wait()
	return nil
}

// AppEndpoint opens the door when it is closed, and gives the WebSocket address of a session.
func (d *Door) AppEndpoint(_ context.Context, id string) (string, error) {
	base, err := d.listen()
	if err != nil {
		return "", err
	}
	return base + "/api/sessions/" + url.PathEscape(id) + "/app", nil
}

var errClosing = errors.New("the daemon is stopping")

func (d *Door) listen() (base string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return "", errClosing
	}
	if d.server != nil {
		return d.base, nil
	}
	l, err := d.ownPort()
	if err != nil {
		return "", fmt.Errorf("listening on the loopback address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/sessions/{id}/app", d.serveApp)
	d.server = &http.Server{
		Handler: d.guard(mux), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(d.o.Log.Handler(), slog.LevelDebug),
	}
	d.base = "ws://" + l.Addr().String()
	d.wg.Go(func() {
		if err := d.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			d.o.Log.Error("the door for apps", "err", err)
		}
	})
	return d.base, nil
}

// ownPort listens and keeps other users of this machine out, who share the loopback address. An app that comes back
// while no daemon runs shows its secret to whoever has the port. Where other users' connections are refused, what they
// were shown is of no use to them. Still, secrets are replaced when the port had to change, for somebody else has the old
// one, and at every start where owners cannot be learnt.
func (d *Door) ownPort() (net.Listener, error) {
	l, same, err := d.takePort()
	if err != nil {
		return nil, err
	}
	probe := d.o.Probe
	if probe == nil {
		probe = peerowner.Probe
	}
	unknown := probe()
	if !same || unknown != nil {
		if err := d.rooms.RenewSecrets(); err != nil {
			l.Close()
			return nil, err
		}
	}
	if !same {
		d.keepPort(l)
	}
	if unknown != nil {
		d.o.Log.Warn("the owners of connections cannot be learnt; only an app's secret keeps other users out", "err", unknown)
		return l, nil
	}
	return peerowner.Guard(l, func(err error) { d.o.Log.Warn("refused an app's connection", "err", err) }), nil
}

// takePort takes the port of last time, so that apps find their session again; else any.
func (d *Door) takePort() (l net.Listener, same bool, err error) {
	var listen net.ListenConfig
	path := filepath.Join(d.o.Dir, portName)
	if data, err := statefile.Read(path, 64); err == nil {
		if port, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 16); err == nil && port >= 1024 {
			if l, err := listen.Listen(d.life, "tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				return l, true, nil
			}
		}
	}
	l, err = listen.Listen(d.life, "tcp4", "127.0.0.1:0")
	return l, false, err
}

// keepPort remembers the port for the next start.
func (d *Door) keepPort(l net.Listener) {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	err := os.MkdirAll(d.o.Dir, 0o700)
	if err == nil {
		err = statefile.Write(filepath.Join(d.o.Dir, portName), []byte(port+"\n"))
	}
	if err != nil {
		d.o.Log.Warn("remembering the port for apps", "err", err)
	}
}

// guard refuses whoever was led here by a foreign page: another host name for this address (DNS rebinding), or the
// origin of a site. Apps in a browser on this machine have a loopback origin, other apps none.
func (d *Door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host) {
			http.Error(w, "this address is for apps on this machine, as 127.0.0.1 or localhost", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			u, err := url.Parse(origin)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || !loopback(u.Host) {
				http.Error(w, "pages of other sites may not attach here", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// loopback tells whether host, with or without a port, is this machine's own.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// limiter slows the reader of an app that sends more than its share; nothing is lost.
func (d *Door) limiter() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(d.o.FrameRate), d.o.FrameRate)
}
