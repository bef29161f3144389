package session

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
)

// maxRecent is how many ids a session remembers; a frame that is sent again later than that is a new one.
const maxRecent = 8192

// room is an open local session: one pair of glasses, many apps, the log. mu orders what is relayed with what is
// written down; that is what makes a replay followed by live frames exact.
type room struct {
	l  *locals
	id string

	// op is held by whoever moves virtual time or makes the glasses do something: one at a time. turn is held by whoever
	// talks to the glasses in virtual time, so that an answer is there before the next question.
	op, turn lock

	mu       sync.Mutex
	meta     meta
	live     bool // log and goroutines are there
	over     bool // closed, or the daemon ends
	log      *eventLog
	seen     *glasses.Seen
	pending  map[string]command
	controls map[string]chan glasses.Result
	asked    int64 // control frames and barriers sent, for their ids
	glasses  backend.Glasses
	ready    chan struct{} // closed while glasses are attached
	tried    chan struct{} // closed and made anew after each attempt that did not work
	refused  error         // why the last attempt to attach them did not work
	counts   map[string]*count
	unasked  int // commands sent since the glasses last answered a question
	media    mediaStore
	changed  bool // meta is not what session.json holds

	saving   sync.Mutex // held while session.json is written; taken before mu
	renewing sync.Mutex // held while the app secret is replaced

	apps atomic.Pointer[[]*App]
	end  context.CancelFunc
	wg   sync.WaitGroup
}

// command is one that waits for its result.
type command struct {
	typ    string
	parsed any   // its payload, as glasses.ParseCommand gives it
	due    int64 // when it is answered timeout, on the session's clock
}

// count is a stream's traffic since its last row.
type count struct {
	glasses.StreamCount
	due int64
}

const (
	// commandWait is how long glasses may take for an answer. Theirs comes after 10 s at the latest, also when it says
	// timeout; the rest is grace, so that it is their word that stands in the log.
	commandWait = 10_500
	countEvery  = 10_000
)

func newRoom(l *locals, m meta) *room {
	r := &room{
		l: l, id: m.SessionID, meta: m, op: newLock(), turn: newLock(), seen: glasses.NewSeen(maxRecent), pending: map[string]command{},
		controls: map[string]chan glasses.Result{}, ready: make(chan struct{}), tried: make(chan struct{}), counts: map[string]*count{},
	}
	r.apps.Store(&[]*App{})
	return r
}

func (r *room) folder() string { return filepath.Join(r.l.root, r.id) }

func (r *room) virtual() bool { return r.meta.Clock == backend.ClockVirtual }

// wake opens the log and starts what a live session runs. It is called before every use and does nothing in a live one.
func (r *room) wake() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return notFound()
	}
	if r.live {
		return nil
	}
	log, err := openLog(filepath.Join(r.folder(), eventsName), r.remember)
	if err != nil {
		return stateProblem("opening the session's event log", err)
	}
	for id := range r.pending {
		if r.meta.Clock == backend.ClockReal {
			c := r.pending[id]
			c.due = r.clock() + commandWait
			r.pending[id] = c
		}
	}
	r.media.load(filepath.Join(r.folder(), mediaDir))
	r.log, r.live = log, true
	log.written, log.broken = r.written, r.broken
	ctx, end := context.WithCancel(r.l.life)
	r.end = end
	// The writer outlives the others: their last rows are written too.
	writing, endWriting := context.WithCancel(context.WithoutCancel(ctx))
	r.wg.Go(func() { log.serve(writing) })
	var users sync.WaitGroup
	users.Go(func() { r.wear(ctx) })
	users.Go(func() { r.keepHouse(ctx) })
	r.wg.Go(func() {
		users.Wait()
		_ = r.save()
		endWriting()
	})
	return nil
}

// remember takes in a row of an earlier life. mu is held.
func (r *room) remember(row glasses.Event) {
	digest := uint64(0)
	if row.Sender != glasses.SenderService {
		digest = r.seen.Sum(row.Type, row.Payload)
	}
	r.seen.Add(glasses.KeyOf(row.Sender, row.ID, row.Kind), glasses.Known{Digest: digest, Seq: row.Seq})
	r.meta.NowMs = max(r.meta.NowMs, row.At)
	switch row.Kind {
	case glasses.KindRequest:
		parsed, _ := glasses.ParseCommand(row.Type, row.Payload) // one that was refused has its result in the log too
		r.pending[row.ID] = command{typ: row.Type, parsed: parsed, due: row.At + waitFor(parsed)}
	case glasses.KindResult:
		if row.Seq > r.meta.Seq {
			r.fold(row)
		}
		delete(r.pending, row.ID)
	default:
		if row.Seq > r.meta.Seq {
			r.fold(row)
		}
	}
}

