package relay

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/host"
	"github.com/service-dev/service/glasses/host/websocket"
)

const (
	readPage = 200 // rows per read of the log

	// Limits on the replay for a page without a cursor. It contains the latest pageRows rows, or as many pages of
	// rows as contain pageBytes of payload. Commands for the glasses wait for the replay, so it must be short even on
	// a slow network.
	pageRows  = 5000
	pageBytes = 2 << 20
)

// ServeApp attaches an app to the session in the path value "id". It returns once the hub has taken over the socket. It
// refuses an app with a close code after the upgrade; the code is the same for an unknown session and a wrong secret.
func (h *Hub) ServeApp(rw http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	// The secret in hello authorises the app, so any origin is allowed: apps run in browsers on any site.
	h.takeOver(rw, r, []string{websocket.AnyOrigin}, false, func(c *conn) bool {
		hello, frame, ok := c.ReadHello(h.life, h.HelloWait)
		if !ok {
			return false
		}
		if _, err := h.Sessions.Open(h.life, id, hello.Secret); err != nil {
			h.refuse(c, err)
			return false
		}
		c.SetHello(hello)
		return h.attach(c, id, func(ctx context.Context, stored sessions.Session, s *liveSession) error {
			return s.greetApp(ctx, c, stored, frame.ID)
		})
	})
}

// ServePage attaches a simulator page. It returns once the hub has taken over the socket. The caller must have checked
// that the session belongs to the signed-in user; ServePage checks the origin. The query parameter since is the page's
// cursor. isSignedIn is called every PingEvery; if it returns false, the page is disconnected.
func (h *Hub) ServePage(
	rw http.ResponseWriter, r *http.Request, sessionID string, isSignedIn func(context.Context) bool,
) {
	scheme, _, _ := strings.Cut(h.SiteOrigin, "://")
	switch own, _, _ := strings.Cut(r.Header.Get("Origin"), "://"); {
	case own == "":
		http.Error(rw, "a page must send its origin", http.StatusForbidden)
		return
	case scheme != "" && own != scheme:
		http.Error(rw, "a page must be opened over "+scheme, http.StatusForbidden)
		return
	}
	since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	if err != nil || since < 0 {
		since = -1
	}
	h.takeOver(rw, r, []string{h.SiteOrigin}, true, func(c *conn) bool {
		c.isSignedIn = isSignedIn
		return h.attach(c, sessionID, func(ctx context.Context, stored sessions.Session, s *liveSession) error {
			return s.greetPage(ctx, c, stored, since)
		})
	})
}

// takeOver upgrades a request and continues in a new goroutine, so that net/http can free the memory of the request.
// attach returns false after it has closed the connection.
func (h *Hub) takeOver(
	rw http.ResponseWriter, r *http.Request, origins []string, isPage bool, attach func(*conn) bool,
) {
	ws, err := websocket.Accept(rw, r, origins...)
	if err != nil {
		return // Accept has sent the response
	}
	if !h.beginServing() {
		ws.Close(glasses.CloseRestart, host.Restarts)
		return
	}
	c, binaryLimit := &conn{isPage: isPage}, glasses.MaxFrame
	if isPage {
		binaryLimit = glasses.MaxBinary
	}
	h.group.Init(&c.Peer, ws, c, binaryLimit)
	go func() {
		defer h.serving.Done()
		defer c.Recover()
		if !attach(c) {
			c.Drop()
			return
		}
		h.serving.Add(1)
		c.Await()
	}()
}

// beginServing counts a goroutine of a peer. It returns false once the hub is closing.
func (h *Hub) beginServing() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return false
	}
	h.serving.Add(1)
	return true
}

// attach attaches a connection to a session. It returns false if the connection was refused or is already closed. greet
// writes the welcome and the replay.
func (h *Hub) attach(
	c *conn, id string, greet func(context.Context, sessions.Session, *liveSession) error,
) bool {
	if h.isAway.Load() {
		// Refuse now: attaching waits for the writer, so clients that retry would pile up.
		c.Refuse(glasses.CloseStore, host.NotReadable)
		return false
	}
	s, ok := h.hold(id)
	if !ok {
		c.Refuse(glasses.CloseRestart, host.Restarts)
		return false
	}
	c.session = s
	h.wait(s.rates, c.sender()) // wait, because attaching and leaving append rows too
	ctx := context.Background() // the store has its own timeouts, and the writer runs until the end
	stored, err := s.attach(ctx, c)
	if err != nil {
		h.refuse(c, err)
		h.release(s)
		return false
	}
	if h.life.Err() != nil { // Serve may have ended the session's peers before it attached
		c.End(glasses.CloseRestart, host.Restarts)
	}
	if err := greet(ctx, stored, s); err != nil {
		c.leave()
		return false
	}
	c.Start()
	return true
}

