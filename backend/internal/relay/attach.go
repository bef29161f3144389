package relay

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

const (
	replayPage = 200 // rows read at once for a replay
	pageRecent = 200 // rows that a page without a cursor gets
)

// ServeApp attaches an app to the session of the path value "id"; it returns once the socket is taken over. Everything
// is refused by a close code after the upgrade, alike for a session that does not exist and for a wrong secret.
func (h *Hub) ServeApp(rw http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	// The secret in hello decides, not the origin: apps run in browsers of any site.
	h.takeOver(rw, r, &websocket.AcceptOptions{InsecureSkipVerify: true}, func(c *conn) *guest {
		hello, frame, ok := h.readHello(c)
		if !ok {
			return nil
		}
		if _, err := h.Sessions.Open(h.life, id, hello.Secret); err != nil {
			h.turnAway(c.ws, err)
			return nil
		}
		c.app = hello.App
		return h.host(c, toApps, id, func(ctx context.Context, s sessions.Session, r *room) error {
			return r.greetApp(ctx, c, s, frame.ID, hello.Since)
		})
	})
}

// ServePage attaches a simulator page; it returns once the socket is taken over. The caller has checked that the session
// is the signed-in person's; the origin is checked here. The query's since is the page's cursor. stillSignedIn is asked
// every PingEvery; the page ends when it says no.
func (h *Hub) ServePage(rw http.ResponseWriter, r *http.Request, sessionID string, stillSignedIn func(context.Context) bool) {
	if r.Header.Get("Origin") == "" {
		http.Error(rw, "a page must name its origin", http.StatusForbidden)
		return
	}
	since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	if err != nil || since < 0 {
		since = -1
	}
	h.takeOver(rw, r, &websocket.AcceptOptions{OriginPatterns: h.SiteHosts}, func(c *conn) *guest {
		c.signedIn = stillSignedIn
		return h.host(c, toPages, sessionID, func(ctx context.Context, s sessions.Session, r *room) error { return r.greetPage(ctx, c, s, since) })
	})
}

// takeOver upgrades a request and goes on in a goroutine of its own, so that net/http can let go of all that it keeps
// for a request. greet lets the peer in, or closes it; what it returns is how the peer stays.
func (h *Hub) takeOver(rw http.ResponseWriter, r *http.Request, o *websocket.AcceptOptions, greet func(*conn) *guest) {
	taken := &hijack{ResponseWriter: rw}
	ws, err := websocket.Accept(taken, r, o)
	if err != nil {
		return // Accept has answered
	}
	if !h.serves() {
		_ = ws.Close(closeRestart, "the service restarts")
		return
	}
	c := h.newConn(ws, taken.wire)
	go func() {
		defer h.serving.Done()
		defer h.recovered(c)
		if g := greet(c); g != nil {
			h.serving.Add(1)
			go g.stay() // anew: greeting needed a deep stack, and staying lasts long
			return
		}
		_ = ws.CloseNow()
	}()
}

// serves counts one more goroutine of a peer, unless the hub is closing.
func (h *Hub) serves() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.serving.Add(1)
	return true
}

// recovered keeps a panic at one peer's frame from ending the process.
func (h *Hub) recovered(c *conn) {
	if p := recover(); p != nil {
		h.Logger.Error("panic at a peer's frame", "panic", p, "stack", string(debug.Stack()))
		_ = c.ws.CloseNow()
	}
}

// readHello reads the first frame within its limits; otherwise it closes with the reason.
func (h *Hub) readHello(c *conn) (glasses.Hello, glasses.Frame, bool) {
	c.ws.SetReadLimit(glasses.MaxHello)
	late := time.AfterFunc(h.HelloWait, func() { _ = c.ws.Close(closeBadHello, "no hello in time") })
	_, data, err := c.ws.Read(h.life)
	if !late.Stop() || err != nil {
		return glasses.Hello{}, glasses.Frame{}, false
	}
	hello, frame, err := glasses.ParseHello(data)
	if err != nil {
		_ = c.ws.Close(closeBadHello, err.Error())
		return hello, frame, false
	}
	return hello, frame, true
}

// guest is a peer in its room.
type guest struct {
	*conn
	r      *room
	to     audience
	sender string
	cancel func() // ends the subscription
}

// host lets an accepted peer into its room; nil when it was turned away or is gone already. greet writes the welcome
// and the replay.
func (h *Hub) host(c *conn, to audience, id string, greet func(context.Context, sessions.Session, *room) error) *guest {
	if h.away.Load() {
		// Attaching waits for the writer: callers that come again and again would pile up.
		_ = c.ws.Close(closeStore, "the session could not be read; try again")
		return nil
	}
	r, ok := h.enter(id)
	if !ok {
		_ = c.ws.Close(closeRestart, "the service restarts")
		return nil
	}
	sender, row, payload := introduction(c, to)
	r.pace.wait(h.life, sender) // coming and going are rows too
	ctx := context.Background() // nothing cuts it short: the store bounds its own work, and the writer goes on to the end
	s, unsubscribe, err := r.attach(ctx, c, to)
	if err != nil {
		h.turnAway(c.ws, err)
		h.leave(r)
		return nil
	}
	g := &guest{conn: c, r: r, to: to, cancel: unsubscribe}
	g.sender = sender
	r.welcome(ctx, to, row, payload)
	if err := greet(ctx, s, r); err != nil {
		g.depart()
		return nil
	}
	c.release()
	return g
}

