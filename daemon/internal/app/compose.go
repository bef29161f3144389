package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/appserver"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/daemon/internal/fontstore"
	"github.com/service-dev/service/daemon/internal/identity"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/mcpgate"
	"github.com/service-dev/service/daemon/internal/pairs"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/daemon/internal/telemetry"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

// daemon holds the components of a daemon.
type daemon struct {
	paths        rendezvous.Paths
	log          *slog.Logger
	level        *slog.LevelVar
	now          func() time.Time
	notify       Notifier
	keepsRunning bool // never stop when idle, because no one would start the daemon again
	program      program
	blocked      *problem.Error // why adapters and sockets are unavailable; nil outside a sandbox

	install  *identity.Install
	files    *statefile.Watch
	config   *config.Store
	accounts *account.Store
	fonts    *fontstore.Store // nil in a sandbox
	consent  *consent.Store
	recorder *telemetry.Recorder
	clients  *clientio.Registry
	host     *pluginhost.Host
	link     *link.Manager
	apps     *appserver.Server // nil in a sandbox
	pairs    *pairs.Store
	sessions *session.Manager
	tools    *tools.Catalogue
	gate     *mcpgate.Gate
	control  *control.Server

	end    context.CancelCauseFunc
	reason atomic.Value

	components componentTracker
	stopLimit  time.Duration
	further    []component
}

// compose creates a daemon without starting any component or adapter.
func compose(o Options, paths rendezvous.Paths, log *slog.Logger, level *slog.LevelVar) (*daemon, error) {
	p := &daemon{
		paths: paths, log: log, level: level, now: o.Now, notify: o.Notify, keepsRunning: o.Managed && !o.activated,
		program: currentProgram(), stopLimit: cmp.Or(o.stopLimit, stopLimit), further: o.further,
	}
	var err error
	p.host, err = pluginhost.New(pluginhost.Options{
		Dir: o.AdapterDir, ConfigDir: paths.Dir, SocketDir: paths.Adapters(), Log: log, Now: o.Now,
		Elsewhere: p.program.isElsewhere, Outbound: p.outbound, Explain: p.explain,
	})
	if err != nil {
		return nil, err
	}
	if err := p.assemble(); err != nil {
		return nil, err
	}
	p.fonts = fontstore.Open(fontstore.Options{StateDir: paths.Dir, Use: p.host.UseFonts, Log: log, Now: o.Now})
	p.recorder.Started()
	p.control = control.New(control.Options{
		About: control.About{
			Version: buildinfo.Version, PID: os.Getpid(), Started: o.Now(), Managed: o.Managed, SocketActivated: o.activated,
			Paths: paths, Program: p.program.path,
		},
		Daemon: facade{p}, Tools: p.tools, Fonts: p.fonts,
		ClientIO: p.clients.ForToken,
		Log:      log, Now: o.Now,
	})
	return p, nil
}

// assemble creates the components shared by a daemon and the in-process mode. The state files come first.
func (d *daemon) assemble() (err error) {
	dir := d.paths.Dir
	if err := statefile.Sweep(dir, d.now()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("failed to remove leftovers of interrupted writes", "err", err)
	}
	if d.install == nil {
		if d.install, err = identity.Open(dir, d.now(), d.log); err != nil {
			return err
		}
	}
	d.files = statefile.NewWatch(dir, d.log)
	if d.config, err = config.Open(dir, d.files.Changed(config.FileName), d.log); err != nil {
		return err
	}
	d.level.Set(d.config.Current().LogLevel)
	d.accounts = account.Open(account.Options{
		Dir: dir, Backend: d.ownBackend, Changed: d.files.Changed(account.FileName), Now: d.now, Log: d.log,
		Wrote: func(data []byte) { d.files.Wrote(account.FileName, data) },
	})
	d.consent = consent.New(dir)
	d.recorder = d.newRecorder()
	d.clients = clientio.NewRegistry()
	d.link = link.New(link.Options{
		Backend: d.host, Accounts: d.accounts,
		Codes: d.issuedCodes(), Config: d.config.Current, Record: d.recorder, InstallID: d.install.ID(), Log: d.log, Now: d.now,
	})
	d.assembleSessions()
	d.tools = tools.New(tools.Options{
		Links: d.link, Accounts: facade{d}, Browser: browser{}, Telemetry: d.recorder, Now: d.now,
		Sessions: d.sessions, Scenarios: scenario.New(d.sessions), Records: d.host, Transports: d.host,
	})
	d.gate = mcpgate.New(mcpgate.Options{
		Catalogue: d.tools, Pages: docs.Pages(), Version: buildinfo.Version, Admit: control.CheckPeer,
		Process: control.PeerProcess, ClientIO: d.clients, Notices: d.recorder, Log: d.log,
	})
	return nil
}

