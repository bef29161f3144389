package session

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

// App is an app that is attached to a local session. The goroutine that reads its connection calls Handle and Leave.
type App struct {
	host.Attachment
	session *localSession
	peer    host.Receiver
	rows    host.Rows // the log when the app attached
	// Welcome is the first frame for the app. Send it before the frames of Replay and of Peer.
	Welcome []byte

	gatewayURL      string
	hasGateway      atomic.Bool // the app has received a gateway token
	answersBarriers bool
	sent            atomic.Int64 // number of sent frames to which the app may react
	handled         atomic.Int64 // number of these frames that the app has certainly handled
	isStuck         atomic.Bool  // the app failed to settle in time

	mu       sync.Mutex
	barriers map[string]chan int // unanswered barriers; each receives the number of gateway calls, or -1
	active   chan struct{}       // closed and replaced when the app sends or receives a frame
	gone     chan struct{}
	once     sync.Once
}

// Refusal is the error for an app that may not attach. It contains a close code and a reason.
type Refusal struct {
	Code   int
	Reason string
}

// Error returns the reason.
func (e *Refusal) Error() string { return e.Reason }

// Attach attaches an app. Replay sends the app the rows that are now in the log. Later frames are sent through peer.
// helloID is the ID of the app's hello. It returns a *Refusal on failure.
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
		session: s, peer: peer, answersBarriers: hello.Barrier,
		barriers: map[string]chan int{}, active: make(chan struct{}), gone: make(chan struct{}),
	}
	a.SetHello(hello)
	url, err := m.opts.Endpoints.GatewayURL(context.Background())
	if err != nil {
		return nil, &Refusal{glasses.CloseRestart, "the service is stopping"}
	}
	a.gatewayURL = url
	state, err := s.attachApp(a)
	if err != nil {
		return nil, err
	}
	a.Welcome = s.Welcome(s.owner.life, a, helloID, s.id, s.state.read().Snapshot.DeviceModel, a.rows, state)
	return a, nil
}

// attachApp attaches an app and sets its rows. It returns the state of the glasses for its welcome.
func (s *localSession) attachApp(a *App) (glasses.AppState, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	switch {
	case s.isOver:
		return glasses.AppState{}, &Refusal{glasses.CloseRestart, "the session is closing"}
	case s.Apps.Len() >= MaxApps:
		return glasses.AppState{}, &Refusal{glasses.CloseSlow, "too many apps are attached to this session"}
	}
	m := s.state.read()
	a.rows = host.Rows{First: s.log.oldest(), Last: s.log.newest(), Read: s.log.readEvents}
	a.sent.Store(1)
	s.Attach(s.life, a)
	s.owner.attached.Add(1)
	return m.Snapshot.State.ForApp(s.link(), m.Clock), nil
}

// Replay sends the app the events and results after its cursor.
func (a *App) Replay(ctx context.Context, pass func(frame []byte) error) error {
	if err := a.session.log.waitWritten(ctx, a.rows.Last); err != nil {
		return err
	}
	return a.session.Replay(ctx, a, a.rows, pass)
}

// Leave detaches the app from its session. Only the first call has an effect.
func (a *App) Leave() { a.once.Do(a.leave) }

func (a *App) leave() {
	s := a.session
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Detach(s.life, a)
	s.owner.attached.Add(-1)
	close(a.gone)
}

// Send sends a frame to which the app may react (host.Receiver).
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

func (a *App) noteActivity() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.active)
	a.active = make(chan struct{})
}

// barrierAnswered records the app's answer to a barrier. It returns false if no barrier is waiting for this answer.
func (a *App) barrierAnswered(f glasses.Frame) bool {
	calls := -1
	var answer glasses.BarrierAnswer
	if json.Unmarshal(f.Payload, &answer) == nil && answer.Calls != nil && *answer.Calls >= 0 {
		calls = *answer.Calls
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	answered, ok := a.barriers[f.ID]
	if ok {
		answered <- calls
		delete(a.barriers, f.ID)
	}
	return ok
}
