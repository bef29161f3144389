package host

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// App is an attached app. It embeds an Attachment.
type App interface {
	comparable
	Receiver
	Attached() *Attachment
}

// Attachment is what a session knows of an attached app.
type Attachment struct {
	Info        glasses.AppInfo
	Since       *int64       // the cursor of an app that attaches again; nil for a new one
	tokenEnds   atomic.Int64 // when its gateway token expires, in Unix milliseconds; 0 if it has none
	takesTokens bool         // whether it accepts gateway.token frames
}

// SetHello sets what an app's hello contains.
func (a *Attachment) SetHello(hello glasses.Hello) {
	a.Info, a.Since, a.takesTokens = hello.App, hello.Since, hello.Gateway
}

// Attached returns a, also for the app that embeds it (App).
func (a *Attachment) Attached() *Attachment { return a }

// Host is what a session needs from the program around it: its clock, its log and state, and its glasses. The session
// calls it with Mu held, except for Now, NewGateway and TokenTime.
type Host[A App] interface {
	// Now returns the time on the session's clock.
	Now() time.Time
	// EventID returns the ID under which an event of the glasses is relayed and logged. id is the ID that they chose.
	EventID(id string) string
	// Append adds a row to the log and applies it to the session's state. If the row is a successful result, answered is
	// its command. When the row is durable, Append acknowledges it to from, unless from is nil.
	Append(ctx context.Context, row glasses.Event, from Receiver, answered *broker.Command)
	// Acknowledge acknowledges a row that an earlier frame has added, once it is durable.
	Acknowledge(ctx context.Context, row glasses.Event, to Receiver)
	// SendCommand sends an app's command to the glasses.
	SendCommand(frame []byte) error
	// SendControl sends a control frame to the glasses. Without glasses it does nothing.
	SendControl(frame []byte)
	// Standing returns the settings of apps that outlive a pair of glasses. SetStanding changes them.
	Standing() glasses.Standing
	SetStanding(standing glasses.Standing)
	// NewGateway returns the gateway's address and a new token for an app, or nil if the session has no gateway.
	NewGateway(ctx context.Context, app A) (*glasses.Gateway, error)
	// TokenTime returns the current time for checking whether a token has expired. It is real time even if the session
	// runs in virtual time.
	TokenTime() time.Time
}

// Session is a live session: the broker, what carries out its decisions, and the attached apps.
type Session[A App] struct {
	// Mu keeps relaying, logging and attaching in the same order, so that a replay followed by live frames has neither
	// gaps nor duplicates. The caller of a method must hold it unless the method says otherwise.
	Mu     sync.Mutex
	Broker *broker.Broker // guarded by Mu
	Apps   List[A]
	host   Host[A]

	pending   atomic.Int64 // a copy of Broker.Pending, readable without Mu
	streamsMu sync.Mutex   // innermost
	streams   broker.StreamCounter
}

// Init prepares a session. countEvery is the interval between the rows about a stream.
func (s *Session[A]) Init(host Host[A], b *broker.Broker, countEvery time.Duration) {
	s.host, s.Broker, s.streams = host, b, broker.NewStreamCounter(countEvery)
}

// Frame returns a frame from the service. It does not need Mu.
func (s *Session[A]) Frame(typ, id string, payload any) []byte {
	return broker.Encode(s.host.Now(), typ, id, payload)
}

// Log adds a row from the service to the log.
func (s *Session[A]) Log(ctx context.Context, typ string, payload any) {
	s.host.Append(ctx, broker.ServiceRow(s.host.Now(), typ, payload), nil, nil)
}

// Perform carries out the broker's decisions about a frame. from is the sender of the frame, or nil if nothing is to be
// sent to it. Perform stops at a command that cannot be sent to the glasses, and returns the error.
func (s *Session[A]) Perform(ctx context.Context, from Receiver, outputs []broker.Output) error {
	defer s.CountPending()
	for _, o := range outputs {
		switch o.Action {
		case broker.Refuse:
			if from != nil {
				from.SendText(o.Data)
			}
		case broker.ToApps:
			s.Apps.Send(Text(o.Data))
		case broker.ToGlasses:
			if err := s.host.SendCommand(o.Data); err != nil {
				return err
			}
		case broker.Acknowledge:
			if from != nil {
				s.host.Acknowledge(ctx, o.Row, from)
			}
		case broker.Append:
			sender := from
			if o.Row.Sender == glasses.SenderService {
				sender = nil
			}
			s.host.Append(ctx, o.Row, sender, o.Answered)
			if o.Answered != nil {
				s.logStreams(ctx, func(c *broker.StreamCounter) []glasses.StreamCount {
					return c.TakeStopped(o.Answered.Type)
				})
			}
		}
	}
	return nil
}

// CountPending updates what HasDeadlines reports about commands. Call it after Broker.Restore.
func (s *Session[A]) CountPending() { s.pending.Store(int64(s.Broker.Pending())) }

// FromGlasses handles an admitted result or event from the glasses from, whose ID is id. player is the ID of the peer
// that acts as the glasses. It returns the reason if the broker refuses the frame.
func (s *Session[A]) FromGlasses(
	ctx context.Context, from Receiver, id, player broker.PeerID, f glasses.Frame, raw []byte,
) error {
	if eventID := s.host.EventID(f.ID); f.Type != glasses.TypeResult && eventID != f.ID {
		f.ID = eventID
		raw = broker.Payload(f)
	}
	outputs := s.Broker.FromGlasses(s.host.Now(), id, player, f, raw)
	_ = s.Perform(ctx, from, outputs) // sends no command
	isNew := outputs[len(outputs)-1].Action == broker.Append
	if isNew && glasses.DropsApp(f.Type, f.Payload) {
		s.Apps.End(glasses.CloseRestart, glasses.DroppedByFault)
	}
	return outputs[0].Err
}

