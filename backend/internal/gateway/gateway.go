// Package gateway forwards calls from apps to model providers and charges for them. A call is admitted only if its
// account's credit covers the maximum cost of the call. That amount is held before the first byte is sent to the
// provider, and no call is charged more than its hold. Content is neither stored nor logged. Only what was said in
// conversations that are remembered stays in the process until it is in the user's profile; see package memory.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/periodic"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
)

// Purse is the part of the credit ledger that the gateway uses. It is an interface so that tests can end holds and let
// settlements fail or wait.
type Purse interface {
	Hold(ctx context.Context, r credit.HoldRequest) (credit.Hold, error)
	Renew(ctx context.Context, id string) error
	Settle(ctx context.Context, id string, charge credit.Amount, call credit.Call) (credit.Amount, error)
	Release(ctx context.Context, id string, call credit.Call) error
	Carry(ctx context.Context, id string, cost credit.Amount, call credit.Call) error
	Record(ctx context.Context, call credit.Call) error
}

// Keys checks whether the keys and sessions that make calls are still valid. It is an interface so that tests can
// revoke a key at any moment of a call.
type Keys interface {
	// LiveKeys filters key IDs (see Caller). It returns the IDs that are not revoked and whose account is active.
	LiveKeys(ctx context.Context, ids []string) ([]string, error)
}

// Sessions provides access to the simulator sessions whose apps make calls. It is an interface so that tests can delay
// the answers of scripts.
type Sessions interface {
	// Script returns the script of a session's assistant, or nil if it has none. It may return ErrSessionOver.
	Script(ctx context.Context, id string) (*assistantscript.Script, error)
	// LogAssistant appends a row about the app's assistant to a session's event log. The row has a type such as
	// glasses.RowToolCalled.
	LogAssistant(ctx context.Context, id, row string, payload any)
}

// ErrSessionOver is returned for a session that ended after its app was authenticated.
var ErrSessionOver = errors.New("the session is over")

// Options configure a Service.
type Options struct {
	Catalogue Catalogue
	Purse     Purse
	Keys      Keys
	Sessions  Sessions           // nil if there are none
	Settings  *assistant.Service // choices of project owners; nil means that all projects use the catalogue's default
	OwnKeys   *OwnKeys           // nil means that credit pays for all projects
	// Memory stores what apps remember about their users. It is nil if nothing is remembered.
	Memory *memory.Service
	// Servers manages the model servers that users add themselves. It is nil if only the operator can add models.
	Servers *LocalServers
	Log     *slog.Logger
	Now     func() time.Time
	Limits  Limits
}

// Limits limits the calls. If a field is 0, the default in its comment applies.
type Limits struct {
	Calls     int           // running calls; 1,024
	Scripts   int           // answers of scripts that are not due yet; 1,024
	Drains    int           // answers read to their end after their app left; 256
	Share     int           // one account may use 1/Share of each of these; 8
	FirstByte time.Duration // limit until the provider starts a streamed answer; 60 s
	Idle      time.Duration // maximum time between two reads of the answer; 60 s
	Total     time.Duration // duration of a call; 10 min
	Renew     time.Duration // between two renewals of a hold's lease; 20 s
	KeyCheck  time.Duration // between two checks of the keys of running calls; 500 ms
	Grace     time.Duration // how long calls may continue when the service stops; 5 s

	// Limits of conversations.
	Quiet  time.Duration // without an event from either side; 60 s
	Unpaid time.Duration // after an answer was refused for lack of credit; 30 s
	Ping   time.Duration // between two pings, each of which needs a response before the next; 20 s
	Drain  time.Duration // to wait for the usage of an answer in which a conversation ends; 5 s
}

const (
	settleTimeout  = 10 * time.Second
	maxBadReceipts = 3 // consecutive bad reports before a model is hidden
	hiddenFor      = 10 * time.Minute
	minShrunk      = 64          // minimum length in tokens to which limited credit may shorten an answer
	afterEnd       = time.Second // how long a provider may keep a stream open after its end
)

func (l Limits) withDefaults() Limits {
	d := Limits{1024, 1024, 256, 8, time.Minute, time.Minute, 10 * time.Minute,
		20 * time.Second, 500 * time.Millisecond, 5 * time.Second,
		time.Minute, 30 * time.Second, 20 * time.Second, 5 * time.Second}
	for _, n := range []struct{ into, value *int }{
		{&l.Calls, &d.Calls}, {&l.Scripts, &d.Scripts}, {&l.Drains, &d.Drains}, {&l.Share, &d.Share},
	} {
		if *n.into == 0 {
			*n.into = *n.value
		}
	}
	for _, n := range []struct{ into, value *time.Duration }{{&l.FirstByte, &d.FirstByte},
		{&l.Idle, &d.Idle}, {&l.Total, &d.Total}, {&l.Renew, &d.Renew},
		{&l.KeyCheck, &d.KeyCheck}, {&l.Grace, &d.Grace}, {&l.Quiet, &d.Quiet},
		{&l.Unpaid, &d.Unpaid}, {&l.Ping, &d.Ping}, {&l.Drain, &d.Drain}} {
		if *n.into == 0 {
			*n.into = *n.value
		}
	}
	return l
}

