package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/glasses"
)

// Files of a local session's folder.
const (
	metaName   = "session.json"
	eventsName = "events.jsonl"
)

const (
	localLife   = 7 * 24 * time.Hour // after its last row a session is closed
	expireEvery = time.Hour
	maxMetaFile = 4 << 20
	maxClosed   = 100 // closed sessions that are remembered as such
)

// meta is a session's session.json. It holds no secret, only the hash of one.
type meta struct {
	SessionID    string    `json:"sessionId"`
	Project      string    `json:"project"`
	Dir          string    `json:"dir"`
	Clock        string    `json:"clock"`
	FixturesDir  string    `json:"fixturesDir,omitempty"`
	SecretHash   string    `json:"secretHash"`
	CreatedAt    time.Time `json:"createdAt"`
	LastActiveAt time.Time `json:"lastActiveAt"`
	// Attached counts how often glasses were started; the first are fresh, the others take up the snapshot.
	Attached int `json:"attached"`
	// NowMs is virtual time, Seq the row up to which Snapshot tells how the glasses are.
	NowMs    int64            `json:"nowMs"`
	Seq      int64            `json:"seq"`
	Snapshot glasses.Snapshot `json:"snapshot"`
}

// locals are the local sessions of a manager.
type locals struct {
	root       string
	transports Transports
	refused    error // why there are no transports
	now        func() time.Time
	log        *slog.Logger
	often      *ratelog.Logger // for what may fail with every frame
	life       context.Context
	end        context.CancelFunc
	attached   atomic.Int64 // apps

	mu     sync.Mutex
	loaded bool
	over   bool
	rooms  map[string]*room
	closed []backend.Session // the latest
	wg     sync.WaitGroup    // rooms that end by themselves
}

// all reads the folder once. mu is held.
func (l *locals) all() map[string]*room {
	if l.loaded || l.transports == nil || l.over {
		return l.rooms
	}
	l.loaded = true
	entries, err := os.ReadDir(l.root)
	if err != nil {
		return l.rooms // no session was ever opened
	}
	for _, e := range entries {
		if !localPattern.MatchString(e.Name()) || !e.IsDir() {
			continue
		}
		m, ok := l.readMeta(e.Name())
		if !ok { // of another version, perhaps: its time runs out too
			if info, err := e.Info(); err == nil {
				m.LastActiveAt = info.ModTime()
			}
		}
		if l.now().Sub(m.LastActiveAt) > localLife {
			if err := os.RemoveAll(filepath.Join(l.root, e.Name())); err != nil {
				l.log.Warn("removing an old session", "session", e.Name(), "err", err)
			}
			continue
		}
		if !ok {
			continue
		}
		l.rooms[m.SessionID] = newRoom(l, m)
	}
	return l.rooms
}

// readMeta tells false for a folder that no session can be made of.
func (l *locals) readMeta(id string) (meta, bool) {
	data, err := statefile.Read(filepath.Join(l.root, id, metaName), maxMetaFile)
	var m meta
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		l.log.Warn("reading a session", "session", id, "err", err)
	}
	_, known := glasses.Model(m.Snapshot.DeviceModel)
	return m, err == nil && m.SessionID == id && known
}

// open finds an open session; nil when there is none.
func (l *locals) open(id string) *room {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all()[id]
}

// awake finds an open session and starts what it runs.
func (l *locals) awake(id string) (*room, error) {
	if l.transports == nil {
		return nil, l.refused
	}
	r := l.open(id)
	if r == nil {
		return nil, notFound()
	}
	return r, r.wake()
}

// attended is awake and waits until its glasses are attached.
func (l *locals) attended(ctx context.Context, id string) (*room, error) {
	r, err := l.awake(id)
	if err != nil {
		return nil, err
	}
	return r, r.worn(ctx)
}

// list gives the open sessions, the one that was used last first.
func (l *locals) list() []*room {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rooms []*room
	for _, r := range l.all() {
		rooms = append(rooms, r)
	}
	slices.SortFunc(rooms, func(a, b *room) int {
		return cmp.Or(b.usedAt().Compare(a.usedAt()), cmp.Compare(a.id, b.id))
	})
	return rooms
}

func (r *room) usedAt() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.meta.LastActiveAt
}

// find gives the open session that a request means; nil when another is wanted.
func (l *locals) find(want meta, req LocalRequest) *room {
	if req.Fresh {
		return nil
	}
	for _, r := range l.list() {
		r.mu.Lock()
		m := r.meta
		r.mu.Unlock()
		if m.Project == want.Project && m.Dir == want.Dir && (req.Clock == "" || req.Clock == m.Clock) &&
			(req.FixturesDir == "" || want.FixturesDir == m.FixturesDir) {
			return r
		}
	}
	return nil
}

