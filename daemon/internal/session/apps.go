package session

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/service-dev/service/proto/glasses"
)

// Close codes of an app's connection (PROTOCOL.md lists them for clients).
const (
	CloseRestart     = 1012
	CloseSlow        = 1013
	CloseStore       = 1011
	CloseBadHello    = 4400
	CloseBadSecret   = 4401
	CloseSessionOver = 4410
)

// Peer is an app's connection as a session sees it.
type Peer interface {
	// Send queues a frame and never blocks. Of a stream, a frame is dropped when the peer is behind; a peer that is too
	// far behind for another frame is cut off with CloseSlow.
	Send(data []byte, binary, stream bool)
	// End closes the connection after what is queued was sent. Only the first call counts.
	End(code int, reason string)
}

// App is an app that is attached to a local session. Take and Leave are called by the goroutine that reads its connection.
type App struct {
	r       *room
	peer    Peer
	info    glasses.AppInfo
	barrier bool
	since   *int64
	lastSeq int64
	// Welcome is the first frame that the app gets, before what Replay gives and before what is sent to its Peer.
	Welcome []byte

	sent    atomic.Int64 // frames that it may react to
	handled atomic.Int64 // how many of them it has handled for sure
	stuck   atomic.Bool  // it did not come to rest when it should have

	mu    sync.Mutex
	waits map[string]chan struct{} // barriers that it has not answered
	moved chan struct{}            // closed and made anew when it sends or gets something
	gone  chan struct{}
	once  sync.Once
}

// Refusal is why an app is not let in: a close code and words for the app.
type Refusal struct {
	Code   int
	Reason string
}

// Error gives the words.
func (e *Refusal) Error() string { return e.Reason }

// Attach lets an app in: what is in the log now comes by Replay, everything later over peer. helloID is the id of its
// hello. The error is a *Refusal.
func (m *Manager) Attach(id string, hello glasses.Hello, helloID string, peer Peer) (*App, error) {
	r := m.local.open(id)
	if r == nil || !r.opens(hello.Secret) {
		return nil, &Refusal{CloseBadSecret, "the secret does not belong to this session"}
	}
	if err := r.wake(); err != nil {
		m.local.log.Warn("attaching an app", "session", id, "err", err)
		return nil, &Refusal{CloseStore, "the session could not be read; try again"}
	}
	a := &App{
		r: r, peer: peer, info: hello.App, barrier: hello.Barrier, since: hello.Since,
		waits: map[string]chan struct{}{}, moved: make(chan struct{}), gone: make(chan struct{}),
	}
	if err := r.admit(a, helloID); err != nil {
		return nil, err
	}
	return a, nil
}

func (r *room) admit(a *App, helloID string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	apps := *r.apps.Load()
	switch {
	case r.over:
		return &Refusal{CloseRestart, "the session is closing"}
	case len(apps) >= MaxApps:
		return &Refusal{CloseSlow, "too many apps are attached to this session"}
	}
	model, _ := glasses.Model(r.meta.Snapshot.DeviceModel)
	a.lastSeq = r.log.newest()
	a.Welcome = r.frame(glasses.TypeWelcome, helloID, glasses.Welcome{SessionID: r.id, DeviceModel: model, Link: r.link(), LastSeq: a.lastSeq,
		Truncated: a.since != nil && *a.since < r.log.oldest()-1})
	a.sent.Store(1)
	next := append(slices.Clone(apps), a)
	r.apps.Store(&next)
	r.l.attached.Add(1)
	r.note(glasses.RowAppAttached, a.info)
	return nil
}

// Replay gives the events and results that the app asked for by its cursor.
func (a *App) Replay(ctx context.Context, give func(frame []byte) error) error {
	if a.since == nil {
		return nil
	}
	log := a.r.log
	if err := log.reach(ctx, a.lastSeq); err != nil {
		return err
	}
	for since := *a.since; since < a.lastSeq; {
		p, err := log.read(since, int(min(a.lastSeq-since, MaxLimit)))
		if err != nil || len(p.rows) == 0 {
			return err
		}
		for _, raw := range p.rows {
			if err := again(raw, give); err != nil {
				return err
			}
		}
		since = p.next
	}
	return nil
}

// again gives the frame that a row was, with its seq, if it is for apps.
func again(raw json.RawMessage, give func([]byte) error) error {
	var e glasses.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	if e.Sender == glasses.SenderApp || e.Type != glasses.TypeResult && !glasses.FromGlasses(e.Type) {
		return nil
	}
	data, err := glasses.Frame{Type: e.Type, ID: e.ID, At: e.At, Seq: e.Seq, Payload: e.Payload}.Encode()
	if err != nil {
		return err
	}
	return give(data)
}

// Leave takes the app out of its session. Leaving twice is harmless.
func (a *App) Leave() { a.once.Do(a.leave) }

func (a *App) leave() {
	r := a.r
	r.mu.Lock()
	defer r.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(*r.apps.Load()), func(o *App) bool { return o == a })
	r.apps.Store(&next)
	r.l.attached.Add(-1)
	close(a.gone)
	r.note(glasses.RowAppDetached, a.info)
}

// give sends a frame that the app may react to.
func (a *App) give(data []byte, binary, stream bool) {
	a.sent.Add(1)
	a.peer.Send(data, binary, stream)
	a.move()
}

// tell sends word about the log, which an app does not react to.
func (a *App) tell(at int64, typ, id string, payload any) {
	data, err := glasses.Frame{Type: typ, ID: id, At: at, Payload: encode(payload)}.Encode()
	if err == nil {
		a.peer.Send(data, false, false)
	}
}

func (a *App) move() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.moved)
	a.moved = make(chan struct{})
}

// answered notes that the app came to a barrier.
func (a *App) answered(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if wait, ok := a.waits[id]; ok {
		close(wait)
		delete(a.waits, id)
	}
}