// slots returns slots of which each account can use its share.
func (l Limits) slots(total int) *limit.Slots {
	return limit.NewSlots(limit.Bounds{Running: total, RunningEach: max(1, total/l.Share)})
}

// Service forwards calls to providers. Its Serve must run while it is used.
type Service struct {
	Options
	client *http.Client
	ctx    context.Context // ends when Serve returns
	stop   context.CancelCauseFunc

	running, waiting, drains *limit.Slots // slots by account: calls, scripts that are not due yet, answers without an app
	scripts                  *limit.Slots // slots by session: scripts that are not due yet
	conversations, bySession *limit.Slots // slots by project and, with a session's token, by session

	transcripts *transcripts // of conversations whose memories are not written yet

	mu      sync.Mutex
	stopped bool
	calls   sync.WaitGroup
	cuts    map[*call]context.CancelCauseFunc // functions that cut off unsettled calls
	bad     map[string]badReceipts            // counts by model
}

var (
	errStopped   = errors.New("the server is stopping")
	errUncovered = errors.New("the call's hold has ended")
	errRevoked   = errors.New("the call's key is revoked")
)

// New returns a Service.
func New(o Options) *Service {
	o.Limits = o.Limits.withDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	l := o.Limits
	s := &Service{Options: o, running: l.slots(l.Calls), waiting: l.slots(l.Scripts), drains: l.slots(l.Drains),
		scripts:       limit.NewSlots(limit.Bounds{Running: l.Scripts, RunningEach: maxScriptCalls}),
		conversations: limit.NewSlots(limit.Bounds{Running: l.Calls, RunningEach: projectConversations}),
		bySession:     limit.NewSlots(limit.Bounds{Running: l.Calls, RunningEach: sessionConversations}),
		transcripts:   newTranscripts(),
		cuts:          map[*call]context.CancelCauseFunc{}, bad: map[string]badReceipts{}}
	s.client = newClient(nil)
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}

// Serve renews the holds of running calls, cuts off calls whose key is revoked and writes the memories of conversations
// that have ended, until ctx ends. After that, when the apps have disconnected, it begins to write the other memories,
// gives the remaining calls a grace period, cuts them off and waits until they are settled.
func (s *Service) Serve(ctx context.Context) error {
	checked, merged := make(chan error, 1), make(chan error, 1)
	go func() { checked <- periodic.Run(ctx, s.Limits.KeyCheck, s.Log, "check keys of calls", s.cutRevoked) }()
	go func() { merged <- periodic.Run(ctx, mergeEvery, s.Log, "write memories", s.mergeDue) }()
	err := periodic.Run(ctx, s.Limits.Renew, s.Log, "renew holds", s.renew)
	err = errors.Join(err, <-checked, <-merged)
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.startMerges(true)
	settled := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(settled)
	}()
	grace := time.NewTimer(s.Limits.Grace)
	defer grace.Stop()
	select {
	case <-settled:
	case <-grace.C:
	}
	s.stop(errStopped)
	<-settled
	s.client.CloseIdleConnections()
	return err
}

// begin counts a call until end is called; further calls of end have no effect. It returns a *Refusal if too many
// calls are running or the service is stopping.
func (s *Service) begin(ctx context.Context, who Caller) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, Refuse(problem.CodeUnavailable, "the server is restarting: try again").After(2 * time.Second)
	}
	leave, err := s.running.Enter(ctx, who.Account) // never waits
	if err != nil {
		return nil, TooManyCalls()
	}
	s.calls.Add(1)
	return sync.OnceFunc(func() {
		leave()
		s.calls.Done()
	}), nil
}

// TooManyCalls returns the refusal of a call that exceeds the capacity of this process or the account's share of it.
func TooManyCalls() *Refusal {
	return Refuse(problem.CodeTooManyCalls, "too many calls at once: try again").After(time.Second)
}

// Running returns the number of calls that are not settled yet.
func (s *Service) Running() (n int) {
	for _, slots := range []*limit.Slots{s.running, s.waiting, s.drains} {
		running, _ := slots.Used()
		n += running
	}
	return n
}

