package session

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

const (
	// maxRecent is the number of frames that a session remembers. It treats a repeat of an older frame as
	// new.
	maxRecent  = 8192
	countEvery = 10 * time.Second
	// leaveTimeout is how long an ending session waits for its apps to disconnect.
	leaveTimeout = 2 * time.Second
	// maintenanceEvery is the interval, in real time, at which a session checks for due work.
	maintenanceEvery = time.Second
)

// player is the PeerID of a session's glasses; a session has only one pair.
const player broker.PeerID = 1

// localSession is an open local session: one pair of glasses, several apps, and the event log. Its parts have separate
// locks.
//
// Lock order: localSession.mu before one of transport.mu, stateFile.mu, eventLog.mu and App.mu; and appSecret.mu
// before stateFile.saving before stateFile.mu. turns are acquired before all of them.
type localSession struct {
	owner     *localSessions
	id        string
	state     *stateFile
	secret    *appSecret
	transport *transport
	controls  host.Controls[glasses.Result]
	rates     host.Rates
	apps      appList
	turns     turns
	hardware  hardware
	lastID    atomic.Int64 // number in the latest ID of the service's own frames
	isHeld    atomic.Bool  // whether it ends with the program that opened it

	// mu keeps relaying and logging in the same order, so that a replay followed by live frames contains neither gaps
	// nor duplicates.
	mu      sync.Mutex
	isLive  bool // whether the log and the goroutines exist
	isOver  bool // closed, or the daemon is stopping
	log     *eventLog
	broker  *broker.Broker
	streams broker.StreamCounter
	media   mediaStore
	life    context.Context // ends the goroutines
	script  *assistantscript.Script
	calls   map[*assistantCall]bool // assistant calls whose answers are not due yet
	asked   int                     // number of calls so far

	end context.CancelFunc
	wg  sync.WaitGroup
}

func newLocalSession(owner *localSessions, m meta) *localSession {
	folder := filepath.Join(owner.root, m.SessionID)
	state := &stateFile{
		path: filepath.Join(folder, metaName), id: m.SessionID, clock: owner.now, log: owner.often, meta: m,
	}
	return &localSession{
		owner: owner, id: m.SessionID, state: state, transport: newTransport(), turns: newTurns(),
		secret: &appSecret{path: filepath.Join(folder, tokenName), state: state},
		broker: broker.New(broker.Options{
			Recent: maxRecent, CommandWait: broker.CommandWait, NoGlasses: noGlasses,
		}),
		streams: broker.NewStreamCounter(countEvery), apps: appList{attached: &owner.attached},
	}
}

const noGlasses = "no glasses are attached"

func (s *localSession) folder() string { return filepath.Join(s.owner.root, s.id) }

func (s *localSession) isVirtual() bool { return s.state.isVirtual() }

// now returns the current time on the session's clock.
func (s *localSession) now() time.Time { return time.UnixMilli(s.state.nowMs()) }

// maxRestart is how long ago the deadline of a command may have passed while no daemon ran. An older command fails: the
// next glasses must not take a picture for an app that asked for it the day before.
const maxRestart = time.Minute

// wake opens the log and starts the goroutines of a session. It is called before every use and has no effect on a live
// session.
func (s *localSession) wake() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver {
		return notFound()
	}
	if s.isLive {
		return nil
	}
	log, err := openLog(filepath.Join(s.folder(), eventsName), s.restore)
	if err != nil {
		return stateProblem("open the session's event log", err)
	}
	s.state.setSeq(log.newest())
	var stale []broker.Output
	if !s.isVirtual() {
		stale = s.broker.ExpireCommands(s.now().Add(-maxRestart))
		s.broker.ExtendDeadlines(s.now())
	}
	s.media.load(filepath.Join(s.folder(), mediaDir))
	s.log, s.isLive = log, true
	log.written, log.broken = s.rowsWritten, s.logBroken
	_ = s.perform(nil, stale) // sends nothing to glasses
	ctx, end := context.WithCancel(s.owner.life)
	s.end, s.life, s.calls = end, ctx, map[*assistantCall]bool{}
	s.loadScript()
	// The writer stops last, so that it writes the rows of the other goroutines.
	writerCtx, endWriter := context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(func() { log.serve(writerCtx) })
	var users sync.WaitGroup
	users.Go(func() { s.attachTransport(ctx) })
	users.Go(func() { s.runMaintenance(ctx) })
	s.wg.Go(func() {
		users.Wait()
		_ = s.state.save()
		endWriter()
	})
	return nil
}

// restore applies a row that an earlier process wrote. The caller holds mu.
func (s *localSession) restore(row glasses.Event) {
	answered := s.broker.Restore(row, time.UnixMilli(row.At))
	s.state.restore(row, &answered)
}