// ownBackend returns the backend for calls whose environment does not select one.
func (d *daemon) ownBackend() string {
	b, _ := d.config.Current().Backend(caller.Caller{}) // cannot fail without an environment
	return b.URL
}

func (d *daemon) issuedCodes() link.IssuedCodes {
	if d.blocked != nil {
		return blockedCodes{d.blocked}
	}
	return codes.New(d.paths.Run, d.now, d.log)
}

// assembleSessions creates the sessions and, outside a sandbox, the app server. In a sandbox it does not restore local
// sessions, because they may belong to a running daemon.
func (d *daemon) assembleSessions() {
	d.pairs = pairs.Open(d.paths.Dir, d.now, d.log)
	o := session.Options{
		StateDir: d.paths.Dir, Backend: d.host,
		Log: d.log, Now: d.now, Pairs: d.pairs,
	}
	if d.blocked != nil {
		o.LocalRefused = d.blocked
		d.sessions = session.New(o)
		return
	}
	d.apps = appserver.New(appserver.Options{Dir: filepath.Join(d.paths.Dir, session.Dir), Log: d.log})
	o.Transports, o.Endpoints = d.host, d.apps
	d.sessions = session.New(o)
	d.apps.SetSessions(d.sessions)
}

// composeInProcess creates a daemon without sockets and adapters, which serves one agent in a sandbox.
func composeInProcess(o Options, paths rendezvous.Paths, log *slog.Logger, level *slog.LevelVar) (*daemon, error) {
	problem := sandboxProblem(paths.MCP)
	install, err := openInSandbox(paths.Dir, o.Now(), log)
	if err != nil {
		problem = directoryProblem(paths.Dir, err)
	}
	p := &daemon{
		paths: paths, log: log, level: level, now: o.Now, blocked: problem, host: pluginhost.Unavailable(problem),
		stopLimit: stopLimit, install: install,
	}
	return p, p.assemble()
}

// background returns the components that stop after the sockets.
func (d *daemon) background() []component {
	list := []component{{"file watch", d.files.Serve}, {"account", d.accounts.Serve}, {"config", d.config.Serve}}
	if d.blocked != nil {
		list = append(list, component{"link", d.link.Serve})
	} else { // the link revokes tokens at shutdown, which needs the adapters
		list = append(list, component{"sessions", func(ctx context.Context) error {
			if strings.HasPrefix(d.ownBackend(), backend.EmbeddedURL) {
				d.host.AwaitConnections(ctx)
			}
			return d.serveSessions(ctx, component{"telemetry", d.recorder.Serve}, component{"link", d.link.Serve})
		}})
	}
	return append(list, d.further...)
}

// serveSessions runs the app server, the sessions, the components in others, and the adapters. The adapters stop last,
// because the other components may use them while stopping.
func (d *daemon) serveSessions(ctx context.Context, others ...component) error {
	hosting, endHost := context.WithCancel(context.WithoutCancel(ctx))
	defer endHost()
	var host, front errgroup.Group
	host.Go(func() error { return d.components.run(hosting, component{"adapters", d.host.Serve}) })
	others = append(others,
		component{"app listener", func(ctx context.Context) error { return d.apps.Serve(ctx, d.sessions.AnyLocal()) }},
		component{"local sessions", d.sessions.Serve})
	for _, component := range others {
		front.Go(func() error { return d.components.run(ctx, component) })
	}
	err := front.Wait()
	endHost()
	return errors.Join(err, host.Wait())
}

// runBackground runs the background components until ctx ends. It closes the returned channel when all of them have
// stopped.
func (d *daemon) runBackground(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	var all errgroup.Group
	for _, component := range d.background() {
		all.Go(func() error { return d.components.run(ctx, component) })
	}
	go func() {
		defer close(done)
		if err := all.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			d.log.Error("component failed", "err", err)
		}
	}()
	return done
}

// backendOf returns the backend that the caller uses.
func (d *daemon) backendOf(ctx context.Context) (config.Backend, error) {
	return d.config.Current().Backend(caller.From(ctx))
}

// browser opens pages through the calling process.
type browser struct{}

func (browser) Open(ctx context.Context, who caller.Caller, url string) (opened bool, reason string) {
	return clientio.Open(ctx, who, url)
}