// GlassesGone answers the commands that wait for glasses, after the last glasses have disconnected. Commands that fail
// get message as their error message.
func (s *Session[A]) GlassesGone(ctx context.Context, message string) {
	s.logStreams(ctx, (*broker.StreamCounter).TakeAll)
	_ = s.Perform(ctx, nil, s.Broker.GlassesGone(s.host.Now(), message)) // sends no command
	s.SendLink(glasses.LinkDisconnected)
}

// SendLink tells the apps the state of the connection to the glasses.
func (s *Session[A]) SendLink(state string) {
	s.Apps.Send(Text(s.Frame(glasses.TypeLink, "link-"+rand.Text(), glasses.LinkState{State: state})))
}

// IsCommand reports whether a command with this ID is waiting for its result. The caller must not hold Mu.
func (s *Session[A]) IsCommand(id string) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	_, ok := s.Broker.Command(id)
	return ok
}

// Streams bypass the broker: they are relayed without Mu, counted, and never logged.

// RelayStream sends a frame of a stream to the apps, and counts its size bytes. If apps lag behind, it returns the
// channel for AwaitRelief; otherwise it returns nil. It does not need Mu.
func (s *Session[A]) RelayStream(typ string, size int, m Message) (relieved <-chan struct{}) {
	now := s.host.Now() // may lock
	s.streamsMu.Lock()
	s.streams.Add(now, typ, size)
	s.streamsMu.Unlock()
	m.Stream = true
	return s.Apps.Send(m)
}

// logStreams adds a row for each count that take removes from the counter.
func (s *Session[A]) logStreams(ctx context.Context, take func(*broker.StreamCounter) []glasses.StreamCount) {
	s.streamsMu.Lock()
	counts := take(&s.streams)
	s.streamsMu.Unlock()
	for _, c := range counts {
		s.Log(ctx, glasses.RowStreamCounted, c)
	}
}

// HasDeadlines reports whether Expire may have work to do, now or later. It does not need Mu.
func (s *Session[A]) HasDeadlines() bool {
	if s.pending.Load() > 0 {
		return true
	}
	s.streamsMu.Lock()
	defer s.streamsMu.Unlock()
	return s.streams.IsRunning()
}

// NextDeadline returns when Expire next has work to do; ok is false if it has none.
func (s *Session[A]) NextDeadline() (deadline time.Time, ok bool) {
	deadline, isPending := s.Broker.NextDeadline()
	s.streamsMu.Lock()
	defer s.streamsMu.Unlock()
	count, isCounting := s.streams.NextDue()
	if isCounting && (!isPending || count.Before(deadline)) {
		deadline = count
	}
	return deadline, isPending || isCounting
}

// Expire logs the stream counts that are due and fails overdue commands.
func (s *Session[A]) Expire(ctx context.Context) {
	now := s.host.Now()
	s.logStreams(ctx, func(c *broker.StreamCounter) []glasses.StreamCount { return c.TakeDue(now) })
	_ = s.Perform(ctx, nil, s.Broker.ExpireCommands(now)) // sends no command
}

// Ack returns the acknowledgement of a durable row.
func Ack(now time.Time, row glasses.Event) []byte {
	return broker.Encode(now, glasses.TypeAck, row.ID, glasses.Ack{ID: row.ID, Kind: row.Kind, Seq: row.Seq})
}

// Cursor returns the frame that tells apps how far they may advance their cursors. Every frame up to the row seq was
// relayed before the row became durable.
func Cursor(now time.Time, seq int64) []byte {
	return broker.Encode(now, glasses.TypeCursor, "", glasses.Cursor{Seq: seq})
}

// ErrTrimmed ends the attachment of a peer if rows were deleted during its replay. When the peer reconnects, its
// welcome reports that the log was truncated.
var ErrTrimmed = errors.New("rows were deleted while they were replayed")

// Rows is the part of a log that a peer has not seen when it attaches.
type Rows struct {
	First, Last int64 // seqs of the oldest stored row and of the newest; First is above Last if the log is empty
	// Read returns up to limit stored rows with seq above since, in order.
	Read func(ctx context.Context, since int64, limit int) ([]glasses.Event, error)
}

// Replay passes the rows after since to pass. It omits rows that were deleted earlier; the welcome reports them as
// truncated. Later rows than r.Last are in the peer's queue.
func (r Rows) Replay(ctx context.Context, since int64, pass func(glasses.Event) error) error {
	for since = max(since, r.First-1); since < r.Last; {
		rows, err := r.Read(ctx, since, int(min(r.Last-since, replayPage)))
		if err != nil {
			return err
		}
		if len(rows) == 0 || rows[0].Seq != since+1 {
			return ErrTrimmed
		}
		for _, row := range rows {
			if err := pass(row); err != nil {
				return err
			}
		}
		since = rows[len(rows)-1].Seq
	}
	return nil
}

// replayPage is the number of rows per read during a replay.
const replayPage = 200
