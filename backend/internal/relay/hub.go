package relay

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
)

// Sessions decides who may attach to a session. It is an interface so that tests can revoke a secret at any moment.
type Sessions interface {
	// Open checks an app's secret. It returns sessions.ErrBadSecret or sessions.ErrClosed on failure.
	Open(ctx context.Context, id, secret string) (sessions.Session, error)
	// Touch extends an open session.
	Touch(ctx context.Context, id string) error
	// SetModel stores the new device model of an open session.
	SetModel(ctx context.Context, id, model string) error
}

// Log is the durable event log. It is an interface so that tests can let the store fail, or wait, for one session.
type Log interface {
	// AppendEvents commits the rows and their states in one transaction, sets each row's Seq, and marks rows that
	// already existed. It deletes the oldest rows that exceed a quota.
	AppendEvents(ctx context.Context, rows []sessions.Row, q sessions.Quota) error
	// SessionEvents returns up to limit rows with seq above since, in order. After the first returned row there are no
	// gaps, but rows before it may have been deleted.
	SessionEvents(ctx context.Context, sessionID string, since int64, limit int) ([]glasses.Event, error)
	// Memory returns the state from which a session resumes. It reflects deleted rows too.
	Memory(ctx context.Context, sessionID string) (sessions.Memory, error)
	// Session returns the session's current state.
	Session(ctx context.Context, id string) (sessions.Session, error)
	// SomeSessions returns the sessions in ids that exist, in any order.
	SomeSessions(ctx context.Context, ids []string) ([]sessions.Session, error)
}

// Options are the parameters of a Hub. Tests shorten the durations, which have defaults.
type Options struct {
	Sessions Sessions
	Gateways Gateways // nil if there are none
	Log      Log
	Quota    sessions.Quota // limits of the event log; sessions.DefaultQuota if zero
	Logger   *slog.Logger
	Now      func() time.Time
	// SiteOrigin is the origin of the pages, such as https://service.example.org. Pages with another scheme may not
	// attach, because others on the network can change pages without TLS. Its host may differ from the host of requests
	// if a proxy rewrites Host. If SiteOrigin is empty, a page's origin must have the host of its request.
	SiteOrigin string

	HelloWait   time.Duration // limit for an app's first frame; 5 s
	PingEvery   time.Duration // 8 s
	PongWait    time.Duration // a peer that does not answer a ping in this time is considered gone; PingEvery
	BeatEvery   time.Duration // between the heartbeats sent to a page; 1 s
	CommandWait time.Duration // until a command without a result times out; broker.CommandWait
	ControlWait time.Duration // until a control frame without a result fails; 10 s
	CountEvery  time.Duration // between the rows that report stream counts; 10 s
	RetryPause  time.Duration // delay before the second attempt to write rows, doubled after each attempt; 200 ms
	FrameRate   int           // frames per second from a session's apps, and from its pages, without streams; 200
	FrameBurst  int           // frames in one burst, counted as for FrameRate; 400
	QueueSize   int           // rows in the queue of the writer; 1024
	// OutboxSize is the maximum number of frames in the queue of one peer. The default is twice QueueSize, because
	// every row of a full queue may reach a peer together with an acknowledgement.
	OutboxSize int
}

// Hub manages the live sessions of this process.
type Hub struct {
	Options
	queue    chan entry
	conns    atomic.Int64
	group    *host.Group
	watchers watchers
	endings  atomic.Int64    // number of calls to Ended
	isAway   atomic.Bool     // the store has refused rows for more than commitTries attempts
	life     context.Context // ends when the hub closes
	end      context.CancelFunc

	mu         sync.Mutex
	live       map[string]*liveSession
	savedRates map[string]*host.Rates // rates of sessions without peers
	closing    bool
	serving    sync.WaitGroup // goroutines of peers, and holds on sessions
}