// appendRow logs one row and applies it to the snapshot. Once the row is written, from receives an acknowledgement. The
// caller holds mu.
func (s *localSession) appendRow(row glasses.Event, from *App, answered *broker.Command) {
	row.At = s.state.nowMs()
	seq, ok := s.log.append(row, from)
	if !ok {
		return
	}
	row.Seq = seq
	s.broker.Logged(row)
	s.state.apply(row, answered)
}

// logService logs a row from the service itself. The caller holds mu.
func (s *localSession) logService(typ string, payload any) {
	s.appendRow(broker.ServiceRow(s.now(), typ, payload), nil, nil)
}

// logStreams logs the frame counts of streams. The caller holds mu.
func (s *localSession) logStreams(counts []glasses.StreamCount) {
	for _, c := range counts {
		s.logService(glasses.RowStreamCounted, c)
	}
}

// frame returns a frame from the service.
func (s *localSession) frame(typ, id string, payload any) []byte {
	return broker.Encode(s.now(), typ, id, payload)
}

// newID returns an ID for a frame from the service.
func (s *localSession) newID(prefix string) string {
	return fmt.Sprintf("%s-%d", prefix, s.lastID.Add(1))
}

// newEventID returns the ID of the event that is appended next. The caller holds mu.
func (s *localSession) newEventID() string { return fmt.Sprintf("g-%d", s.log.newest()+1) }

// rowsWritten acknowledges a batch and tells the apps how far they may advance their cursors. The rows of the batch
// were relayed earlier.
func (s *localSession) rowsWritten(batch []entry) {
	var last glasses.Event
	for _, e := range batch {
		if e.from != nil {
			e.from.notify(e.row.At, glasses.TypeAck, e.row.ID, glasses.Ack{ID: e.row.ID, Kind: e.row.Kind, Seq: e.row.Seq})
		}
		if e.line != nil {
			last = e.row
		}
	}
	if last.Seq == 0 {
		return
	}
	for _, a := range s.apps.all() {
		a.notify(last.At, glasses.TypeCursor, "", glasses.Cursor{Seq: last.Seq})
	}
}

// logBroken stops a session whose log cannot be written. The next use starts it again.
func (s *localSession) logBroken(err error) {
	s.owner.log.Error("failed to write event log", "session", s.id, "err", err)
	for _, a := range s.apps.all() {
		a.End(glasses.CloseStore, host.NotStored)
	}
	s.owner.restart(s)
}

// stop ends the goroutines of a live session and waits for them; code and reason are sent to its apps.
func (s *localSession) stop(code int, reason string) {
	s.mu.Lock()
	s.isOver = true
	isLive, end := s.isLive, s.end
	s.mu.Unlock()
	apps := s.apps.all()
	for _, a := range apps {
		a.End(websocket.Status(code), reason)
	}
	if !isLive {
		return
	}
	// If the apps disconnect in time, their last rows are written too.
	timeout, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	for _, a := range apps {
		select {
		case <-a.gone:
		case <-timeout.Done():
		}
	}
	end()
	s.wg.Wait()
}

// nextDue returns the time of the service's next action, in ms on the session's clock. The caller
// holds mu.
func (s *localSession) nextDue() (at int64, ok bool) {
	deadline, isPending := s.broker.NextDeadline()
	count, isCounting := s.streams.NextDue()
	if isCounting && (!isPending || count.Before(deadline)) {
		deadline = count
	}
	at, ok = deadline.UnixMilli(), isPending || isCounting
	for c := range s.calls {
		if !ok || c.due < at {
			at, ok = c.due, true
		}
	}
	return at, ok
}

// expire logs stream counts that are due and answers commands past their deadline. The caller holds mu.
func (s *localSession) expire() {
	now := s.now()
	s.logStreams(s.streams.TakeDue(now))
	_ = s.perform(nil, s.broker.ExpireCommands(now))
	s.deliverAnswers(now.UnixMilli())
}

// runMaintenance does work that is due in real time, until ctx ends.
func (s *localSession) runMaintenance(ctx context.Context) {
	tick := time.NewTicker(maintenanceEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !s.isVirtual() {
			s.mu.Lock()
			s.expire()
			s.mu.Unlock()
		}
		s.renewTokens()
		_ = s.state.save() // save logs its own failure
	}
}

// describe returns the public description of the session.
func (s *localSession) describe() backend.Session {
	m, now := s.state.read(), s.state.nowMs()
	return backend.Session{
		SessionID: s.id, Project: m.Project, DeviceModel: m.Snapshot.DeviceModel, State: "open", CreatedAt: m.CreatedAt,
		LastActiveAt: m.LastActiveAt, ExpiresAt: m.LastActiveAt.Add(localLife), Apps: len(s.apps.all()), LastSeq: m.Seq,
		Transport: cmp.Or(m.Transport, backend.TransportLocal), Clock: m.Clock, NowMs: now,
		Hardware: s.describeHardware(m),
	}
}
