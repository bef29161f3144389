package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/glasses"
)

// Names of files in a local session's directory.
const (
	metaName   = "session.json"
	eventsName = "events.jsonl"
)

const (
	localLife   = 7 * 24 * time.Hour // a session expires this long after its last row
	expireEvery = time.Hour
	maxMetaFile = 4 << 20
	maxClosed   = 100 // number of closed sessions that are remembered
)

// localSessions holds the local sessions of a manager.
type localSessions struct {
	root       string
	transports Transports
	refused    error // why transports are unavailable; nil if they are available
	now        func() time.Time
	log        *slog.Logger
	often      *ratelog.Logger // for failures that may occur with every frame
	life       context.Context
	end        context.CancelFunc
	attached   atomic.Int64 // number of attached apps
	endpoints  Endpoints
	tokens     gatewayTokens
	profiles   *profiles.Store
	pairs      Pairs // nil if real glasses are not remembered

	mu       sync.Mutex // taken before stateFile.mu, never together with localSession.Mu
	isLoaded bool
	isOver   bool
	open     map[string]*localSession
	closed   []backend.Session // the most recently closed sessions
	wg       sync.WaitGroup    // counts sessions that are stopping because their log failed
}

// loaded returns the open sessions. On first use it reads the sessions from disk and removes the temporary files of
// killed daemons. The caller holds mu.
func (l *localSessions) loaded() map[string]*localSession {
	if l.isLoaded || l.transports == nil || l.isOver {
		return l.open
	}
	l.isLoaded = true
	entries, err := os.ReadDir(l.root)
	if err != nil {
		return l.open // no session has ever been opened
	}
	l.sweep(l.root)
	for _, e := range entries {
		if !localPattern.MatchString(e.Name()) || !e.IsDir() {
			continue
		}
		m, err := l.readMeta(e.Name())
		if errors.Is(err, fs.ErrNotExist) { // a killed daemon was creating or removing the session
			l.removeFolder(e.Name())
			continue
		}
		if err != nil { // the session may be from another version; it expires too
			l.log.Warn("failed to read session", "session", e.Name(), "err", err)
			if info, err := e.Info(); err == nil {
				m.LastActiveAt = info.ModTime()
			}
		}
		if l.now().Sub(m.LastActiveAt) > localLife {
			l.removeFolder(e.Name())
			continue
		}
		if err == nil {
			l.open[m.SessionID] = newLocalSession(l, m)
			l.sweep(filepath.Join(l.root, e.Name()))
		}
	}
	return l.open
}

// removeFolder deletes the files of a session. The state goes first, so that a session that a killed daemon removed in
// part does not open again without its log.
func (l *localSessions) removeFolder(id string) {
	folder := filepath.Join(l.root, id)
	err := os.Remove(filepath.Join(folder, metaName))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.RemoveAll(folder)
	}
	if err != nil {
		l.log.Warn("failed to remove session directory", "session", id, "err", err)
	}
}

func (l *localSessions) sweep(dir string) {
	if err := statefile.Sweep(dir, l.now()); err != nil {
		l.log.Warn("failed to remove temporary files of interrupted writes", "err", err)
	}
}

// readMeta reads a session's state. Its error matches fs.ErrNotExist if there is none, and is another one if the session
// cannot be opened.
func (l *localSessions) readMeta(id string) (meta, error) {
	var m meta
	data, err := statefile.Read(filepath.Join(l.root, id, metaName), maxMetaFile)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return m, err
	}
	if m.Standing.Phrases == nil { // earlier versions stored phrases only in the state of the glasses
		m.Standing.Phrases = m.Snapshot.State.Phrases
	}
	switch _, isKnown := glasses.Model(m.Snapshot.DeviceModel); {
	case m.SessionID != id:
		err = fmt.Errorf("%s belongs to session %q", metaName, m.SessionID)
	case !isKnown:
		err = fmt.Errorf("%s contains the unknown device model %s", metaName, m.Snapshot.DeviceModel)
	}
	return m, err
}

// find returns an open session, or nil if there is none.
func (l *localSessions) find(id string) *localSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loaded()[id]
}

// wake returns an open session after starting its goroutines.
func (l *localSessions) wake(id string) (*localSession, error) {
	if l.transports == nil {
		return nil, l.refused
	}
	s := l.find(id)
	if s == nil {
		return nil, notFound()
	}
	return s, s.wake()
}

// ready calls wake and waits until the glasses are attached.
func (l *localSessions) ready(ctx context.Context, id string) (*localSession, error) {
	s, err := l.wake(id)
	if err != nil {
		return nil, err
	}
	return s, s.transport.wait(ctx, l.life)
}

// list returns the open sessions, most recently used first.
func (l *localSessions) list() []*localSession {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.loaded()), func(a, b *localSession) int {
		return cmp.Or(b.usedAt().Compare(a.usedAt()), cmp.Compare(a.id, b.id))
	})
}

