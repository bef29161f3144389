// Package session is the daemon's side of glasses sessions: it opens, finds, lists and closes them, reads their event
// log, keeps each session's app secret in a file that an app can read, and decides which project a call is about. It
// must not know which backend or transport carries a session.
package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/statefile"
)

// Backend holds the sessions. Errors are *backend.Problem.
type Backend interface {
	CreateSession(ctx context.Context, target backend.Target, req backend.SessionRequest) (s backend.Session, created bool, err error)
	GetSession(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	ListSessions(ctx context.Context, target backend.Target) ([]backend.Session, error)
	CloseSession(ctx context.Context, target backend.Target, id string) (backend.Session, error)
}

// Secrets mints what an app shows at a session's endpoint.
type Secrets interface {
	MintSessionSecret(ctx context.Context, target backend.Target, id string) (string, error)
}

// Events reads a session's log.
type Events interface {
	ListEvents(ctx context.Context, target backend.Target, id string, since int64, limit int) (backend.EventPage, error)
}

// Dir is the folder of the state directory that this package owns.
const Dir = "sessions"

// tokenName is the file inside a session's folder that holds the app secret, without a line end.
const tokenName = "app.token"

// maxToken bounds what is read of a token file, in bytes.
const maxToken = 4 << 10

// Bounds of a page of events.
const (
	DefaultLimit = 100
	MaxLimit     = 500
)

// Options are the parts of a Manager; those for browser sessions are required.
type Options struct {
	// StateDir is the state directory.
	StateDir string
	Backend  Backend
	Secrets  Secrets
	Events   Events
	Live     Live

	// Transports and Endpoints serve local sessions. Without them every local session is refused with LocalRefused.
	Transports   Transports
	Endpoints    Endpoints
	LocalRefused error
	// Log and Now have defaults: none, and the machine's clock.
	Log *slog.Logger
	Now func() time.Time
}

// Manager is safe for concurrent use.
type Manager struct {
	opts     Options
	projects *projects
	minting  keyed
	local    *locals
	latest   *latest
}

// quietFor is how long the log rests after a warning that may come with every frame.
const quietFor = 10 * time.Second

// New prepares a manager; it touches nothing on disk. Serve must run for local sessions to end in order.
func New(opts Options) *Manager {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.LocalRefused == nil {
		opts.LocalRefused = &backend.Problem{Code: backend.CodeAdapterUnavailable, Message: "this process serves no local sessions"}
	}
	root := filepath.Join(opts.StateDir, Dir)
	m := &Manager{opts: opts, projects: &projects{path: filepath.Join(root, projectsName)}}
	often := ratelog.New(opts.Log, quietFor, opts.Now)
	m.latest = &latest{path: filepath.Join(root, latestName), log: often}
	m.local = &locals{root: root, transports: opts.Transports, refused: opts.LocalRefused, now: opts.Now, log: opts.Log, often: often, rooms: map[string]*room{}}
	m.local.life, m.local.end = context.WithCancel(context.Background())
	return m
}

// Serve waits until ctx ends, then ends every local session's life in this process; what they were is on disk.
func (m *Manager) Serve(ctx context.Context) error {
	m.local.serve(ctx)
	return nil
}

// Attached counts the apps that are attached to local sessions.
func (m *Manager) Attached() int { return int(m.local.attached.Load()) }

// AnyLocal tells whether a local session is open, for which apps may come back.
func (m *Manager) AnyLocal() bool { return len(m.local.list()) > 0 }

// LocalCount is the number of open local sessions.
func (m *Manager) LocalCount() int { return len(m.local.list()) }

// Request asks for a session. Empty fields mean: the project of the caller's directory, platform web, the session's
// own or the backend's default device model.
type Request struct {
	Project     string
	Platform    string
	DeviceModel string
	// Fresh asks for another session although one is open.
	Fresh bool
}

// Opened is a session that is ready for an app.
type Opened struct {
	backend.Session
	// Created is false when the session was open before.
	Created bool
	// AppTokenFile is the path of the file that holds the app secret.
	AppTokenFile string
}

// Open creates the session of (account, project, platform) or finds the open one. Errors are
// *backend.Problem.
func (m *Manager) Open(ctx context.Context, target backend.Target, who caller.Caller, req Request) (Opened, error) {
	platform, err := platformOf(req.Platform)
	if err != nil {
		return Opened{}, err
	}
	if err := checkDeviceModel(req.DeviceModel); err != nil {
		return Opened{}, err
	}
	project, err := m.projectOf(ctx, req.Project, who)
	if err != nil {
		return Opened{}, err
	}
	s, created, err := m.opts.Backend.CreateSession(ctx, target, backend.SessionRequest{
		Project: project, Platform: platform, DeviceModel: req.DeviceModel, Fresh: req.Fresh,
	})
	if err != nil {
		return Opened{}, err
	}
	if !validID(s.SessionID) {
		return Opened{}, &backend.Problem{
			Code: backend.CodeInvalidResponse, Message: "the backend named a session in a way that this version does not understand",
			FixHint: "update the service so that daemon and backend fit together",
		}
	}
	path, err := m.token(ctx, target, s.SessionID, created)
	if err != nil {
		return Opened{}, err
	}
	m.latest.set(who.Cwd, s.SessionID)
	return Opened{Session: m.browser(s), Created: created, AppTokenFile: path}, nil
}

// Get reads one session. For a local one target is not looked at.
func (m *Manager) Get(ctx context.Context, target backend.Target, id string) (backend.Session, error) {
	if IsLocal(id) {
		if r := m.local.open(id); r != nil {
			return m.addressed(ctx, r), nil
		}
		return m.local.ended(id)
	}
	if !validID(id) {
		return backend.Session{}, notFound()
	}
	s, err := m.opts.Backend.GetSession(ctx, target, id)
	return m.browser(s), err
}

// List reads the open sessions: the local ones, then those of the account. Without an account (a target without a
// Bearer) these are the local ones alone.
func (m *Manager) List(ctx context.Context, target backend.Target) ([]backend.Session, error) {
	open := []backend.Session{}
	for _, r := range m.local.list() {
		open = append(open, m.addressed(ctx, r))
	}
	if target.Bearer == "" {
		return open, nil
	}
	all, err := m.opts.Backend.ListSessions(ctx, target)
	if err != nil {
		return open, err
	}
	for _, s := range all {
		if s.State != "closed" {
			open = append(open, m.browser(s))
		}
	}
	return open, nil
}

// addressed is a local session with its address; an address that cannot be had is left empty.
func (m *Manager) addressed(ctx context.Context, r *room) backend.Session {
	s := r.session()
	s.AppEndpoint, _ = m.opts.Endpoints.AppEndpoint(ctx, r.id)
	return s
}

func (m *Manager) browser(s backend.Session) backend.Session {
	s.Transport, s.Clock, s.NowMs = backend.TransportBrowser, backend.ClockReal, m.opts.Now().UnixMilli()
	return s
}

// Close ends a session and removes what is on disk of it: of a browser session the app secret, of a local one all.
// Closing a closed session is no error.
func (m *Manager) Close(ctx context.Context, target backend.Target, id string) (backend.Session, error) {
	m.latest.closed(id)
	if IsLocal(id) {
		return m.local.close(id)
	}
	if !validID(id) {
		return backend.Session{}, notFound()
	}
	s, err := m.opts.Backend.CloseSession(ctx, target, id)
	if err != nil {
		return backend.Session{}, err
	}
	unlock := m.minting.lock(id)
	defer unlock()
	if err := os.RemoveAll(m.folder(id)); err != nil {
		return s, stateProblem("removing the session's app token", err)
	}
	return m.browser(s), nil
}

// Since reads the log after a cursor; 0 is its beginning. A limit of 0 is 100, the highest is 500.
func (m *Manager) Since(ctx context.Context, target backend.Target, id string, since int64, limit int) (backend.EventPage, error) {
	if IsLocal(id) {
		return m.Wait(ctx, target, id, since, limit, 0)
	}
	if !validID(id) {
		return backend.EventPage{}, notFound()
	}
	return m.opts.Events.ListEvents(ctx, target, id, max(since, 0), clampLimit(limit))
}

// token returns the path of the session's secret, minting one when there is none.
func (m *Manager) token(ctx context.Context, target backend.Target, id string, created bool) (string, error) {
	unlock := m.minting.lock(id)
	defer unlock()
	path := filepath.Join(m.folder(id), tokenName)
	if !created {
		data, err := statefile.Read(path, maxToken)
		if err == nil && len(strings.TrimSpace(string(data))) > 0 {
			return path, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", stateProblem("reading the session's app token", err)
		}
	}
	secret, err := m.opts.Secrets.MintSessionSecret(ctx, target, id)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(m.folder(id), 0o700); err != nil {
		return "", stateProblem("making the session's folder", err)
	}
	if err := statefile.Write(path, []byte(secret)); err != nil {
		return "", stateProblem("writing the session's app token", err)
	}
	return path, nil
}

func (m *Manager) folder(id string) string { return filepath.Join(m.opts.StateDir, Dir, id) }

var idPattern = regexp.MustCompile(`^ses_[a-z0-9]{8,64}$`)

// validID tells whether id may be a session's, and with it a folder's name.
func validID(id string) bool { return idPattern.MatchString(id) }

func notFound() error {
	return &backend.Problem{
		Code: backend.CodeNotFound, Message: "there is no such session",
		FixHint: "call getSessionStatus without sessionId to list the open sessions, or startLocalSimulation or createSimulatorSession to open one",
	}
}

// Codes of refusals that this package makes itself.
const (
	CodeInvalidArguments = "invalid_arguments"
	CodeInvalidManifest  = "invalid_manifest"
	CodeStateUnwritable  = "state_unwritable"
)

func stateProblem(act string, err error) error {
	return &backend.Problem{
		Code: CodeStateUnwritable, Message: fmt.Sprintf("%s: %v", act, err), Retryable: true,
		FixHint: "check that the state directory is yours, writable and not full, then repeat the call",
	}
}
