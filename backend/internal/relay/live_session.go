package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

// maxRecent is the number of frames that a session keeps in memory to avoid reading the log.
const maxRecent = 512

// liveSession is the state of a session in this process while a peer is attached or a call is in progress. It reads
// earlier events from the log when it needs them.
//
// Locks nest in the order Mu, Hub.mu.
type liveSession struct {
	host.Session[*conn]
	hub     *Hub
	id      string
	holders int       // guarded by Hub.mu
	checked time.Time // when the session was last known to be open; guarded by Hub.mu
	rates   *host.Rates

	// Mu guards the fields below.
	isLoaded bool
	display  json.RawMessage // payload of the last display.show; nil if the panel is clear
	touched  time.Time
	state    *sessions.State // replaced by setState, never modified
	isSaved  bool            // the log or a queued row contains state
	isLinked bool            // whether the apps were last told that a page is attached

	active atomic.Pointer[conn]           // the page that acts as the glasses, which is the newest page
	owner  atomic.Pointer[sessions.Owner] // nil until the first peer attaches

	pages    host.List[*conn]
	controls host.Controls[json.RawMessage]
}

func newLiveSession(h *Hub, id string) *liveSession {
	s := &liveSession{
		hub: h, id: id, checked: time.Now(), rates: &host.Rates{}, state: &freshState,
		isSaved: true,
	}
	s.Init(s, broker.New(broker.Options{
		Recent: maxRecent, CommandWait: h.CommandWait,
		NoGlasses: "no glasses are attached: open the session's simulator page",
	}), h.CountEvery)
	return s
}

// MaxPeers limits the apps, and separately the pages, attached to one session.
const MaxPeers = 64

var errTooManyPeers = errors.New("too many apps or pages are attached to this session")

// attach adds a peer and announces it. Every row up to the returned session's LastSeq is in the log, and every later
// row is sent over the connection. It returns sessions.ErrClosed for a closed session, or errTooManyPeers.
func (s *liveSession) attach(ctx context.Context, c *conn) (sessions.Session, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if err := s.flushRows(ctx); err != nil {
		return sessions.Session{}, err
	}
	endings := s.hub.endings.Load()
	stored, err := s.hub.Log.Session(ctx, s.id)
	if err != nil {
		return sessions.Session{}, fmt.Errorf("read session: %w", err)
	}
	if !stored.Open(s.hub.Now()) {
		return sessions.Session{}, sessions.ErrClosed
	}
	if err := s.load(ctx, stored); err != nil {
		return sessions.Session{}, err
	}
	if err := s.touch(ctx); err != nil {
		return sessions.Session{}, err
	}
	if c.isPage && s.pages.Len() >= MaxPeers || !c.isPage && s.Apps.Len() >= MaxPeers {
		return sessions.Session{}, errTooManyPeers
	}
	if c.isPage {
		s.pages.Add(c)
		s.electPlayer()
		s.announcePage(ctx, glasses.RowGlassesAttached)
	} else {
		s.Attach(ctx, c)
		s.sendPeers()
	}
	owner := stored.Owner // copied so that the rest of stored can be freed
	s.owner.Store(&owner)
	if s.hub.endings.Load() != endings {
		s.hub.markDue(s) // Ended may have run before this peer attached
	}
	s.hub.conns.Add(1)
	return stored, nil
}

