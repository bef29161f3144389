package relay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

// maxRecent is how many ids a room remembers without asking the log.
const maxRecent = 512

// room is the live side of one session. It exists while somebody holds it, and reads what it needs to know of the past
// from the log.
type room struct {
	h       *Hub
	id      string
	holders int // guarded by Hub.mu

	mu      sync.Mutex // orders publish, queue and attach
	loaded  bool
	seen    *glasses.Seen
	pending map[string]command
	display json.RawMessage // payload of the display.show on the panel; nil when clear
	touched time.Time

	asked int64 // commands so far; orders them

	pace pace

	open    atomic.Int64 // len(pending), for who does not hold mu
	link    string       // what the glasses last said of their link
	linked  bool         // whether the apps were last told that a page is there
	streams streams
	active  atomic.Pointer[conn]           // the page that plays the glasses: the last of pages
	checked time.Time                      // when the session was last seen to go on; guarded by Hub.mu
	owner   atomic.Pointer[sessions.Owner] // nil until somebody was let in

	who      sync.Mutex // guards what is below; taken inside mu
	apps     []*conn
	pages    []*conn // the newest last
	controls map[string]chan json.RawMessage
}

// command is one that waits for its result.
type command struct {
	typ     string
	payload json.RawMessage
	due     time.Time
	nr      int64
	to      *conn // the page that was asked; nil after a restart, when any page may have been
	raw     []byte
}

func newRoom(h *Hub, id string) *room {
	return &room{h: h, id: id, pace: h.newPace(), seen: glasses.NewSeen(maxRecent), pending: map[string]command{}, link: glasses.LinkConnected, checked: time.Now()}
}

// MaxPeers is how many apps, and how many pages, may be attached to one session.
const MaxPeers = 64

var errCrowded = errors.New("too many are attached to this session")

// attach lets a peer in: everything up to the returned session's LastSeq is in the log, everything after it will come
// over the connection. It returns sessions.ErrClosed for a session that is over, and errCrowded for one that is full.
func (r *room) attach(ctx context.Context, c *conn, to audience) (sessions.Session, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.settle(ctx); err != nil {
		return sessions.Session{}, nil, err
	}
	endings := r.h.endings.Load()
	s, err := r.h.Log.Session(ctx, r.id)
	if err != nil {
		return sessions.Session{}, nil, fmt.Errorf("reading session: %w", err)
	}
	if !s.Open(r.h.Now()) {
		return sessions.Session{}, nil, sessions.ErrClosed
	}
	if err := r.load(ctx, s.LastSeq); err != nil {
		return sessions.Session{}, nil, err
	}
	if err := r.touch(ctx); err != nil {
		return sessions.Session{}, nil, err
	}
	r.who.Lock()
	defer r.who.Unlock()
	set := r.set(to)
	if len(*set) >= MaxPeers {
		return sessions.Session{}, nil, errCrowded
	}
	cancel := r.h.bus.Subscribe(r.id, to, c.send)
	*set = append(*set, c)
	r.owner.Store(&s.Owner)
	if r.h.endings.Load() != endings {
		r.h.makeDue(r) // Ended may have looked before this peer was to be found
	}
	if to == toPages {
		r.elect()
	}
	r.h.conns.Add(1)
	return s, cancel, nil
}

