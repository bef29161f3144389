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
	"github.com/service-dev/service/daemon/internal/profiles"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

const (
	// maxRecent is the number of frames that a session remembers. It treats a repetition of an older frame as new.
	maxRecent  = 8192
	countEvery = 10 * time.Second
	// leaveTimeout is how long an ending session waits for its apps to disconnect.
	leaveTimeout = 2 * time.Second
	// maintenanceEvery is the interval, in real time, at which a session checks for due work.
	maintenanceEvery = time.Second
)

// player is the PeerID of a session's glasses. A session has only one pair.
const player broker.PeerID = 1

// localSession is an open local session: one pair of glasses, several apps, and the event log. Each part has its own
// lock.
//
// Lock order: acquire turns first, then Mu, then one of transport.mu, stateFile.mu, eventLog.mu and App.mu. Acquire
// appSecret.mu before stateFile.saving, and that before stateFile.mu.
type localSession struct {
	host.Session[*App]
	owner     *localSessions
	id        string
	state     *stateFile
	secret    *appSecret
	transport *transport
	controls  host.Controls[glasses.Result]
	rates     host.Rates
	turns     turns
	hardware  hardware
	isHeld    atomic.Bool // the session ends with the program that opened it

	// Mu guards the following fields.
	isLive bool // the log and the goroutines exist
	isOver bool // the session is closed, or the daemon is stopping
	log    *eventLog
	media  mediaStore
	life   context.Context // ends the goroutines
	script *assistantscript.Script
	calls  map[*assistantCall]bool // assistant calls whose answers are not due yet
	asked  int                     // number of calls so far

	memory     *profiles.Store // the session's own profile; nil if it uses the stored profiles
	memoryUser string          // secret of the user whose profile apps used last
	recalls    recalls

	conversations []*Conversation // realtime conversations of apps, in the order in which they began

	end context.CancelFunc
	wg  sync.WaitGroup
}

func newLocalSession(owner *localSessions, m meta) *localSession {
	folder := filepath.Join(owner.root, m.SessionID)
	state := &stateFile{
		path: filepath.Join(folder, metaName), id: m.SessionID, clock: owner.now, log: owner.often, meta: m,
	}
	s := &localSession{
		owner: owner, id: m.SessionID, state: state, transport: newTransport(), turns: newTurns(),
		secret: &appSecret{path: filepath.Join(folder, tokenName), state: state},
	}
	s.Init(s, broker.New(broker.Options{
		Recent: maxRecent, CommandWait: broker.CommandWait, NoGlasses: noGlasses,
	}), countEvery)
	if m.OwnMemory {
		s.memory = profiles.NewPrivate("", s.Now)
	}
	return s
}

const noGlasses = "no glasses are attached"

func (s *localSession) folder() string { return filepath.Join(s.owner.root, s.id) }

func (s *localSession) isVirtual() bool { return s.state.isVirtual() }

// Now returns the current time on the session's clock (host.Host).
func (s *localSession) Now() time.Time { return time.UnixMilli(s.state.nowMs()) }

// maxRestart is how long ago the deadline of a command may have passed while no daemon was running. An older command
// fails, because the next glasses must not take a picture for an app that requested it the day before.
const maxRestart = time.Minute

// wake opens the log and starts the goroutines of a session. Call it before every use; it has no effect on a live
// session.
func (s *localSession) wake() error {
	s.Mu.Lock()
	defer s.Mu.Unlock()
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
		stale = s.Broker.ExpireCommands(s.Now().Add(-maxRestart))
		s.Broker.ExtendDeadlines(s.Now())
	}
	s.media.load(filepath.Join(s.folder(), mediaDir))
	s.log, s.isLive, s.recalls = log, true, recalls{after: log.newest()}
	log.written, log.broken = s.rowsWritten, s.logBroken
	ctx, end := context.WithCancel(s.owner.life)
	s.end, s.life, s.calls = end, ctx, map[*assistantCall]bool{}
	s.conversations = nil
	s.loadScript()
	// The writer stops last, so that it still writes the rows of the other goroutines.
	writerCtx, endWriter := context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(func() { log.serve(writerCtx) })
	// The writer is already running and does not need Mu, because there may be more stale commands than rows that may
	// wait for it.
	_ = s.Perform(s.life, nil, stale) // sends nothing to glasses
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