// flushRows waits until every queued row is committed and published. The caller must hold Mu, so that this session
// queues no rows during the wait.
func (s *liveSession) flushRows(ctx context.Context) error {
	flushed := make(chan struct{})
	if err := s.enqueue(ctx, entry{flushed: flushed}); err != nil {
		return err
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// load reads from the log the state that a new process lacks: recent frames, commands without a result, the panel's
// content, and the session's state.
func (s *liveSession) load(ctx context.Context, stored sessions.Session) error {
	if s.isLoaded {
		return nil
	}
	rows, err := s.hub.Log.SessionEvents(ctx, s.id, max(stored.LastSeq-maxRecent, 0), maxRecent)
	if err != nil {
		return fmt.Errorf("read recent events: %w", err)
	}
	for _, e := range rows {
		s.Broker.Restore(e, s.hub.Now())
	}
	s.CountPending()
	memory, err := s.hub.Log.Memory(ctx, s.id)
	if err != nil {
		return fmt.Errorf("read session memory: %w", err)
	}
	switch {
	case memory.State != nil:
		s.state = shared(memory.State)
	case stored.LastSeq == 0: // no rows yet
		s.isSaved = false
	default: // a version that stored no state wrote the rows
		state, err := s.hub.stateFromRows(ctx, stored)
		if err != nil {
			return fmt.Errorf("read events to compute the session state: %w", err)
		}
		s.setState(state)
	}
	if last := memory.Display; last.Type == glasses.TypeDisplayShow && !isCleared(rows, last.Seq) {
		s.display = last.Payload
	}
	s.isLoaded = true
	return nil
}

// isCleared reports whether an event after row since has cleared the panel.
func isCleared(rows []glasses.Event, since int64) bool {
	var state glasses.State
	for _, e := range rows {
		if e.Seq <= since || e.Sender != glasses.SenderGlasses {
			continue
		}
		before := state.Link
		state, _ = state.AfterEvent(e.Type, e.Payload)
		if e.Type == glasses.TypeDevice || glasses.PanelClears(before, state.Link) {
			return true
		}
	}
	return false
}

const touchEvery = time.Hour

func (s *liveSession) touch(ctx context.Context) error {
	if err := s.hub.Sessions.Touch(ctx, s.id); err != nil {
		return fmt.Errorf("extend session: %w", err)
	}
	s.touched = s.hub.Now()
	return nil
}

// player returns the ID of the page that acts as the glasses.
func (s *liveSession) player() broker.PeerID {
	if c := s.active.Load(); c != nil {
		return c.ID
	}
	return broker.NoPeer
}

// electPlayer makes the newest page act as the glasses, and notifies the pages whose role changes. It restores the
// settings of apps even if there are none: a page that returns may still be listening for an app that has stopped. The
// caller must hold Mu.
func (s *liveSession) electPlayer() {
	var newest *conn
	if pages := s.pages.All(); len(pages) > 0 {
		newest = pages[len(pages)-1]
	}
	before := s.active.Swap(newest)
	if before == newest {
		return
	}
	if before != nil {
		before.SendText(s.hub.frame(glasses.TypeRole, "", glasses.Role{}))
	}
	if newest != nil {
		newest.SendText(s.hub.frame(glasses.TypeRole, "", glasses.Role{Active: true}))
		s.SendStanding()
	}
}

func (s *liveSession) peers() glasses.Peers {
	apps := s.Apps.All()
	p := glasses.Peers{Apps: make([]glasses.AppInfo, 0, len(apps)), Pages: s.pages.Len()}
	for _, c := range apps {
		p.Apps = append(p.Apps, c.Info)
	}
	return p
}

// sendPeers tells the pages who is attached.
func (s *liveSession) sendPeers() {
	s.pages.Send(host.Text(s.Frame(glasses.TypePeers, "", s.peers())))
}

// announcePage notifies the peers that a page attached or left, and appends a row about it. The caller must hold Mu.
func (s *liveSession) announcePage(ctx context.Context, row string) {
	if s.pages.Len() == 0 {
		s.GlassesGone(ctx, "no glasses are attached: the simulator page was closed")
		s.isLinked = false
	} else if !s.isLinked {
		s.isLinked = true
		s.SendLink(s.state.Glasses.Link)
	}
	s.sendPeers()
	s.Log(ctx, row, struct{}{})
}

// glassesForApp returns the state of the glasses for an app's welcome.
func (s *liveSession) glassesForApp() glasses.AppState {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	link := s.state.Glasses.Link
	if s.pages.Len() == 0 {
		link = glasses.LinkDisconnected
	}
	return s.state.Glasses.ForApp(link, glasses.ClockReal)
}

// handOver sends the new player the commands that the leaving page did not answer. The caller must hold Mu.
func (s *liveSession) handOver(left *conn) {
	next := s.active.Load()
	if next == nil {
		return // announcePage will fail the commands
	}
	for _, frame := range s.Broker.HandOver(s.hub.Now(), left.ID, next.ID) {
		next.SendText(frame)
	}
}

func (s *liveSession) endPeers(code websocket.Status, reason string) {
	s.Apps.End(code, reason)
	s.pages.End(code, reason)
}

// appendRow queues a row, and waits while the queue is full. After the commit, the writer acknowledges the row to from.
// The caller must hold Mu.
func (s *liveSession) appendRow(ctx context.Context, from host.Receiver, e glasses.Event, ok bool) {
	row := sessions.Row{SessionID: s.id, Event: e, OK: ok}
	if !s.isSaved {
		row.State = s.state
	}
	err := s.enqueue(ctx, entry{row: row, from: from})
	if err == nil {
		s.isSaved = true
		return
	}
	s.hub.Logger.Warn("failed to queue event row", "session", s.id, "type", e.Type, "err", err)
	if from != nil {
		from.End(glasses.CloseStore, host.NotStored)
	}
}

func (s *liveSession) enqueue(ctx context.Context, e entry) error {
	select {
	case s.hub.queue <- e:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
