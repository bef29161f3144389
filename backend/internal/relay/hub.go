package relay

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

// Sessions tells who may attach to what.
type Sessions interface {
	// Open checks an app's secret: sessions.ErrBadSecret, or sessions.ErrClosed.
	Open(ctx context.Context, id, secret string) (sessions.Session, error)
	// Touch slides the expiry of an open session.
	Touch(ctx context.Context, id string) error
	// SetModel notes that the glasses of an open session are of another model now.
	SetModel(ctx context.Context, id, model string) error
}

// Log is the durable event log.
type Log interface {
	// AppendEvents commits the rows in one transaction, gives each its Seq, and marks those that were there already. Over
	// a quota the oldest rows go.
	AppendEvents(ctx context.Context, rows []sessions.Row, q sessions.Quota) error
	// SessionEvents returns up to limit rows with seq above since, in order and without a gap but before the first.
	SessionEvents(ctx context.Context, sessionID string, since int64, limit int) ([]glasses.Event, error)
	// LastDisplay is the last display.show or display.clear that succeeded; ok is false when there is none.
	LastDisplay(ctx context.Context, sessionID string) (e glasses.Event, ok bool, err error)
	// Session reads the session's present state.
	Session(ctx context.Context, id string) (sessions.Session, error)
	// SomeSessions reads those of the sessions that exist, in any order.
	SomeSessions(ctx context.Context, ids []string) ([]sessions.Session, error)
}

// Options are what a Hub needs. The durations have defaults that tests shorten.
type Options struct {
	Sessions Sessions
	Log      Log
	Quota    sessions.Quota // of the event log; sessions.DefaultQuota
	Logger   *slog.Logger
	Now      func() time.Time
	// SiteHosts are further hosts whose pages may attach, e.g. when a proxy rewrites Host.
	SiteHosts []string

	HelloWait   time.Duration // for an app's first frame; 5 s
	PingEvery   time.Duration // 8 s; a peer that does not answer within as much again is gone
	BeatEvery   time.Duration // between the beats that tell a page that the service lives; 1 s
	CommandWait time.Duration // until a command without a result is answered timeout; 10.5 s, plus what it takes by itself
	ControlWait time.Duration // until a control frame without a result is given up; 10 s
	CountEvery  time.Duration // between the rows that count a stream; 10 s
	RetryPause  time.Duration // before the second attempt to write rows, and doubled before the next ones; 200 ms
	FrameRate   int           // frames a second that a session takes of its apps, and of its pages, streams apart; 200
	FrameBurst  int           // and at once; 400
	QueueSize   int           // rows that wait for the writer; 1024
	OutboxSize  int           // frames that wait for one peer; 256
}

// Hub holds the live side of all sessions of this process.
type Hub struct {
	Options
	bus     Bus
	queue   chan entry
	conns   atomic.Int64
	dropped atomic.Int64
	watched atomic.Int64
	endings atomic.Int64    // counts Ended
	away    atomic.Bool     // the store takes no rows for longer than commitTries
	life    context.Context // ends when the hub closes
	end     context.CancelFunc

	mu      sync.Mutex
	rooms   map[string]*room
	paces   map[string]pace // of sessions that everybody left and whose pace is not whole yet
	closing bool
	serving sync.WaitGroup // goroutines of peers, and callers inside a room
}

// New makes a hub. Serve must run for rows to be written.
func New(o Options) *Hub {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Quota == (sessions.Quota{}) {
		o.Quota = sessions.DefaultQuota
	}
	setDefault(&o.HelloWait, 5*time.Second)
	setDefault(&o.PingEvery, 8*time.Second)
	setDefault(&o.BeatEvery, time.Second)
	setDefault(&o.CommandWait, 10500*time.Millisecond)
	setDefault(&o.ControlWait, 10*time.Second)
	setDefault(&o.CountEvery, 10*time.Second)
	setDefault(&o.RetryPause, 200*time.Millisecond)
	setDefault(&o.FrameRate, 200)
	setDefault(&o.FrameBurst, 400)
	setDefault(&o.QueueSize, 1024)
	setDefault(&o.OutboxSize, 256)
	life, end := context.WithCancel(context.Background())
	return &Hub{Options: o, bus: newLocalBus(), queue: make(chan entry, o.QueueSize), rooms: map[string]*room{}, paces: map[string]pace{}, life: life, end: end}
}

