package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/appdoor"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/daemon/internal/docs"
	"github.com/service-dev/service/daemon/internal/identity"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/mcpgate"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/daemon/internal/telemetry"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/proto/buildinfo"
	corpus "github.com/service-dev/service/proto/docs"
	"github.com/service-dev/service/proto/rendezvous"
)

// adapters is all that the daemon asks of its backends: of pluginhost's Host, or of blocked in a sandbox.
type adapters interface {
	link.Backend
	link.Embedder
	session.Backend
	session.Secrets
	session.Events
	session.Live
	session.Transports
	tools.Scaffold
	tools.Records
	telemetry.Uploader
	Activity(ctx context.Context) (connections, pendingCodes int)
	Health(ctx context.Context, t backend.Target) (backend.Health, error)
}

// parts is a daemon put together; what each part does stands in its own package.
type parts struct {
	paths   rendezvous.Paths
	log     *slog.Logger
	level   *slog.LevelVar
	now     func() time.Time
	notify  Notifier
	lasts   bool // it does not stop when idle, for nobody would start it again
	program program

	install  *identity.Install
	files    *statefile.Watch
	config   *config.Store
	accounts *account.Store
	consent  *consent.Store
	record   *telemetry.Recorder
	clients  *clientio.Registry
	host     *pluginhost.Host // nil in a sandbox
	backends adapters
	link     *link.Manager
	door     *appdoor.Door // nil in a sandbox
	sessions *session.Manager
	tools    *tools.Catalogue
	gate     *mcpgate.Gate
	control  *control.Server

	end    context.CancelCauseFunc
	reason atomic.Value

	roll      roll
	stopLimit time.Duration
	further   []part
}

// compose puts a daemon together. Nothing runs yet, and no adapter is started.
func compose(o Options, paths rendezvous.Paths, log *slog.Logger, level *slog.LevelVar) (*parts, error) {
	host, err := pluginhost.New(pluginhost.Options{
		Dir: o.AdapterDir, ConfigDir: paths.Dir, SocketDir: paths.Adapters(), Log: log, Now: o.Now,
	})
	if err != nil {
		return nil, err
	}
	p := &parts{
		paths: paths, log: log, level: level, now: o.Now, notify: o.Notify, lasts: o.Managed && !o.activated,
		host: host, backends: host, program: running(), stopLimit: cmp.Or(o.stopLimit, stopLimit), further: o.further,
	}
	if err := p.assemble(); err != nil {
		return nil, err
	}
	p.record.Started()
	f := face{p}
	p.control = control.New(control.Options{
		About: control.About{
			Version: buildinfo.Version, PID: os.Getpid(), Started: o.Now(), Managed: o.Managed, SocketActivated: o.activated,
			Paths: paths, Program: p.program.path,
		},
		Accounts: f, Logins: f, Consents: f, Telemetry: f, Tools: p.tools, System: f, ClientIO: p.clients.ForToken, Log: log, Now: o.Now,
	})
	return p, nil
}

// assemble makes the parts that a daemon and the in-process mode have in common, from the files up.
func (p *parts) assemble() (err error) {
	dir := p.paths.Dir
	if err := statefile.Sweep(dir, p.now()); err != nil {
		p.log.Warn("looking for what killed writers left", "err", err)
	}
	if p.install, err = identity.Open(dir, p.now(), p.log); err != nil {
		return err
	}
	p.files = statefile.NewWatch(dir, p.log)
	if p.config, err = config.Open(dir, p.files.Changed(config.FileName), p.log); err != nil {
		return err
	}
	p.level.Set(p.config.Current().LogLevel)
	p.accounts = account.Open(account.Options{
		Dir: dir, DefaultBackend: config.DefaultBackend(), Changed: p.files.Changed(account.FileName), Now: p.now, Log: p.log,
		Wrote: func(data []byte) { p.files.Wrote(account.FileName, data) },
	})
	p.consent = consent.New(dir)
	p.record = p.newRecorder()
	p.clients = clientio.NewRegistry()
	p.link = link.New(link.Options{
		Backend: p.backends, Embedder: p.backends, Accounts: p.accounts, Unsaved: p.accounts, Codes: p.issuedCodes(), Config: p.config, Record: p.record,
		InstallID: p.install.ID(), Log: p.log, Now: p.now,
	})
	p.assembleSessions()
	p.tools = tools.New(tools.Options{
		Links: p.link, Accounts: face{p}, Browser: browser{}, Telemetry: p.record, Now: p.now,
		Sessions: p.sessions, Scenarios: scenario.New(p.sessions, p.sessions), Docs: docs.New(), Scaffold: p.backends, Records: p.backends,
	})
	p.gate = mcpgate.New(mcpgate.Options{
		Catalogue: p.tools, Pages: corpus.Pages(), Version: buildinfo.Version, Admit: control.CheckPeer, Process: control.PeerProcess,
		ClientIO: p.clients, Notices: p.record, Log: p.log,
	})
	return nil
}

