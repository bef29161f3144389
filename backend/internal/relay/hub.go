package relay

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/broker"
)

// Sessions decides who may attach to which session.
type Sessions interface {
	// Open checks an app's secret: sessions.ErrBadSecret, or sessions.ErrClosed.
	Open(ctx context.Context, id, secret string) (sessions.Session, error)
	// Touch extends the life of an open session.
	Touch(ctx context.Context, id string) error
	// SetModel stores the new device model of an open session.
	SetModel(ctx context.Context, id, model string) error
}

// Log is the durable event log.
type Log interface {
	// AppendEvents commits the rows and their states in one transaction, sets each row's Seq, and marks rows that
	// existed already. Over a quota the oldest rows are deleted.
	AppendEvents(ctx context.Context, rows []sessions.Row, q sessions.Quota) error
	// SessionEvents returns up to limit rows with seq above since, in order. Only rows before the first may be missing.
	SessionEvents(ctx context.Context, sessionID string, since int64, limit int) ([]glasses.Event, error)
	// Memory returns what a session remembers, even from rows that were deleted over a quota.
	Memory(ctx context.Context, sessionID string) (sessions.Memory, error)
	// Session returns the session's present state.
	Session(ctx context.Context, id string) (sessions.Session, error)
	// SomeSessions returns those of the sessions that exist, in any order.
	SomeSessions(ctx context.Context, ids []string) ([]sessions.Session, error)
}

// Options are the parameters of a Hub. The durations have defaults that tests shorten.
type Options struct {
	Sessions Sessions
	Gateways Gateways // nil: there are none
	Log      Log
	Quota    sessions.Quota // of the event log; sessions.DefaultQuota
	Logger   *slog.Logger
	Now      func() time.Time
	// SiteHosts are additional hosts whose pages may attach, e.g. if a proxy rewrites Host.
	SiteHosts []string

	HelloWait   time.Duration // for an app's first frame; 5 s
	PingEvery   time.Duration // 8 s; a peer that does not answer within the same time again is gone
	BeatEvery   time.Duration // between the heartbeats of a page; 1 s
	CommandWait time.Duration // until a command without a result is answered with timeout; 10.5 s, plus its own duration
	ControlWait time.Duration // until a control frame without a result fails; 10 s
	CountEvery  time.Duration // between the rows that count a stream; 10 s
	RetryPause  time.Duration // before the second attempt to write rows; doubled before each further one; 200 ms
	FrameRate   int           // frames per second of a session's apps, and of its pages, without streams; 200
	FrameBurst  int           // the same in one burst; 400
	QueueSize   int           // rows queued for the writer; 1024
	OutboxSize  int           // frames queued for one peer; 256
}

// Hub manages the live sessions of this process.
type Hub struct {
	Options
	bus      Bus
	queue    chan entry
	conns    atomic.Int64
	dropped  atomic.Int64
	watchers atomic.Int64
	lastPeer atomic.Int64    // the latest conn.id
	endings  atomic.Int64    // calls of Ended
	isAway   atomic.Bool     // the store has refused rows for longer than commitTries
	life     context.Context // ends when the hub closes
	end      context.CancelFunc

	mu          sync.Mutex
	live        map[string]*liveSession
	savedLimits map[string]rateLimits // of sessions without peers
	closing     bool
	serving     sync.WaitGroup // goroutines of peers, and holders of sessions
}

// New returns a hub. Rows are written while Serve runs.
func New(o Options) *Hub {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Quota = cmp.Or(o.Quota, sessions.DefaultQuota)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.HelloWait = cmp.Or(o.HelloWait, 5*time.Second)
	o.PingEvery = cmp.Or(o.PingEvery, 8*time.Second)
	o.BeatEvery = cmp.Or(o.BeatEvery, time.Second)
	o.CommandWait = cmp.Or(o.CommandWait, 10500*time.Millisecond)
	o.ControlWait = cmp.Or(o.ControlWait, 10*time.Second)
	o.CountEvery = cmp.Or(o.CountEvery, 10*time.Second)
	o.RetryPause = cmp.Or(o.RetryPause, 200*time.Millisecond)
	o.FrameRate = cmp.Or(o.FrameRate, 200)
	o.FrameBurst = cmp.Or(o.FrameBurst, 400)
	o.QueueSize = cmp.Or(o.QueueSize, 1024)
	o.OutboxSize = cmp.Or(o.OutboxSize, 256)
	life, end := context.WithCancel(context.Background())
	return &Hub{
		Options: o, bus: newLocalBus(), queue: make(chan entry, o.QueueSize), life: life, end: end,
		live: map[string]*liveSession{}, savedLimits: map[string]rateLimits{},
	}
}

// Serve writes rows until ctx ends. Then it tells every peer to reconnect later, waits for their goroutines, and
// commits the queue.
func (h *Hub) Serve(ctx context.Context) error {
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { h.write(context.WithoutCancel(ctx), stop) })
	h.runMaintenance(ctx)
	h.mu.Lock()
	h.closing = true
	live := slices.Collect(maps.Values(h.live))
	h.mu.Unlock()
	h.end()
	for _, s := range live {
		s.endPeers(glasses.CloseRestart, restarts)
	}
	h.serving.Wait()
	close(stop)
	writer.Wait()
	h.bus.Close()
	return nil
}

// Connections returns how many apps and pages are attached.
func (h *Hub) Connections() int { return int(h.conns.Load()) }

// Dropped returns how many stream frames were dropped for peers that were behind.
func (h *Hub) Dropped() int64 { return h.dropped.Load() }

// Attached returns who is attached to a session.
func (h *Hub) Attached(sessionID string) sessions.Live {
	h.mu.Lock()
	s := h.live[sessionID]
	h.mu.Unlock()
	if s == nil {
		return sessions.Live{}
	}
	p := s.peers()
	return sessions.Live{Apps: p.Apps, Pages: p.Pages}
}

// Closed appends the last row of a session and ends every connection of it.
func (h *Hub) Closed(sessionID string) {
	s, ok := h.hold(sessionID)
	if !ok {
		return
	}
	defer h.release(s)
	s.mu.Lock()
	s.logService(context.Background(), glasses.RowSessionClosed, struct{}{})
	s.mu.Unlock()
	s.endPeers(glasses.CloseSessionOver, "the session was closed")
}

// Switched tells both sides of a session that its device model has changed.
func (h *Hub) Switched(ctx context.Context, sessionID, model string) {
	m, known := glasses.Model(model)
	s, ok := h.hold(sessionID)
	if !ok || !known {
		return
	}
	defer h.release(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	frame := h.frame(glasses.TypeDevice, "", glasses.DeviceChange{DeviceModel: m})
	h.bus.Publish(sessionID, toApps, text(frame))
	h.bus.Publish(sessionID, toPages, text(frame))
	s.logService(ctx, glasses.TypeDevice, glasses.DeviceChange{DeviceModel: m})
}

// hold finds or creates the live side of a session and keeps it until release. It fails once the hub is closing.
func (h *Hub) hold(sessionID string) (*liveSession, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, false
	}
	s := h.live[sessionID]
	if s == nil {
		s = newLiveSession(h, sessionID)
		h.restoreLimits(s)
		h.live[sessionID] = s
	}
	s.holders++
	h.serving.Add(1)
	return s, true
}

func (h *Hub) release(s *liveSession) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.holders--; s.holders == 0 {
		delete(h.live, s.id)
		h.saveLimits(s)
	}
	h.serving.Done()
}

// frame encodes a frame of the service.
func (h *Hub) frame(typ, id string, payload any) []byte {
	return broker.Encode(h.Now(), typ, id, payload)
}