// clock is the session's time in ms. mu is held.
func (r *room) clock() int64 {
	if r.virtual() {
		return r.meta.NowMs
	}
	return r.l.now().UnixMilli()
}

// row writes one row down. mu is held.
func (r *room) row(e glasses.Event, from *App) int64 {
	e.At = r.clock()
	seq, ok := r.log.append(e, from)
	if !ok {
		return 0
	}
	r.meta.LastActiveAt = r.l.now()
	e.Seq = seq
	r.fold(e)
	return seq
}

// note writes a row of the service itself. mu is held.
func (r *room) note(typ string, payload any) {
	r.row(glasses.Event{
		Kind: glasses.KindEvent, Chip: glasses.ChipOf(typ), Type: typ, Sender: glasses.SenderService, Payload: encode(payload),
	}, nil)
}

// encode is for payloads of our own, which always encode.
func encode(payload any) json.RawMessage {
	raw, err := json.Marshal(payload)
	if err != nil {
		return json.RawMessage("{}")
	}
	return raw
}

// frame composes a frame of the service. mu is held.
func (r *room) frame(typ, id string, payload any) []byte {
	f := glasses.Frame{Type: typ, ID: id, At: r.clock(), Payload: encode(payload)}
	data, err := f.Encode()
	if err != nil {
		return nil
	}
	return data
}

// publish gives a text frame to every app that is attached. mu is held.
func (r *room) publish(data []byte) { r.spread(data, false, false) }

// spread is publish for a frame that may be binary, and one of a stream. mu is held.
func (r *room) spread(data []byte, binary, stream bool) {
	for _, a := range *r.apps.Load() {
		a.give(data, binary, stream)
	}
}

// written acknowledges a batch and tells the apps how far their cursor may go: what it holds was relayed before.
func (r *room) written(batch []entry) {
	last, at := int64(0), int64(0)
	for _, e := range batch {
		if e.from != nil {
			e.from.tell(e.row.At, glasses.TypeAck, e.row.ID, glasses.Ack{ID: e.row.ID, Kind: e.row.Kind, Seq: e.row.Seq})
		}
		if e.line != nil {
			last, at = e.row.Seq, e.row.At
		}
	}
	if last == 0 {
		return
	}
	for _, a := range *r.apps.Load() {
		a.tell(at, glasses.TypeCursor, "", glasses.Cursor{Seq: last})
	}
}

// broken ends a session's life in this process when its log cannot be written; the next use begins another.
func (r *room) broken(err error) {
	r.l.log.Error("writing the event log", "session", r.id, "err", err)
	for _, a := range *r.apps.Load() {
		a.peer.End(CloseStore, "the frame could not be stored; reconnect and send it again")
	}
	r.l.forget(r)
}

// stop ends what a live session runs and waits for it; code and reason are for its apps.
func (r *room) stop(code int, reason string) {
	r.mu.Lock()
	r.over = true
	live, end := r.live, r.end
	r.mu.Unlock()
	apps := *r.apps.Load()
	for _, a := range apps {
		a.peer.End(code, reason)
	}
	if !live {
		return
	}
	// Their last rows are written too, if they leave in time.
	late := time.NewTimer(leaveWait)
	defer late.Stop()
	for _, a := range apps {
		select {
		case <-a.gone:
		case <-late.C:
			late.Reset(0)
		}
	}
	end()
	r.wg.Wait()
}

// compact is a payload without the spaces that its sender put in.
func compact(payload json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, payload) != nil {
		return payload
	}
	return b.Bytes()
}

// waitFor is how long a command may take, in ms of the session's clock. parsed is its payload.
func waitFor(parsed any) int64 {
	switch p := parsed.(type) {
	case *glasses.Sleep:
		return commandWait + p.Ms
	case *glasses.Video:
		return commandWait + p.DurationMs
	}
	return commandWait
}

// leaveWait is how long a session that ends waits for its apps to leave.
const leaveWait = 2 * time.Second

// house is how often a session looks after itself, in real time.
const house = time.Second