// Caller identifies an app. Key is the ID of the project key that the app uses, of its session or of its install.
type Caller struct {
	Account, Project, Key string
	// Session is the simulator session whose token the app uses. It is empty for a project key.
	Session string
	// Install is the attested install whose token the app uses, or empty.
	Install string
	// User is the secret of the app's user in a call that remembers; see package memory. Otherwise it is empty.
	User string
}

// byKey reports whether the app proves nothing but that it knows a project key, which everybody can read in the app.
func (c Caller) byKey() bool { return c.Session == "" && c.Install == "" }

// Sink receives the answer to a call. It is an interface because package modelapi, which writes answers to apps,
// imports this package.
type Sink interface {
	// Begin is called once, before the first Write.
	Begin(streamed bool)
	// Write returns an error if the app has disconnected.
	Write(p []byte) error
}

// ErrBroken is returned for an answer that ended early, after its first part was sent. It wraps a *Refusal with
// the reason.
var ErrBroken = errors.New("the answer broke off")

// why returns the reason why a model is not offered to projects that pay with credit, or "".
func (s *Service) why(m *Model) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Now().Before(s.bad[m.ID].hiddenUntil) {
		return "its provider's last usage reports were impossible: the operator must check them; it is offered again soon"
	}
	return m.Why
}

// badReceipts counts a model's impossible usage reports since the last plausible one.
type badReceipts struct {
	count       int
	hiddenUntil time.Time
}

// noteReceipt counts impossible usage reports of a model that is not free, and hides the model for a while after too
// many. It ignores missing reports and reports above the bound of a call, because an app can cause these.
func (s *Service) noteReceipt(m *Model, bad bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bad {
		delete(s.bad, m.ID)
		return
	}
	b := s.bad[m.ID]
	if b.count++; b.count >= maxBadReceipts {
		b.hiddenUntil = s.Now().Add(hiddenFor)
		s.Log.Error("model hidden: its last usage reports were impossible", "model", m.ID, "provider", m.Provider.ID)
	}
	s.bad[m.ID] = b
}

// find returns the model with this ID, which may be Assistant for a text model, and whether the project's own key pays
// for it.
func (s *Service) find(ctx context.Context, who Caller, id string) (m *Model, own bool, err error) {
	if m, err = s.named(ctx, who, id); err != nil {
		return nil, false, err
	}
	own, err = s.payable(ctx, who, m)
	return m, own, err
}

// payable reports whether the project's own key pays for a model, or returns why the project cannot call it.
func (s *Service) payable(ctx context.Context, who Caller, m *Model) (own bool, err error) {
	if own, err = s.paysItself(ctx, who, m); err != nil {
		return false, err
	}
	why := m.whyNotOwn()
	if !own {
		why = s.why(m)
	}
	if why != "" {
		return false, noModel("the model " + m.ID + " is not offered: " + why)
	}
	return own, nil
}

// named returns the model with this ID, even if it is not offered.
func (s *Service) named(ctx context.Context, who Caller, id string) (*Model, error) {
	added, err := s.Servers.models(ctx, who)
	if err != nil {
		return nil, refusalOf(err)
	}
	if len(s.Catalogue.Models)+len(added) == 0 {
		return nil, s.notConfigured()
	}
	asked := id
	if id == Assistant {
		id = s.Catalogue.Default
		if s.Settings != nil {
			chosen, err := s.Settings.TextModel(ctx, who.Account, who.Project)
			if err != nil {
				return nil, refusalOf(err)
			}
			if chosen != "" {
				id = chosen
			}
		}
	}
	if asked == Assistant && id == "" && len(added) > 0 {
		return added[0], nil
	}
	m := s.Catalogue.model(id)
	if i := slices.IndexFunc(added, func(one *Model) bool { return one.ID == id }); m == nil && i >= 0 {
		m = added[i]
	}
	switch {
	case m == nil && asked == Assistant && id == "":
		return nil, noModel("this project has chosen no model for " + Assistant + " and the operator has set no default: " +
			"choose one on the project's page")
	case m == nil && asked == Assistant:
		return nil, noModel("the model that this project has chosen for " + Assistant + " is no longer offered: choose " +
			"another on the project's page")
	case m == nil:
		return nil, noModel("there is no model " + clip(asked) + ": GET /v1/models lists the available models")
	}
	return m, nil
}

func (s *Service) notConfigured() error {
	if s.Servers != nil {
		return Refuse(problem.CodeNotConfigured, "there are no models yet: add a local server on the project's gateway page")
	}
	return Refuse(problem.CodeNotConfigured, "the operator of this backend has set up no models")
}

func noModel(message string) error {
	return Refuse(problem.CodeModelNotFound, message).At("model")
}

func clip(text string) string { return text[:min(len(text), 64)] }