// create makes a session's folder and its room.
func (l *locals) create(m meta) (*room, error) {
	m.SessionID = "loc_" + strings.ToLower(rand.Text()[:20])
	m.CreatedAt, m.LastActiveAt = l.now().UTC(), l.now().UTC()
	r := newRoom(l, m)
	l.mu.Lock()
	switch rooms := l.all(); {
	case l.over:
		l.mu.Unlock()
		return nil, notConnected("the daemon is stopping")
	case len(rooms) >= MaxLocal:
		l.mu.Unlock()
		return nil, tooMany()
	}
	l.rooms[r.id] = r
	l.mu.Unlock()
	err := os.MkdirAll(r.folder(), 0o700)
	if err == nil {
		r.changed = true
		err = r.save()
	}
	if err != nil {
		l.remove(r, CloseRestart, "")
		return nil, stateProblem("making the session's folder", err)
	}
	return r, nil
}

// remove ends a session and deletes its folder.
func (l *locals) remove(r *room, code int, reason string) {
	l.drop(r)
	r.stop(code, reason)
	if err := os.RemoveAll(r.folder()); err != nil {
		l.log.Warn("removing a session's folder", "session", r.id, "err", err)
	}
}

func (l *locals) drop(r *room) (was bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rooms[r.id] != r {
		return false
	}
	delete(l.rooms, r.id)
	return true
}

// forget ends a room whose log cannot be written; what is on disk of it stands for the next use.
func (l *locals) forget(r *room) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rooms[r.id] != r || l.over {
		return
	}
	delete(l.rooms, r.id)
	if m, ok := l.readMeta(r.id); ok {
		l.rooms[r.id] = newRoom(l, m)
	}
	l.wg.Go(func() { r.stop(CloseStore, "the event log could not be written; try again") })
}

// close ends a session for good. Closing a closed one answers the same.
func (l *locals) close(id string) (backend.Session, error) {
	r := l.open(id)
	if r == nil {
		return l.ended(id)
	}
	r.mu.Lock()
	if r.live && !r.over {
		r.note(glasses.RowSessionClosed, struct{}{})
	}
	r.mu.Unlock()
	s := r.session()
	s.State, s.ClosedAt = "closed", l.now()
	l.remove(r, CloseSessionOver, "the session was closed")
	s.Apps = 0
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = append(l.closed[max(len(l.closed)-maxClosed+1, 0):], s)
	return s, nil
}

// ended finds a session that was closed lately.
func (l *locals) ended(id string) (backend.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.closed, func(s backend.Session) bool { return s.SessionID == id }); i >= 0 {
		return l.closed[i], nil
	}
	return backend.Session{}, notFound()
}

// expire removes sessions that nobody used for localLife: a daemon may run for months.
func (l *locals) expire() {
	for _, r := range l.list() {
		if l.now().Sub(r.usedAt()) > localLife && len(*r.apps.Load()) == 0 {
			l.log.Info("removing a session that nobody used", "session", r.id)
			l.remove(r, CloseSessionOver, "nobody used the session for a week")
		}
	}
}

// serve removes old sessions, and ends every session's life in this process when ctx ends.
func (l *locals) serve(ctx context.Context) {
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			l.expire()
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	l.over = true
	rooms := l.rooms
	l.rooms = map[string]*room{}
	l.mu.Unlock()
	var all sync.WaitGroup
	for _, r := range rooms {
		all.Go(func() { r.stop(CloseRestart, "the service restarts") })
	}
	all.Wait()
	l.end()
	l.wg.Wait()
}

// save writes session.json when something has changed.
func (r *room) save() error {
	r.saving.Lock()
	defer r.saving.Unlock()
	r.mu.Lock()
	if !r.changed {
		r.mu.Unlock()
		return nil
	}
	r.changed = false
	if r.live {
		r.meta.Seq = r.log.newest()
	}
	data, err := json.MarshalIndent(r.meta, "", " ")
	r.mu.Unlock()
	if err == nil {
		err = statefile.Write(filepath.Join(r.folder(), metaName), append(data, '\n'))
	}
	if err != nil {
		r.l.often.Warn("keeping a session", "session", r.id, "err", err)
		r.mu.Lock()
		r.changed = true
		r.mu.Unlock()
	}
	return err
}