// restore applies a row that an earlier process wrote. The caller holds Mu.
func (s *localSession) restore(row glasses.Event) {
	answered := s.Broker.Restore(row, time.UnixMilli(row.At))
	s.state.restore(row, &answered)
}

// Append logs one row and applies it to the snapshot (host.Host).
func (s *localSession) Append(
	_ context.Context, row glasses.Event, from host.Receiver, answered *broker.Command,
) {
	row.At = s.state.nowMs()
	seq, ok := s.log.append(row, from)
	if !ok {
		return
	}
	row.Seq = seq
	if row.Type == glasses.RowAppAttached {
		s.recalls.attached = seq
	}
	s.Broker.Logged(row)
	s.state.apply(row, answered)
}

// Acknowledge acknowledges a row once it is written (host.Host).
func (s *localSession) Acknowledge(_ context.Context, row glasses.Event, to host.Receiver) {
	s.log.acknowledge(row, to)
}

// logService logs a row of the service itself. The caller holds Mu.
func (s *localSession) logService(typ string, payload any) { s.Log(s.life, typ, payload) }

// EventID returns the number of the next row (host.Host). IDs of the glasses are not used, because restarted glasses
// would repeat theirs, and every run in virtual time would use the same ones.
func (s *localSession) EventID(string) string { return fmt.Sprintf("g-%d", s.log.newest()+1) }

// rowsWritten acknowledges a batch and tells the apps how far they may advance their cursors. The batch's rows were
// relayed earlier.
func (s *localSession) rowsWritten(batch []entry) {
	var last glasses.Event
	for _, e := range batch {
		if e.from != nil {
			e.from.SendText(host.Ack(time.UnixMilli(e.row.At), e.row))
		}
		if e.line != nil {
			last = e.row
		}
	}
	if last.Seq == 0 {
		return
	}
	cursor := host.Cursor(time.UnixMilli(last.At), last.Seq)
	for _, a := range s.Apps.All() {
		a.SendText(cursor)
	}
}

// logBroken stops a session whose log cannot be written. The next use starts it again.
func (s *localSession) logBroken(err error) {
	s.owner.log.Error("failed to write event log", "session", s.id, "err", err)
	s.Apps.End(glasses.CloseStore, host.NotStored)
	s.owner.restart(s)
}

// stop ends the goroutines of a live session and waits for them. The session's apps receive code and reason.
func (s *localSession) stop(code int, reason string) {
	s.Mu.Lock()
	s.isOver = true
	s.endConversations(code, reason)
	isLive, end := s.isLive, s.end
	s.Mu.Unlock()
	_ = s.owner.saveProfiles()
	apps := s.Apps.All()
	s.Apps.End(websocket.Status(code), reason)
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
// holds Mu.
func (s *localSession) nextDue() (at int64, ok bool) {
	deadline, ok := s.NextDeadline()
	at = deadline.UnixMilli()
	for c := range s.calls {
		if !ok || c.due < at {
			at, ok = c.due, true
		}
	}
	for _, c := range s.conversations {
		if due, waits := c.script.Due(); waits && (!ok || due < at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// expire logs stream counts that are due and answers commands past their deadline. The caller holds Mu.
func (s *localSession) expire() {
	now := s.Now()
	s.Expire(s.life)
	s.deliverAnswers(now.UnixMilli())
	s.advanceConversations(now.UnixMilli())
}

// runMaintenance does the work that is due in real time, until ctx ends.
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
			s.Mu.Lock()
			s.expire()
			s.Mu.Unlock()
		}
		s.RenewTokens(ctx, true)
		_ = s.state.save() // save logs its own failure
	}
}

// describe returns the session's public description.
func (s *localSession) describe() backend.Session {
	m, now := s.state.read(), s.state.nowMs()
	return backend.Session{
		SessionID: s.id, Project: m.Project, DeviceModel: m.Snapshot.DeviceModel, State: "open", CreatedAt: m.CreatedAt,
		LastActiveAt: m.LastActiveAt, ExpiresAt: m.LastActiveAt.Add(localLife), Apps: len(s.Apps.All()), LastSeq: m.Seq,
		Transport: cmp.Or(m.Transport, backend.TransportLocal), Clock: m.Clock, NowMs: now,
		Hardware: s.describeHardware(m),
	}
}