// issuedCodes are kept in the run directory; a sandbox has none to find.
func (p *parts) issuedCodes() link.IssuedCodes {
	if p.host == nil {
		return blocked{p.paths.MCP}
	}
	return codes.New(p.paths.Run, p.now, p.log)
}

// assembleSessions makes the sessions and, outside a sandbox, their door: a process without adapters must leave alone
// the local sessions that a daemon beside it may have open.
func (p *parts) assembleSessions() {
	o := session.Options{
		StateDir: p.paths.Dir, Backend: p.backends, Secrets: p.backends, Events: p.backends, Live: p.backends, Log: p.log, Now: p.now,
	}
	if p.host == nil {
		o.LocalRefused = blocked{p.paths.MCP}.problem()
		p.sessions = session.New(o)
		return
	}
	p.door = appdoor.New(appdoor.Options{Dir: filepath.Join(p.paths.Dir, session.Dir), Log: p.log})
	o.Transports, o.Endpoints = p.backends, p.door
	p.sessions = session.New(o)
	p.door.LeadTo(p.sessions)
}

// composeInProcess is a daemon without doors and adapters, for one agent in a sandbox.
func composeInProcess(o Options, paths rendezvous.Paths, log *slog.Logger, level *slog.LevelVar) (*parts, error) {
	p := &parts{paths: paths, log: log, level: level, now: o.Now, backends: blocked{paths.MCP}, stopLimit: stopLimit}
	return p, p.assemble()
}

func (p *parts) installID() string { return p.install.ID() }

// lasting are the parts that run as long as the daemon does.
func (p *parts) lasting() []part {
	list := []part{{"file watch", p.files.Serve}, {"account", p.accounts.Serve}, {"config", p.config.Serve}}
	if p.host == nil {
		list = append(list, part{"link", p.link.Serve})
	} else { // the link revokes tokens at its end, which needs the adapters
		list = append(list, part{"sessions", func(ctx context.Context) error {
			return p.serveSessions(ctx, part{"telemetry", p.record.Serve}, part{"link", p.link.Serve})
		}})
	}
	return append(list, p.further...)
}

// serveSessions runs door, sessions, others that need adapters at their end, and adapters; these end last, so that the
// sessions end in order.
func (p *parts) serveSessions(ctx context.Context, others ...part) error {
	hosting, endHost := context.WithCancel(context.WithoutCancel(ctx))
	defer endHost()
	var host, front errgroup.Group
	host.Go(func() error { return p.roll.run(hosting, part{"adapters", p.host.Serve}) })
	others = append(others, part{"app listener", func(ctx context.Context) error { return p.door.Serve(ctx, p.sessions.AnyLocal()) }},
		part{"local sessions", p.sessions.Serve})
	for _, part := range others {
		front.Go(func() error { return p.roll.run(ctx, part) })
	}
	err := front.Wait()
	endHost()
	return errors.Join(err, host.Wait())
}

// background runs the lasting parts until ctx ends; the channel is closed when all have.
func (p *parts) background(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	var all errgroup.Group
	for _, part := range p.lasting() {
		all.Go(func() error { return p.roll.run(ctx, part) })
	}
	go func() {
		defer close(done)
		if err := all.Wait(); err != nil && !errors.Is(err, context.Canceled) {
			p.log.Error("a part ended", "err", err)
		}
	}()
	return done
}

// backendOf is where the caller's calls go.
func (p *parts) backendOf(ctx context.Context) (config.Backend, error) {
	return p.config.Current().Backend(caller.From(ctx))
}

// browser opens pages by way of the caller's own process.
type browser struct{}

func (browser) Open(ctx context.Context, who caller.Caller, url string) (opened bool, reason string) {
	return clientio.Open(ctx, who, url)
}
