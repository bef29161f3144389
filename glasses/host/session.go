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

// Attachment is the state that a session keeps for an attached app.
type Attachment struct {
	Info        glasses.AppInfo
	Since       *int64       // the cursor of an app that attaches again; nil for a new one
	tokenEnds   atomic.Int64 // when its gateway token expires, in Unix milliseconds; 0 if it has none
	takesTokens bool         // the app accepts gateway.token frames
}

// SetHello stores the contents of an app's hello.
func (a *Attachment) SetHello(hello glasses.Hello) {
	a.Info, a.Since, a.takesTokens = hello.App, hello.Since, hello.Gateway
}

// Attached returns a. Through embedding, it implements App.
func (a *Attachment) Attached() *Attachment { return a }

// Host is the program around a session. It provides the session's clock, log, state and glasses. The session calls its
// methods with Mu held, except for Now, NewGateway and TokenTime.
type Host[A App] interface {
	// Now returns the time on the session's clock.
	Now() time.Time
	// EventID returns the ID under which an event of the glasses is relayed and logged. id is the ID chosen by the
	// glasses.
	EventID(id string) string
	// Append adds a row to the log and applies it to the session's state. If the row is a successful result, answered is
	// its command. When the row is durable, Append acknowledges it to from, unless from is nil.
	Append(ctx context.Context, row glasses.Event, from Receiver, answered *broker.Command)
	// Acknowledge acknowledges a row of an earlier frame after the row is durable.
	Acknowledge(ctx context.Context, row glasses.Event, to Receiver)
	// SendCommand sends an app's command to the glasses.
	SendCommand(frame []byte) error
	// SendControl sends a control frame to the glasses. Without glasses it does nothing.
	SendControl(frame []byte)
	// Standing returns the apps' settings that outlive a pair of glasses. SetStanding changes them.
	Standing() glasses.Standing
	SetStanding(standing glasses.Standing)
	// NewGateway returns the gateway's address and a new token for an app, or nil if the session has no gateway.
	NewGateway(ctx context.Context, app A) (*glasses.Gateway, error)
	// TokenTime returns the current time for checking whether a token has expired. It is real time, even for a session
	// in virtual time.
	TokenTime() time.Time
}

// Session is a live session. It consists of the broker, the code that carries out its decisions, and the attached apps.
type Session[A App] struct {
	// Mu keeps relaying, logging and attaching in the same order, so that live frames follow a replay without gaps or
	// duplicates. The caller of a method must hold it unless documented otherwise.
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

// Frame returns a frame from the service. The caller need not hold Mu.
func (s *Session[A]) Frame(typ, id string, payload any) []byte {
	return broker.Encode(s.host.Now(), typ, id, payload)
}

// Log adds a row from the service to the log.
func (s *Session[A]) Log(ctx context.Context, typ string, payload any) {
	s.host.Append(ctx, broker.ServiceRow(s.host.Now(), typ, payload), nil, nil)
}

// Perform carries out the broker's decisions about a frame. from is the sender of the frame, or nil if no frames go
// back to it. Perform stops at a command that cannot be sent to the glasses and returns the error.
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

// CountPending updates the number of commands that HasDeadlines uses. Call it after Broker.Restore.
func (s *Session[A]) CountPending() { s.pending.Store(int64(s.Broker.Pending())) }

// FromGlasses handles an admitted result or event from the glasses from, whose ID is id. player is the ID of the peer
// that acts as the glasses. If the broker refuses the frame, FromGlasses returns the reason.
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

// GlassesGone answers the commands that are waiting for glasses, after the last glasses have disconnected. message is
// the error message of commands that fail.
func (s *Session[A]) GlassesGone(ctx context.Context, message string) {
	s.logStreams(ctx, (*broker.StreamCounter).TakeAll)
	_ = s.Perform(ctx, nil, s.Broker.GlassesGone(s.host.Now(), message)) // sends no command
	s.SendLink(glasses.LinkDisconnected)
}

// SendLink sends the apps the state of the connection to the glasses.
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

// Streams bypass the broker. They are relayed without Mu, counted, and never logged.

// RelayStream sends a stream frame of size bytes to the apps and counts it. If apps lag behind, it returns the channel
// for AwaitRelief, otherwise nil. The caller need not hold Mu.
func (s *Session[A]) RelayStream(typ string, size int, m Message) (relieved <-chan struct{}) {
	s.CountStream(typ, size)
	m.Stream = true
	return s.Apps.Send(m)
}

// CountStream counts a frame of a stream with size bytes. It does not need Mu.
func (s *Session[A]) CountStream(typ string, size int) {
	now := s.host.Now() // may lock
	s.streamsMu.Lock()
	defer s.streamsMu.Unlock()
	s.streams.Add(now, typ, size)
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

// HasDeadlines reports whether Expire may have work to do, now or later. The caller need not hold Mu.
func (s *Session[A]) HasDeadlines() bool {
	if s.pending.Load() > 0 {
		return true
	}
	s.streamsMu.Lock()
	defer s.streamsMu.Unlock()
	return s.streams.IsRunning()
}

// NextDeadline returns when Expire next has work to do. ok is false if there is none.
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

// ErrTrimmed is returned if rows were deleted during a replay, which ends the peer's attachment. When the peer
// reconnects, its welcome reports that the log was truncated.
var ErrTrimmed = errors.New("the replay ended, because rows were deleted while they were being replayed")

// Rows is the part of a log that a peer has not received when it attaches.
type Rows struct {
	First, Last int64 // seqs of the oldest stored row and of the newest; First is above Last if the log is empty
	// Read returns at most limit stored rows with a seq above since, in order.
	Read func(ctx context.Context, since int64, limit int) ([]glasses.Event, error)
}

// Replay calls pass for the rows after since. It omits rows that were deleted earlier, which the welcome reports as
// truncated. Rows later than r.Last are in the peer's queue.
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