// leave stops the peer's goroutines and detaches it in one step. Otherwise a command could arrive in the middle of
// the handover, or a page could attach between the detachment and its announcement.
func (c *conn) leave() {
	s, ctx := c.session, context.Background()
	defer s.hub.release(s)
	c.Finish()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.hub.conns.Add(-1)
	if !c.isPage {
		s.Detach(ctx, c)
		s.sendPeers()
		return
	}
	s.pages.Remove(c)
	s.electPlayer()
	s.handOver(c)
	s.announcePage(ctx, glasses.RowGlassesDetached)
}

func (s *liveSession) greetApp(ctx context.Context, c *conn, stored sessions.Session, helloID string) error {
	rows := s.hub.rowsOf(stored)
	welcome := s.Welcome(ctx, c, helloID, s.id, stored.DeviceModel, rows, s.glassesForApp())
	if err := c.Greet(welcome); err != nil {
		return err
	}
	return s.Replay(ctx, c, rows, c.Greet)
}

func (s *liveSession) greetPage(ctx context.Context, c *conn, stored sessions.Session, since int64) error {
	truncated := since >= 0 && since < stored.FirstSeq-1
	if since < 0 || since > stored.LastSeq {
		var err error
		if since, err = s.hub.recent(ctx, stored); err != nil {
			return err
		}
	}
	model, _ := glasses.Model(stored.DeviceModel)
	s.Mu.Lock()
	display, state := s.display, *s.state
	s.Mu.Unlock()
	welcome := glasses.PageWelcome{
		SessionID: s.id, DeviceModel: model, LastSeq: stored.LastSeq, Display: display, Truncated: truncated,
	}
	if !state.IsPartial {
		known := state.Glasses.ForApp(state.Glasses.Link, glasses.ClockReal)
		welcome.Glasses = &known
	}
	if err := c.Greet(s.hub.frame(glasses.TypeWelcome, "", welcome)); err != nil {
		return err
	}
	return s.hub.rowsOf(stored).Replay(ctx, since, func(e glasses.Event) error {
		return c.Greet(s.hub.frame(glasses.TypeRow, "", e))
	})
}

// recent returns the cursor for a page that receives only the latest rows.
func (h *Hub) recent(ctx context.Context, stored sessions.Session) (int64, error) {
	oldest := max(stored.FirstSeq-1, stored.LastSeq-pageRows, 0)
	since, size := max(stored.LastSeq-readPage, oldest), 0
	for end := stored.LastSeq; end > oldest; end = since {
		from := max(end-readPage, oldest)
		rows, err := h.Log.SessionEvents(ctx, stored.ID, from, int(end-from))
		if err != nil {
			return 0, err
		}
		for _, e := range rows {
			size += len(e.Payload)
		}
		if size > pageBytes {
			break
		}
		since = from
	}
	return since, nil
}

// refuse closes a connection with a code that tells the client whether to retry.
func (h *Hub) refuse(c *conn, err error) {
	switch {
	case errors.Is(err, sessions.ErrBadSecret), errors.Is(err, sessions.ErrNotFound):
		c.Refuse(glasses.CloseBadSecret, "the secret does not belong to this session")
	case errors.Is(err, sessions.ErrClosed):
		c.Refuse(glasses.CloseSessionOver, "the session is closed")
	case errors.Is(err, errTooManyPeers):
		c.Refuse(glasses.CloseSlow, err.Error())
	default:
		h.Logger.Warn("failed to attach peer", "err", err)
		c.Refuse(glasses.CloseStore, host.NotReadable)
	}
}

// rowsOf returns the rows that are in the log when a peer attaches. Later rows are in the peer's queue.
func (h *Hub) rowsOf(stored sessions.Session) host.Rows {
	return host.Rows{First: stored.FirstSeq, Last: stored.LastSeq,
		Read: func(ctx context.Context, since int64, limit int) ([]glasses.Event, error) {
			return h.Log.SessionEvents(ctx, stored.ID, since, limit)
		}}
}