// New returns a hub. It writes rows only while Serve runs.
func New(o Options) *Hub {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Quota = cmp.Or(o.Quota, sessions.DefaultQuota)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.HelloWait = cmp.Or(o.HelloWait, 5*time.Second)
	o.PingEvery = cmp.Or(o.PingEvery, 8*time.Second)
	o.PongWait = cmp.Or(o.PongWait, o.PingEvery)
	o.BeatEvery = cmp.Or(o.BeatEvery, time.Second)
	o.CommandWait = cmp.Or(o.CommandWait, broker.CommandWait)
	o.ControlWait = cmp.Or(o.ControlWait, 10*time.Second)
	o.CountEvery = cmp.Or(o.CountEvery, 10*time.Second)
	o.RetryPause = cmp.Or(o.RetryPause, 200*time.Millisecond)
	o.FrameRate = cmp.Or(o.FrameRate, 200)
	o.FrameBurst = cmp.Or(o.FrameBurst, 400)
	o.QueueSize = cmp.Or(o.QueueSize, 1024)
	o.OutboxSize = cmp.Or(o.OutboxSize, 2*o.QueueSize)
	life, end := context.WithCancel(context.Background())
	return &Hub{
		Options: o, queue: make(chan entry, o.QueueSize), life: life, end: end,
		live: map[string]*liveSession{}, savedRates: map[string]*host.Rates{},
		group: host.NewGroup(broker.Bounds{
			Frames: o.OutboxSize, Bytes: maxQueued, StreamFrames: maxStreamFrames, StreamBytes: maxStreamBytes,
		}, o.Logger),
		watchers: watchers{slots: limit.NewSlots(watcherBounds), woken: map[string][]chan struct{}{}},
	}
}

// Serve writes rows until ctx ends. Then it tells every peer to reconnect later, waits for the peers' goroutines, and
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
		s.endPeers(glasses.CloseRestart, host.Restarts)
	}
	h.serving.Wait()
	close(stop)
	writer.Wait()
	return nil
}

// Connections returns the number of attached apps and pages.
func (h *Hub) Connections() int { return int(h.conns.Load()) }

// Dropped returns the number of stream frames dropped for peers that were behind.
func (h *Hub) Dropped() int64 { return h.group.Dropped() }

// Attached returns the apps and pages attached to a session.
func (h *Hub) Attached(sessionID string) sessions.Live {
	s := h.find(sessionID)
	if s == nil {
		return sessions.Live{}
	}
	p := s.peers()
	return sessions.Live{Apps: p.Apps, Pages: p.Pages}
}

// WithApps returns the IDs of an account's sessions that have an app attached, in any order.
func (h *Hub) WithApps(accountID string) (ids []string) {
	h.mu.Lock()
	live := slices.Collect(maps.Values(h.live))
	h.mu.Unlock()
	for _, s := range live {
		if owner := s.owner.Load(); owner != nil && owner.AccountID == accountID && s.Apps.Len() > 0 {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// Closed appends the last row of a session and closes the session's connections.
func (h *Hub) Closed(sessionID string) {
	s, ok := h.hold(sessionID)
	if !ok {
		return
	}
	defer h.release(s)
	s.Mu.Lock()
	s.Log(context.Background(), glasses.RowSessionClosed, struct{}{})
	s.Mu.Unlock()
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
	s.Mu.Lock()
	defer s.Mu.Unlock()
	frame := host.Text(h.frame(glasses.TypeDevice, "", glasses.DeviceChange{DeviceModel: m}))
	s.Apps.Send(frame)
	s.pages.Send(frame)
	s.Log(ctx, glasses.TypeDevice, glasses.DeviceChange{DeviceModel: m})
}

// find returns the live session, or nil if no peer is attached.
func (h *Hub) find(sessionID string) *liveSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.live[sessionID]
}

// hold finds or creates the live session, and keeps it until release. It returns false once the hub is closing.
func (h *Hub) hold(sessionID string) (*liveSession, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, false
	}
	s := h.live[sessionID]
	if s == nil {
		s = newLiveSession(h, strings.Clone(sessionID)) // cloned because id may be part of a larger request
		h.restoreRates(s)
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
		h.saveRates(s)
	}
	h.serving.Done()
}

// frame encodes a frame from the service.
func (h *Hub) frame(typ, id string, payload any) []byte {
	return broker.Encode(h.Now(), typ, id, payload)
}