// settle waits until everything queued so far is committed and published. mu is held, so nothing of this session can
// be queued meanwhile.
func (r *room) settle(ctx context.Context) error {
	reached := make(chan struct{})
	if err := r.enqueue(ctx, entry{reached: reached}); err != nil {
		return err
	}
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// load brings back from the log what a fresh process does not remember: recent ids, commands without a result, and
// what the panel shows.
func (r *room) load(ctx context.Context, lastSeq int64) error {
	if r.loaded {
		return nil
	}
	rows, err := r.h.Log.SessionEvents(ctx, r.id, max(lastSeq-maxRecent, 0), maxRecent)
	if err != nil {
		return fmt.Errorf("reading recent events: %w", err)
	}
	for _, e := range rows {
		digest := r.seen.Sum(e.Type, e.Payload)
		if e.Sender == glasses.SenderService {
			digest = 0
		}
		r.seen.Add(glasses.KeyOf(e.Sender, e.ID, e.Kind), glasses.Known{Digest: digest})
		switch e.Kind {
		case glasses.KindRequest:
			r.ask(e.ID, command{typ: e.Type, payload: e.Payload})
		case glasses.KindResult:
			r.settled(e.ID)
		}
	}
	last, ok, err := r.h.Log.LastDisplay(ctx, r.id)
	if err != nil {
		return fmt.Errorf("reading the last display: %w", err)
	}
	other := func(e glasses.Event) bool { return e.Type == glasses.TypeDevice && e.Seq > last.Seq } // a new panel is clear
	if ok && last.Type == glasses.TypeDisplayShow && !slices.ContainsFunc(rows, other) {
		r.display = last.Payload
	}
	r.loaded = true
	return nil
}

const touchEvery = time.Hour

func (r *room) touch(ctx context.Context) error {
	if err := r.h.Sessions.Touch(ctx, r.id); err != nil {
		return fmt.Errorf("extending session: %w", err)
	}
	r.touched = r.h.Now()
	return nil
}

func (r *room) set(to audience) *[]*conn {
	if to == toPages {
		return &r.pages
	}
	return &r.apps
}

// elect lets the newest page play the glasses and tells the pages whose role has changed. who is held.
func (r *room) elect() {
	var newest *conn
	if n := len(r.pages); n > 0 {
		newest = r.pages[n-1]
	}
	before := r.active.Swap(newest)
	if before == newest {
		return
	}
	if before != nil {
		before.tell(r.h.frame(glasses.TypeRole, "", glasses.Role{}))
	}
	if newest != nil {
		newest.tell(r.h.frame(glasses.TypeRole, "", glasses.Role{Active: true}))
	}
}

// pageCount counts the attached pages: the glasses.
func (r *room) pageCount() int {
	r.who.Lock()
	defer r.who.Unlock()
	return len(r.pages)
}

func (r *room) peers() glasses.Peers {
	r.who.Lock()
	defer r.who.Unlock()
	p := glasses.Peers{Apps: make([]glasses.AppInfo, 0, len(r.apps)), Pages: len(r.pages)}
	for _, c := range r.apps {
		p.Apps = append(p.Apps, c.app)
	}
	return p
}

// announce tells the others who is here and notes it in the log. mu is held.
func (r *room) announce(ctx context.Context, to audience, row string, payload any) {
	if pages := r.pageCount(); to == toPages && pages == 0 {
		r.noteStreams(ctx, r.streams.all())
		r.failPending(ctx, glasses.CodeNotConnected, "the glasses are gone: no simulator page is open")
		r.linked = false
		r.publishLink(glasses.LinkDisconnected)
	} else if to == toPages && !r.linked {
		r.linked, r.link = true, glasses.LinkConnected
		r.publishLink(glasses.LinkConnected)
	}
	r.h.bus.Publish(r.id, toPages, text(r.h.frame(glasses.TypePeers, "", r.peers())))
	r.note(ctx, row, payload)
}

func (r *room) publishLink(state string) {
	r.h.bus.Publish(r.id, toApps, text(r.h.frame(glasses.TypeLink, "", glasses.LinkState{State: state})))
}

// linkNow is what an app that attaches is told.
func (r *room) linkNow() string {
	if r.pageCount() == 0 {
		return glasses.LinkDisconnected
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.link
}

func (r *room) remove(c *conn, to audience, cancel func()) {
	cancel()
	r.who.Lock()
	defer r.who.Unlock()
	set := r.set(to)
	*set = slices.DeleteFunc(*set, func(other *conn) bool { return other == c })
	if to == toPages {
		r.elect()
	}
	r.h.conns.Add(-1)
}

// handOver asks the page that plays the glasses now what one that left has not answered, in the same order. mu is held.
func (r *room) handOver(left *conn) {
	next := r.active.Load()
	if next == nil {
		return // announce answers
	}
	var ids []string
	for id, cmd := range r.pending {
		if cmd.to == left {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(r.pending[a].nr, r.pending[b].nr) })
	for _, id := range ids {
		cmd := r.pending[id]
		cmd.to = next
		r.pending[id] = cmd
		next.tell(cmd.raw)
	}
}

func (r *room) endAll(code websocket.StatusCode, reason string) {
	r.who.Lock()
	defer r.who.Unlock()
	for _, c := range r.apps {
		c.end(code, reason)
	}
	for _, c := range r.pages {
		c.end(code, reason)
	}
}

// note writes a lifecycle row of the service. mu is held.
func (r *room) note(ctx context.Context, typ string, payload any) {
	raw, err := json.Marshal(payload)
	if err != nil {
		r.h.Logger.Error("composing row", "type", typ, "error", err)
		return
	}
	r.row(ctx, nil, glasses.Event{
		Kind: glasses.KindEvent, Chip: glasses.ChipOf(typ), Type: typ,
		ID: "svc-" + rand.Text(), Sender: glasses.SenderService, Payload: raw,
	}, false)
}

// row queues a row; it waits while the queue is full. mu is held.
func (r *room) row(ctx context.Context, from *conn, e glasses.Event, ok bool) {
	e.At = r.h.Now().UnixMilli()
	if err := r.enqueue(ctx, entry{row: sessions.Row{SessionID: r.id, Event: e, OK: ok}, from: from}); err != nil {
		r.h.Logger.Warn("event row not queued", "session", r.id, "type", e.Type, "error", err)
		if from != nil {
			from.end(closeStore, "the frame could not be stored; reconnect and send it again")
		}
	}
}

func (r *room) enqueue(ctx context.Context, e entry) error {
	select {
	case r.h.queue <- e:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func compact(payload json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, payload) != nil {
		return payload
	}
	return b.Bytes()
}
