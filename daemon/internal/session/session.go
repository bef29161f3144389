// Package session is the daemon's side of glasses sessions: it opens, finds, lists and closes them, reads their event
// log, keeps each session's app secret in a file that an app can read, and decides which project a call is about. It
// must not know which backend or transport carries a session.
package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
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

// Options are the parts of a Manager; all are required.
type Options struct {
	// StateDir is the state directory.
	StateDir string
	Backend  Backend
	Secrets  Secrets
	Events   Events
}

// Manager is safe for concurrent use.
type Manager struct {
	opts     Options
	projects *projects
	minting  keyed
}

// New prepares a manager; it touches nothing on disk.
func New(opts Options) *Manager {
	root := filepath.Join(opts.StateDir, Dir)
	return &Manager{opts: opts, projects: &projects{path: filepath.Join(root, projectsName)}}
}

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

// Open creates the session of (account, project, platform) or finds the open one (design D15). Errors are
// *backend.Problem.
func (m *Manager) Open(ctx context.Context, target backend.Target, who caller.Caller, req Request) (Opened, error) {
	platform, err := platformOf(req.Platform)
	if err != nil {
		return Opened{}, err
	}
	if err := checkDeviceModel(req.DeviceModel); err != nil {
		return Opened{}, err
	}
	project, err := m.projectOf(req.Project, who.Cwd)
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
	return Opened{Session: s, Created: created, AppTokenFile: path}, nil
}

// Get reads one session.
func (m *Manager) Get(ctx context.Context, target backend.Target, id string) (backend.Session, error) {
	if !validID(id) {
		return backend.Session{}, notFound()
	}
	return m.opts.Backend.GetSession(ctx, target, id)
}

// List reads the open sessions of the account.
func (m *Manager) List(ctx context.Context, target backend.Target) ([]backend.Session, error) {
	all, err := m.opts.Backend.ListSessions(ctx, target)
	if err != nil {
		return nil, err
	}
	open := make([]backend.Session, 0, len(all))
	for _, s := range all {
		if s.State != "closed" {
			open = append(open, s)
		}
	}
	return open, nil
}

// Close ends a session and removes its app secret from disk. Closing a closed session is no error.
func (m *Manager) Close(ctx context.Context, target backend.Target, id string) (backend.Session, error) {
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
	return s, nil
}

// Since reads the log after a cursor; 0 is its beginning. A limit of 0 is 100, the highest is 500.
func (m *Manager) Since(ctx context.Context, target backend.Target, id string, since int64, limit int) (backend.EventPage, error) {
	if !validID(id) {
		return backend.EventPage{}, notFound()
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	return m.opts.Events.ListEvents(ctx, target, id, max(since, 0), min(limit, MaxLimit))
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
		FixHint: "call getSessionStatus without sessionId to list the open sessions, or createSimulatorSession to open one",
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
