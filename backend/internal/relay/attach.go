package relay

import (
	"context"
	"errors"
	"net/http"
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

// ServeApp attaches an app to the session of the path value "id". Everything is refused by a close code after the
// upgrade, alike for a session that does not exist and for a wrong secret.
func (h *Hub) ServeApp(rw http.ResponseWriter, r *http.Request) {
	// The secret in hello decides, not the origin: apps run in browsers of any site.
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }()
	ctx := r.Context()
	hello, frame, ok := h.readHello(ctx, ws)
	if !ok {
		return
	}
	id := r.PathValue("id")
	if _, err := h.Sessions.Open(ctx, id, hello.Secret); err != nil {
		h.turnAway(ws, err)
		return
	}
	c := h.newConn(ws)
	c.app = hello.App
	h.host(ctx, c, toApps, id, func(s sessions.Session, r *room) error {
		link := glasses.LinkDisconnected
		if r.pageCount() > 0 {
			link = glasses.LinkConnected
		}
		model, _ := glasses.Model(s.DeviceModel)
		welcome := glasses.Welcome{SessionID: s.ID, DeviceModel: model, Link: link, LastSeq: s.LastSeq}
		if err := c.write(ctx, h.frame(glasses.TypeWelcome, frame.ID, welcome)); err != nil {
			return err
		}
		if hello.Since == nil {
			return nil
		}
		return h.replay(ctx, s, *hello.Since, func(e glasses.Event) error {
			if e.Sender == glasses.SenderApp || (e.Type != glasses.TypeInput && e.Type != glasses.TypeResult) {
				return nil
			}
			return c.write(ctx, h.again(e))
		})
	})
}

// readHello reads the first frame within its limits; otherwise it closes with the reason.
func (h *Hub) readHello(ctx context.Context, ws *websocket.Conn) (glasses.Hello, glasses.Frame, bool) {
	ws.SetReadLimit(glasses.MaxHello)
	late := time.AfterFunc(h.HelloWait, func() { _ = ws.Close(closeBadHello, "no hello in time") })
	_, data, err := ws.Read(ctx)
	if !late.Stop() || err != nil {
		return glasses.Hello{}, glasses.Frame{}, false
	}
	hello, frame, err := glasses.ParseHello(data)
	if err != nil {
		_ = ws.Close(closeBadHello, err.Error())
		return hello, frame, false
	}
	ws.SetReadLimit(glasses.MaxFrame)
	return hello, frame, true
}

// ServePage attaches a simulator page. The caller has checked that the session is the signed-in person's; the origin is
// checked here. The query's since is the page's cursor. stillSignedIn is asked every PingEvery; the page ends when it
// says no.
func (h *Hub) ServePage(rw http.ResponseWriter, r *http.Request, sessionID string, stillSignedIn func(context.Context) bool) {
	if r.Header.Get("Origin") == "" {
		http.Error(rw, "a page must name its origin", http.StatusForbidden)
		return
	}
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{OriginPatterns: h.SiteHosts})
	if err != nil {
		return // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(glasses.MaxFrame)
	ctx := r.Context()
	c := h.newConn(ws)
	c.signedIn = stillSignedIn
	c.beatEvery, c.lives = h.BeatEvery, func() { c.send(h.frame(glasses.TypeBeat, "", struct{}{})) }
	h.host(ctx, c, toPages, sessionID, func(s sessions.Session, room *room) error {
		since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
		if err != nil || since < 0 || since > s.LastSeq {
			since = max(s.LastSeq-pageRecent, 0)
		}
		model, _ := glasses.Model(s.DeviceModel)
		room.mu.Lock()
		display := room.display
		room.mu.Unlock()
		welcome := glasses.PageWelcome{SessionID: s.ID, DeviceModel: model, LastSeq: s.LastSeq, Display: display}
		if err := c.write(ctx, h.frame(glasses.TypeWelcome, "", welcome)); err != nil {
			return err
		}
		return h.replay(ctx, s, since, func(e glasses.Event) error { return c.write(ctx, h.frame(glasses.TypeRow, "", e)) })
	})
}

// host keeps an accepted peer in its room until it leaves. greet sends the welcome and the replay.
func (h *Hub) host(ctx context.Context, c *conn, to audience, id string, greet func(sessions.Session, *room) error) {
	r, ok := h.enter(id)
	if !ok {
		_ = c.ws.Close(closeRestart, "the service restarts")
		return
	}
	defer h.leave(r)
	s, cancel, err := r.attach(ctx, c, to)
	if err != nil {
		h.turnAway(c.ws, err)
		return
	}
	defer r.goodbye(ctx, c, to, cancel)
	sender, row, payload := introduction(c, to)
	r.announce(ctx, to, true, row, payload)
	if err := greet(s, r); err != nil {
		return
	}
	c.run(ctx, h.PingEvery, func(raw []byte) { r.take(ctx, c, sender, raw) }, func() {
		if to == toPages {
			c.checkSignedIn(ctx)
		}
		r.tick(ctx)
	})
}

// checkSignedIn ends a page whose person signed out.
func (c *conn) checkSignedIn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkWait)
	defer cancel()
	if !c.signedIn(ctx) {
		c.end(closeSignedOut, "signed out; sign in again")
	}
}

func introduction(c *conn, to audience) (sender, row string, payload any) {
	if to == toPages {
		return glasses.SenderGlasses, glasses.RowGlassesAttached, struct{}{}
	}
	return glasses.SenderApp, glasses.RowAppAttached, c.app
}

// goodbye takes a peer out of its room. Its rows must be written though its request is over.
func (r *room) goodbye(ctx context.Context, c *conn, to audience, cancel func()) {
	r.remove(c, to, cancel)
	row, payload := glasses.RowAppDetached, any(c.app)
	if to == toPages {
		row, payload = glasses.RowGlassesDetached, struct{}{}
	}
	r.announce(context.WithoutCancel(ctx), to, false, row, payload)
}

// turnAway closes with the code that tells a client whether trying again makes sense.
func (h *Hub) turnAway(ws *websocket.Conn, err error) {
	switch {
	case errors.Is(err, sessions.ErrBadSecret), errors.Is(err, sessions.ErrNotFound):
		_ = ws.Close(closeBadSecret, "the secret does not belong to this session")
	case errors.Is(err, sessions.ErrClosed):
		_ = ws.Close(closeSessionOver, "the session is closed")
	default:
		h.Logger.Warn("attaching", "error", err)
		_ = ws.Close(closeStore, "the session could not be read; try again")
	}
}

// replay gives the rows after since up to the session's LastSeq; what came later is in the peer's queue already.
func (h *Hub) replay(ctx context.Context, s sessions.Session, since int64, give func(glasses.Event) error) error {
	for since < s.LastSeq {
		rows, err := h.Log.SessionEvents(ctx, s.ID, since, replayPage)
		if err != nil || len(rows) == 0 {
			return err
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
