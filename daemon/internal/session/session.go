// Package session is the daemon's side of glasses sessions. It opens, finds, lists and closes them, reads their event
// log, stores each session's app secret in a file that apps can read, and determines the project of a call. It also
// hosts local sessions, connecting their apps and glasses through glasses/broker. It is independent of the backend or
// transport adapter that carries a session.
package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// Backend hosts the browser sessions. Its methods return a *problem.Error on failure.
type Backend interface {
	CreateSession(
		ctx context.Context, target backend.Target, req backendapi.SessionRequest,
	) (s backend.Session, created bool, err error)
	GetSession(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	ListSessions(ctx context.Context, target backend.Target) ([]backend.Session, error)
	CloseSession(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	// MintSessionSecret creates a secret with which apps attach to a session.
	MintSessionSecret(ctx context.Context, target backend.Target, id string) (string, error)
	ListEvents(ctx context.Context, target backend.Target, id string, since int64, limit int) (backendapi.EventPage, error)
	// WaitEvents is like ListEvents, but waits up to the duration wait for a row if there are none.
	WaitEvents(
		ctx context.Context, target backend.Target, id string, since int64, limit int, wait time.Duration,
	) (backendapi.EventPage, error)
	// Control sends a control frame to the session's page and returns its result (glasses.Result), which may be an
	// error of the glasses.
	Control(
		ctx context.Context, target backend.Target, id, typ string, payload json.RawMessage, media []byte,
	) (json.RawMessage, error)
	SetAssistantScript(ctx context.Context, target backend.Target, id string, script []byte) error
}

// Dir is the name of the subdirectory of the state directory that this package writes to.
const Dir = "sessions"

// tokenName is the file in a session's directory that contains the app secret, without a line end.
const tokenName = "app.token"

// maxToken is the maximum number of bytes read from a token file.
const maxToken = 4 << 10

// Limits of a page of events.
const (
	DefaultLimit = 100
	MaxLimit     = 500
)

// Options holds the dependencies of a Manager. The dependencies for browser sessions are required.
type Options struct {
	// StateDir is the state directory.
	StateDir string
	Backend  Backend

	// Transports and Endpoints are needed for local sessions. Without them, local sessions fail with LocalRefused.
	Transports   Transports
	Endpoints    Endpoints
	LocalRefused error
	// Pairs remembers real glasses. It is optional.
	Pairs Pairs
	// Log and Now are optional. By default, log messages are discarded and the machine's clock is used.
	Log *slog.Logger
	Now func() time.Time
}

// Manager manages sessions. It is safe for concurrent use.
type Manager struct {
	opts     Options
	projects *projects
	minting  keyedLocks
	local    *localSessions
	latest   *latestSessions
}

// warnEvery is the minimum interval between two warnings of a kind that every frame could cause.
const warnEvery = 10 * time.Second

// New returns a manager. It does not access the disk. Local sessions end cleanly only if Serve is running.
func New(opts Options) *Manager {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	opts.LocalRefused = cmp.Or[error](opts.LocalRefused, &problem.Error{
		Code: problem.CodeAdapterUnavailable, Message: "this process does not serve local sessions",
	})
	if opts.Now == nil {
		opts.Now = time.Now
	}
	root := filepath.Join(opts.StateDir, Dir)
	often := ratelog.New(opts.Log, warnEvery, opts.Now)
	local := &localSessions{
		root: root, transports: opts.Transports, refused: opts.LocalRefused, now: opts.Now, log: opts.Log, often: often,
		open: map[string]*localSession{}, endpoints: opts.Endpoints, pairs: opts.Pairs,
		profiles: profiles.New(opts.StateDir, opts.Now, opts.Log),
	}
	local.life, local.end = context.WithCancel(context.Background())
	return &Manager{
		opts: opts, local: local, projects: &projects{path: filepath.Join(root, projectsName)},
		latest: &latestSessions{path: filepath.Join(root, latestName), log: often},
	}
}

// Serve waits until ctx ends and then stops every local session. The state of the sessions remains on disk.
func (m *Manager) Serve(ctx context.Context) error {
	m.local.serve(ctx)
	return nil
}

// Attached returns the number of apps attached to local sessions.
func (m *Manager) Attached() int { return int(m.local.attached.Load()) }

// AnyLocal reports whether a local session is open. Apps may reconnect to it.
func (m *Manager) AnyLocal() bool { return len(m.local.list()) > 0 }

// LocalCount returns the number of open local sessions.
func (m *Manager) LocalCount() int { return len(m.local.list()) }

// Request requests a session. An empty Project means the project of the caller's directory, an empty Platform means
// web, and an empty DeviceModel means the session's current model or the backend's default.
type Request struct {
	Project     string
	Platform    string
	DeviceModel string
	// AssistantScript is the path of a script, or of a scenario that contains one. A relative path starts at the
	// caller's directory. If it is empty, the session keeps its script. The scenario must have no memory, because a
	// browser session has no profile of its own.
	AssistantScript string
	// Fresh requests another session even if one is open.
	Fresh bool
}

// Opened is a session to which an app can attach.
type Opened struct {
	backend.Session
	// Created reports whether the session is new.
	Created bool
	// AppTokenFile is the path of the file that contains the app secret.
	AppTokenFile string
}

// Open creates the session for (account, project, platform) or finds the open one. It returns a *problem.Error on
// failure.
func (m *Manager) Open(ctx context.Context, target backend.Target, who caller.Caller, req Request) (Opened, error) {
	platform, err := platformOf(req.Platform)
	if err != nil {
		return Opened{}, err
	}
	if err := checkDeviceModel(req.DeviceModel); err != nil {
		return Opened{}, err
	}
	project, err := m.accountProject(ctx, target, req.Project, who)
	var script *assistantscript.Script
	var memory *string
	if err == nil {
		script, memory, err = ReadScript(ctx, who, req.AssistantScript)
	}
	if err == nil && memory != nil && *memory != "" {
		err = notRemembering()
	}
	if err != nil {
		return Opened{}, err
	}
	s, created, err := m.opts.Backend.CreateSession(ctx, target, backendapi.SessionRequest{
		Project: project, Platform: platform, DeviceModel: req.DeviceModel, Fresh: req.Fresh,
	})
	if err != nil {
		return Opened{}, err
	}
	if !validID(s.SessionID) {
		return Opened{}, problem.New(problem.CodeInvalidResponse, "the backend's session id has an unknown form",
			"Update the service so that daemon and backend have the same version.")
	}
	path, err := m.token(ctx, target, s.SessionID, created)
	if err != nil {
		return Opened{}, err
	}
	if script != nil {
		if err := m.SetAssistantScript(ctx, target, s.SessionID, script); err != nil {
			return Opened{}, err
		}
	}
	m.latest.set(who.Workspace(), s.SessionID)
	return Opened{Session: m.browser(s), Created: created, AppTokenFile: path}, nil
}

// AppTokenFile returns the path of the file with an open session's app secret, or "" if this machine has no such file.
func (m *Manager) AppTokenFile(id string) string {
	if IsLocal(id) {
		if s := m.local.find(id); s != nil {
			return s.secret.path
		}
		return ""
	}
	if !validID(id) {
		return ""
	}
	path := filepath.Join(m.folder(id), tokenName)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// Get returns one session. It ignores target for a local session.
func (m *Manager) Get(ctx context.Context, target backend.Target, id string) (backend.Session, error) {
	if IsLocal(id) {
		if s := m.local.find(id); s != nil {
			return m.withEndpoint(ctx, s), nil
		}
		return m.local.findClosed(id)
	}
	if !validID(id) {
		return backend.Session{}, notFound()
	}
	s, err := m.opts.Backend.GetSession(ctx, target, id)
	return m.browser(s), err
}

// List returns the open local sessions, followed by the account's sessions. Without an account (a target without a
// Bearer) it returns only the local ones.
func (m *Manager) List(ctx context.Context, target backend.Target) ([]backend.Session, error) {
	open := []backend.Session{}
	for _, s := range m.local.list() {
		open = append(open, m.withEndpoint(ctx, s))
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

// withEndpoint returns a local session with its app endpoint. The endpoint is empty if the app server cannot start.
func (m *Manager) withEndpoint(ctx context.Context, s *localSession) backend.Session {
	described := s.describe()
	described.AppEndpoint, _ = m.opts.Endpoints.AppEndpoint(ctx, s.id)
	return described
}

func (m *Manager) browser(s backend.Session) backend.Session {
	s.Transport, s.Clock, s.NowMs = backend.TransportBrowser, backend.ClockReal, m.opts.Now().UnixMilli()
	return s
}

// Close closes a session and removes its files: the app secret of a browser session, or all files of a local session.
// Closing a closed session is not an error.
func (m *Manager) Close(ctx context.Context, target backend.Target, id string) (backend.Session, error) {
	m.latest.forget(id)
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
		return s, stateProblem("remove the session's app token", err)
	}
	return m.browser(s), nil
}

// Since returns the rows of the log after the cursor since, where 0 is the beginning of the log. A limit of 0 means
// DefaultLimit.
func (m *Manager) Since(
	ctx context.Context, target backend.Target, id string, since int64, limit int,
) (backendapi.EventPage, error) {
	if IsLocal(id) {
		return m.Wait(ctx, target, id, since, limit, 0)
	}
	if !validID(id) {
		return backendapi.EventPage{}, notFound()
	}
	return m.opts.Backend.ListEvents(ctx, target, id, max(since, 0), clampLimit(limit))
}

// token returns the path of a browser session's secret. It creates the secret if none exists.
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
			return "", stateProblem("read the session's app token", err)
		}
	}
	secret, err := m.opts.Backend.MintSessionSecret(ctx, target, id)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(m.folder(id), 0o700); err != nil {
		return "", stateProblem("create the session's directory", err)
	}
	if err := statefile.Write(path, []byte(secret)); err != nil {
		return "", stateProblem("write the session's app token", err)
	}
	return path, nil
}

func (m *Manager) folder(id string) string { return filepath.Join(m.opts.StateDir, Dir, id) }

var idPattern = regexp.MustCompile(`^ses_[a-z0-9]+$`)

// validID reports whether id has the form of a session ID, which is also used as a directory name.
func validID(id string) bool {
	n := len(id) - len("ses_")
	return n >= 8 && n <= 64 && idPattern.MatchString(id)
}

func notFound() error {
	return problem.New(problem.CodeNotFound, "no such session",
		"Call getSessionStatus without sessionId to list the open sessions, or startLocalSimulation or "+
			"createSimulatorSession to open one.")
}

// stateProblem returns the problem of a failed operation on the state directory.
func stateProblem(action string, err error) error {
	final := false
	for _, cause := range []error{fs.ErrPermission, fs.ErrNotExist, syscall.EROFS, syscall.ENOTDIR} {
		final = final || errors.Is(err, cause)
	}
	return &problem.Error{
		Code: problem.CodeStateUnwritable, Message: fmt.Sprintf("%s: %v", action, err), Retryable: !final,
		FixHint: "Check that you own the state directory and can write to it, free disk space, then repeat the call.",
	}
}