// stay reads what the peer sends until it is gone. Its frame is small: for most of its life nothing else runs.
func (g *guest) stay() {
	defer g.depart()
	defer g.r.h.serving.Done()
	defer g.r.h.recovered(g.conn)
	limit := glasses.MaxFrame
	if g.to == toPages {
		limit = glasses.MaxBinary
	}
	g.read(limit, g.take)
}

func (g *guest) take(m message) { g.r.take(context.Background(), g.conn, g.sender, m) }

// depart ends what runs for the peer and takes it out of its room.
func (g *guest) depart() {
	defer g.r.h.leave(g.r)
	g.finish()
	g.r.goodbye(context.Background(), g.conn, g.to, g.cancel)
}

func (r *room) greetApp(ctx context.Context, c *conn, s sessions.Session, helloID string, since *int64) error {
	model, _ := glasses.Model(s.DeviceModel)
	welcome := glasses.Welcome{SessionID: s.ID, DeviceModel: model, Link: r.linkNow(), LastSeq: s.LastSeq,
		Truncated: since != nil && *since < s.FirstSeq-1}
	if err := c.greet(r.h.frame(glasses.TypeWelcome, helloID, welcome)); err != nil || since == nil {
		return err
	}
	return r.h.replay(ctx, s, *since, func(e glasses.Event) error {
		if e.Sender == glasses.SenderApp || (e.Kind != glasses.KindResult && !glasses.FromGlasses(e.Type)) {
			return nil
		}
		return c.greet(r.h.again(e))
	})
}

func (r *room) greetPage(ctx context.Context, c *conn, s sessions.Session, since int64) error {
	truncated := since >= 0 && since < s.FirstSeq-1
	if since < 0 || since > s.LastSeq {
		since = max(s.LastSeq-pageRecent, 0)
	}
	model, _ := glasses.Model(s.DeviceModel)
	r.mu.Lock()
	display := r.display
	r.mu.Unlock()
	welcome := glasses.PageWelcome{SessionID: s.ID, DeviceModel: model, LastSeq: s.LastSeq, Display: display, Truncated: truncated}
	if err := c.greet(r.h.frame(glasses.TypeWelcome, "", welcome)); err != nil {
		return err
	}
	return r.h.replay(ctx, s, since, func(e glasses.Event) error { return c.greet(r.h.frame(glasses.TypeRow, "", e)) })
}

func introduction(c *conn, to audience) (sender, row string, payload any) {
	if to == toPages {
		return glasses.SenderGlasses, glasses.RowGlassesAttached, struct{}{}
	}
	return glasses.SenderApp, glasses.RowAppAttached, c.app
}

// welcome announces a peer that was let in.
func (r *room) welcome(ctx context.Context, to audience, row string, payload any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.announce(ctx, to, row, payload)
}

// goodbye takes a peer out of its room, in one step: no command comes between those that are handed over and no page
// between its leaving and what the apps are told.
func (r *room) goodbye(ctx context.Context, c *conn, to audience, cancel func()) {
	row, payload := glasses.RowAppDetached, any(c.app)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(c, to, cancel)
	if to == toPages {
		row, payload = glasses.RowGlassesDetached, struct{}{}
		r.handOver(c)
	}
	r.announce(ctx, to, row, payload)
}

// turnAway closes with the code that tells a client whether trying again makes sense.
func (h *Hub) turnAway(ws *websocket.Conn, err error) {
	switch {
	case errors.Is(err, sessions.ErrBadSecret), errors.Is(err, sessions.ErrNotFound):
		_ = ws.Close(closeBadSecret, "the secret does not belong to this session")
	case errors.Is(err, sessions.ErrClosed):
		_ = ws.Close(closeSessionOver, "the session is closed")
	case errors.Is(err, errCrowded):
		_ = ws.Close(closeSlow, err.Error())
	default:
		h.Logger.Warn("attaching", "error", err)
		_ = ws.Close(closeStore, "the session could not be read; try again")
	}
}

// errTrimmed ends an attachment whose rows were trimmed during the replay. The peer reconnects and gets truncated.
var errTrimmed = errors.New("rows went over the quota while they were replayed")

// replay gives the rows after since up to the session's LastSeq; what came later is in the peer's queue already. Rows that
// were gone when the session was read are left out: the welcome says so.
func (h *Hub) replay(ctx context.Context, s sessions.Session, since int64, give func(glasses.Event) error) error {
	since = max(since, s.FirstSeq-1)
	for since < s.LastSeq {
		rows, err := h.Log.SessionEvents(ctx, s.ID, since, replayPage)
		if err != nil {
			return err
		}
		if len(rows) == 0 || rows[0].Seq != since+1 {
			return errTrimmed
		}
		for _, e := range rows {
			if e.Seq > s.LastSeq {
				return nil
			}
			if err := give(e); err != nil {
				return err
			}
		}
		since = rows[len(rows)-1].Seq
	}
	return nil
}

// again is the frame that a row was, with its seq.
func (h *Hub) again(e glasses.Event) []byte {
	f := glasses.Frame{Type: e.Type, ID: e.ID, At: e.At, Seq: e.Seq, Payload: e.Payload}
	data, err := f.Encode()
	if err != nil {
		h.Logger.Error("encoding replayed frame", "type", e.Type, "error", err)
	}
	return data
}