func (s *localSession) usedAt() time.Time { return s.state.read().LastActiveAt }

// match returns the open session that meets a request, or nil if there is none.
func (l *localSessions) match(want meta, req LocalRequest) *localSession {
	if req.Fresh {
		return nil
	}
	var free *localSession // a session that has had no glasses yet, which may use the requested ones
	for _, s := range l.list() {
		m := s.state.read()
		switch {
		case m.Project != want.Project || m.Dir != want.Dir || req.Clock != "" && req.Clock != m.Clock ||
			req.FixturesDir != "" && want.FixturesDir != m.FixturesDir ||
			req.Transport != "" && req.Transport != m.transportName() ||
			req.Pace != "" && req.Pace != cmp.Or(m.Pace, PaceNone) ||
			req.Via != "" && req.Via != cmp.Or(m.Via, ViaAuto):
		case req.GlassesName == "" || strings.EqualFold(req.GlassesName, s.glassesName(m)):
			return s
		case m.GlassesName == "":
			free = s
		}
	}
	return free
}

// create creates a session and its directory.
func (l *localSessions) create(m meta) (*localSession, error) {
	m.SessionID = "loc_" + strings.ToLower(rand.Text()[:20])
	m.CreatedAt, m.LastActiveAt = l.now().UTC(), l.now().UTC()
	s := newLocalSession(l, m)
	if err := l.add(s); err != nil {
		return nil, err
	}
	err := os.MkdirAll(s.folder(), 0o700)
	if err == nil {
		s.state.update(func(*meta) {})
		err = s.state.save()
	}
	if err != nil {
		l.remove(s, glasses.CloseRestart, "")
		return nil, stateProblem("create the session's directory", err)
	}
	return s, nil
}

func (l *localSessions) add(s *localSession) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.loaded()
	switch {
	case l.isOver:
		return notConnected("the daemon is stopping")
	case len(open) >= MaxLocal:
		return tooManySessions()
	}
	open[s.id] = s
	return nil
}

// remove ends a session and deletes its directory.
func (l *localSessions) remove(s *localSession, code int, reason string) {
	l.mu.Lock()
	if l.open[s.id] == s {
		delete(l.open, s.id)
	}
	l.mu.Unlock()
	s.stop(code, reason)
	l.tokens.end(s)
	l.removeFolder(s.id)
}

// restart stops a session whose log cannot be written. The next use starts it again from disk.
func (l *localSessions) restart(s *localSession) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[s.id] != s || l.isOver {
		return
	}
	delete(l.open, s.id)
	if m, err := l.readMeta(s.id); err != nil {
		l.log.Warn("failed to read session", "session", s.id, "err", err)
	} else {
		l.open[s.id] = newLocalSession(l, m)
	}
	l.tokens.end(s)
	l.wg.Go(func() { s.stop(glasses.CloseStore, "the event log could not be written; try again") })
}

// close closes a session permanently. Closing it again returns the same result.
func (l *localSessions) close(id string) (backend.Session, error) {
	s := l.find(id)
	if s == nil {
		return l.findClosed(id)
	}
	s.Mu.Lock()
	if s.isLive && !s.isOver {
		s.logService(glasses.RowSessionClosed, struct{}{})
	}
	s.Mu.Unlock()
	closed := s.describe()
	closed.State, closed.ClosedAt = "closed", l.now()
	l.remove(s, glasses.CloseSessionOver, "the session was closed")
	closed.Apps = 0
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = append(l.closed[max(len(l.closed)-maxClosed+1, 0):], closed)
	return closed, nil
}

// findClosed returns a recently closed session.
func (l *localSessions) findClosed(id string) (backend.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.closed, func(s backend.Session) bool { return s.SessionID == id }); i >= 0 {
		return l.closed[i], nil
	}
	return backend.Session{}, notFound()
}

// expire removes sessions that were not used for localLife. Serve also calls it, because a daemon may run for months.
func (l *localSessions) expire() {
	for _, s := range l.list() {
		if l.now().Sub(s.usedAt()) > localLife && len(s.Apps.All()) == 0 {
			l.log.Info("removed unused session", "session", s.id)
			l.remove(s, glasses.CloseSessionOver, "the session was unused for a week")
		}
	}
}

// serve removes expired sessions and profiles until ctx ends, and then stops every session.
func (l *localSessions) serve(ctx context.Context) {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	l.sweepProfiles()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			l.expire()
			l.sweepProfiles()
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	l.isOver = true
	open := l.open
	l.open = map[string]*localSession{}
	l.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range open {
		all.Go(func() { s.stop(glasses.CloseRestart, "the service is restarting") })
	}
	all.Wait()
	l.end()
	l.wg.Wait()
}