func setDefault[T time.Duration | int](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Serve writes rows until ctx ends. Then it tells every peer to come back later, waits for their handlers, and commits
// what is queued.
func (h *Hub) Serve(ctx context.Context) error {
	stop := make(chan struct{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		h.write(context.WithoutCancel(ctx), stop)
	}()
	h.keepHouse(ctx)
	h.mu.Lock()
	h.closing = true
	rooms := make([]*room, 0, len(h.rooms))
	for _, r := range h.rooms {
		rooms = append(rooms, r)
	}
	h.mu.Unlock()
	h.end()
	for _, r := range rooms {
		r.endAll(closeRestart, "the service restarts")
	}
	h.serving.Wait()
	close(stop)
	<-written
	h.bus.Close()
	return nil
}

// Connections counts the attached apps and pages.
func (h *Hub) Connections() int { return int(h.conns.Load()) }

// Dropped counts the stream frames that were dropped for peers that were behind.
func (h *Hub) Dropped() int64 { return h.dropped.Load() }

// Attached tells who is attached to a session.
func (h *Hub) Attached(sessionID string) sessions.Live {
	h.mu.Lock()
	r := h.rooms[sessionID]
	h.mu.Unlock()
	if r == nil {
		return sessions.Live{}
	}
	p := r.peers()
	return sessions.Live{Apps: p.Apps, Pages: p.Pages}
}

// Closed writes the last row of a session and ends every connection of it.
func (h *Hub) Closed(sessionID string) {
	r, ok := h.enter(sessionID)
	if !ok {
		return
	}
	defer h.leave(r)
	r.mu.Lock()
	r.note(context.Background(), glasses.RowSessionClosed, struct{}{})
	r.mu.Unlock()
	r.endAll(closeSessionOver, "the session was closed")
}

// Switched tells both sides of a session that its device model changed.
func (h *Hub) Switched(ctx context.Context, sessionID, model string) {
	m, known := glasses.Model(model)
	r, ok := h.enter(sessionID)
	if !ok || !known {
		return
	}
	defer h.leave(r)
	r.mu.Lock()
	defer r.mu.Unlock()
	frame := h.frame(glasses.TypeDevice, "", glasses.DeviceChange{DeviceModel: m})
	h.bus.Publish(sessionID, toApps, text(frame))
	h.bus.Publish(sessionID, toPages, text(frame))
	r.note(ctx, glasses.TypeDevice, glasses.DeviceChange{DeviceModel: m})
}

// enter finds or makes the room of a session and holds it until leave. It refuses once the hub is closing.
func (h *Hub) enter(sessionID string) (*room, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, false
	}
	r := h.rooms[sessionID]
	if r == nil {
		r = newRoom(h, sessionID)
		h.takePace(r)
		h.rooms[sessionID] = r
	}
	r.holders++
	h.serving.Add(1)
	return r, true
}

func (h *Hub) leave(r *room) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.holders--; r.holders == 0 {
		delete(h.rooms, r.id)
		h.keepPace(r)
	}
	h.serving.Done()
}

// frame encodes a frame of the service itself. Its payloads are our own structs, which always encode.
func (h *Hub) frame(typ, id string, payload any) []byte {
	f, err := glasses.New(typ, id, h.Now().UnixMilli(), payload)
	if err != nil {
		h.Logger.Error("composing frame", "type", typ, "error", err)
		f.Payload = json.RawMessage("{}")
	}
	data, err := f.Encode()
	if err != nil {
		h.Logger.Error("encoding frame", "type", typ, "error", err)
	}
	return data
}
