package session

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

// App is an app that is attached to a local session. The goroutine that reads its connection calls Handle and Leave.
type App struct {
	session *localSession
	peer    host.Receiver
	info    glasses.AppInfo
	since   *int64
	lastSeq int64
	// Welcome is the first frame for the app. Send it before Replay's frames and before any frame sent to its Peer.
	Welcome []byte

	gatewayURL      string
	tokenEnds       time.Time   // expiry of its latest gateway token; guarded by the session's lock
	hasGateway      atomic.Bool // whether it has received a gateway token
	answersBarriers bool
	takesTokens     bool         // whether it accepts gateway.token frames
	sent            atomic.Int64 // number of sent frames that it may react to
	handled         atomic.Int64 // number of these frames that it has definitely handled
	isStuck         atomic.Bool  // whether it failed to settle in time

	mu       sync.Mutex
	barriers map[string]chan int // unanswered barriers; each receives the number of gateway calls, or -1
	active   chan struct{}       // closed and replaced when the app sends or receives a frame
	gone     chan struct{}
	once     sync.Once
}

// appList is the list of a session's apps. It is changed under the session's lock and read without the lock.
type appList struct {
	list     atomic.Pointer[[]*App]
	attached *atomic.Int64 // number of apps attached to all sessions
}

func (l *appList) all() []*App {
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

func (l *appList) add(a *App) {
	list := append(slices.Clone(l.all()), a)
	l.list.Store(&list)
	l.attached.Add(1)
}

func (l *appList) remove(a *App) {
	list := slices.DeleteFunc(slices.Clone(l.all()), func(other *App) bool { return other == a })
	l.list.Store(&list)
	l.attached.Add(-1)
}

// send sends a frame to every app. If apps lag behind, it returns the channel of one of them, for which the sender of a
// stream may wait; otherwise it returns nil.
func (l *appList) send(m host.Message) (relieved <-chan struct{}) {
	for _, a := range l.all() {
		if r := a.Send(m); r != nil {
			relieved = r
		}
	}
	return relieved
}

// Refusal is the error for an app that may not attach: a close code and a reason.
type Refusal struct {
	Code   int
	Reason string
}

// Error returns the reason.
func (e *Refusal) Error() string { return e.Reason }

// Attach attaches an app. Replay sends it the rows that are now in the log; later frames are sent through peer. helloID
// is the ID of the app's hello. It returns a *Refusal on failure.
func (m *Manager) Attach(id string, hello glasses.Hello, helloID string, peer host.Receiver) (*App, error) {
	s := m.local.find(id)
	if s == nil || !s.secret.matches(hello.Secret) {
		return nil, &Refusal{glasses.CloseBadSecret, "the secret does not belong to this session"}
	}
	if err := s.wake(); err != nil {
		m.local.log.Warn("failed to attach app", "session", id, "err", err)
		return nil, &Refusal{glasses.CloseStore, "the session could not be read; try again"}
	}
	a := &App{
		session: s, peer: peer, info: hello.App, answersBarriers: hello.Barrier, takesTokens: hello.Gateway,
		since:    hello.Since,
		barriers: map[string]chan int{}, active: make(chan struct{}), gone: make(chan struct{}),
	}
	url, err := m.opts.Endpoints.GatewayURL(context.Background())
	if err != nil {
		return nil, &Refusal{glasses.CloseRestart, "the service is stopping"}
	}
	a.gatewayURL = url
	if err := s.attachApp(a, helloID); err != nil {
		return nil, err
	}
	return a, nil
}

func (s *localSession) attachApp(a *App, helloID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isOver:
		return &Refusal{glasses.CloseRestart, "the session is closing"}
	case len(s.apps.all()) >= MaxApps:
		return &Refusal{glasses.CloseSlow, "too many apps are attached to this session"}
	}
	m, link := s.state.read(), s.link()
	model, _ := glasses.Model(m.Snapshot.DeviceModel)
	a.lastSeq = s.log.newest()
	a.Welcome = s.frame(glasses.TypeWelcome, helloID, glasses.Welcome{
		SessionID: s.id, DeviceModel: model, Link: link, LastSeq: a.lastSeq,
		Glasses:   m.Snapshot.State.ForApp(link, m.Clock),
		Truncated: a.since != nil && *a.since < s.log.oldest()-1, Gateway: s.newGateway(a),
	})
	a.sent.Store(1)
	isFirst := len(s.apps.all()) == 0
	s.apps.add(a)
	if isFirst && m.Standing.Transcription != nil {
		s.takeOverTranscription(a.since != nil)
	}
	s.logService(glasses.RowAppAttached, a.info)
	return nil
}

// takeOverTranscription resumes transcription when the first app that attaches has been attached before. If the app is
// new, it ends transcription; the app that started it finds the corresponding row if it returns later. The caller holds
// mu.
func (s *localSession) takeOverTranscription(isBack bool) {
	if isBack {
		s.sendStanding()
		return
	}
	s.state.update(func(m *meta) { m.Standing.Transcription = nil })
	row := broker.ServiceRow(s.now(), glasses.TypeTranscription, glasses.TranscriptionState{})
	row.ID = s.newEventID()
	s.appendRow(row, nil, nil)
}

// Replay sends the app the events and results after its cursor.
func (a *App) Replay(ctx context.Context, pass func(frame []byte) error) error {
	if a.since == nil {
		return nil
	}
	log := a.session.log
	if err := log.waitWritten(ctx, a.lastSeq); err != nil {
		return err
	}
	for since := *a.since; since < a.lastSeq; {
		p, err := log.read(since, int(min(a.lastSeq-since, MaxLimit)))
		if err != nil || len(p.rows) == 0 {
			return err
		}
		for _, raw := range p.rows {
			var row glasses.Event
			if err := json.Unmarshal(raw, &row); err != nil {
				return err
			}
			if frame := broker.Replay(row); frame != nil {
				if err := pass(frame); err != nil {
					return err
				}
			}
		}
		since = p.next
	}
	return nil
}

// Leave detaches the app from its session. Only the first call has an effect.
func (a *App) Leave() { a.once.Do(a.leave) }

func (a *App) leave() {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apps.remove(a)
	close(a.gone)
	s.logService(glasses.RowAppDetached, a.info)
	if len(s.apps.all()) == 0 && s.state.read().Standing.Transcription != nil {
		s.sendStanding() // no app is attached any longer
	}
}

// Send sends a frame that the app may react to (host.Receiver).
func (a *App) Send(m host.Message) (relieved <-chan struct{}) {
	a.sent.Add(1)
	relieved = a.peer.Send(m)
	a.noteActivity()
	return relieved
}

// SendText sends a frame to which the app does not react (host.Receiver).
func (a *App) SendText(frame []byte) { a.peer.SendText(frame) }

// End disconnects the app (host.Receiver).
func (a *App) End(code websocket.Status, reason string) { a.peer.End(code, reason) }

// notify sends a frame about the log.
func (a *App) notify(at int64, typ, id string, payload any) {
	a.SendText(broker.Encode(time.UnixMilli(at), typ, id, payload))
}

func (a *App) noteActivity() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.active)
	a.active = make(chan struct{})
}

// barrierAnswered records the app's answer to a barrier.
func (a *App) barrierAnswered(f glasses.Frame) {
	calls := -1
	var answer glasses.BarrierAnswer
	if json.Unmarshal(f.Payload, &answer) == nil && answer.Calls != nil && *answer.Calls >= 0 {
		calls = *answer.Calls
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if answered, ok := a.barriers[f.ID]; ok {
		answered <- calls
		delete(a.barriers, f.ID)
	}
}
