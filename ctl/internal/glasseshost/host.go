// Package glasseshost acts as a session to which one client, such as an app on a phone, attaches as the glasses. It
// checks how the client attaches, reconnects and leaves. Package conformance checks the client's answers.
package glasseshost

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/conformance"
)

// Path is the URL path where the glasses attach.
const Path = "/s/conformance/live"

// lastSeq is the cursor in the welcome sent to the glasses.
const lastSeq = 57

const (
	reconnectTime = 20 * time.Second // PROTOCOL.md allows up to about 10 s between attempts
	quietTime     = 5 * time.Second  // a client that was rejected must not return within this time
	maxMessages   = 256
)

// Sections of PROTOCOL.md.
const (
	actingSection    = "Acting as the glasses"
	reconnectSection = "Reconnecting"
)

// Host accepts one client at a time. It rejects all others, because they could be mistaken for the client that has to
// reconnect.
type Host struct {
	// URL is the address for the glasses.
	URL string

	model   glasses.DeviceModel
	server  *http.Server
	serving sync.WaitGroup
	clients chan *client
	isFree  chan struct{} // has one element while a client may attach
	// Timeouts, which tests shorten.
	reconnectTime, quietTime time.Duration
}

// client is one attached client. It implements conformance.Conn.
type client struct {
	ws       *websocket.Conn
	query    url.Values
	origin   string
	messages chan conformance.Message
}

// Listen listens on the address: host:port, or a URL whose host and port are used.
func Listen(ctx context.Context, address string, model glasses.DeviceModel) (*Host, error) {
	if at, err := url.Parse(address); err == nil && at.Host != "" {
		address = at.Host
	}
	network := "tcp"
	if at, err := netip.ParseAddrPort(address); err == nil && at.Addr().Is4() {
		network = "tcp4" // otherwise 0.0.0.0 would also listen on [::], which URL would then contain
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen for the glasses: %w", err)
	}
	h := &Host{URL: "ws://" + l.Addr().String() + Path, model: model, clients: make(chan *client),
		isFree: make(chan struct{}, 1), reconnectTime: reconnectTime, quietTime: quietTime}
	h.isFree <- struct{}{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /s/{session}/live", h.attach)
	h.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	h.serving.Go(func() { _ = h.server.Serve(l) })
	return h, nil
}

// Close ends all connections. Cancel the context of Listen first.
func (h *Host) Close() {
	_ = h.server.Close()
	h.serving.Wait()
}

// attach serves one client until it leaves.
func (h *Host) attach(rw http.ResponseWriter, r *http.Request) {
	h.serving.Add(1)
	defer h.serving.Done()
	ws, err := websocket.Accept(rw, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // phones have another origin
	if err != nil {
		return
	}
	defer ws.CloseNow() //nolint:errcheck // it may be closed already
	ws.SetReadLimit(glasses.MaxBinary)
	select {
	case <-h.isFree:
	default:
		_ = ws.Close(glasses.CloseSlow, "another client is being checked as the glasses; close it, and attach again later")
		return
	}
	c := &client{ws: ws, query: r.URL.Query(), origin: r.Header.Get("Origin"),
		messages: make(chan conformance.Message, maxMessages)}
	defer close(c.messages)
	select {
	case h.clients <- c:
	case <-r.Context().Done():
		return
	}
	for {
		kind, data, err := ws.Read(r.Context())
		if err != nil {
			return
		}
		select {
		case c.messages <- conformance.Message{Data: data, Binary: kind == websocket.MessageBinary}:
		case <-r.Context().Done():
			return
		}
	}
}

// Messages implements conformance.Conn.
func (c *client) Messages() <-chan conformance.Message { return c.messages }

// Send implements conformance.Conn.
func (c *client) Send(ctx context.Context, frame []byte) error {
	return c.ws.Write(ctx, websocket.MessageText, frame)
}

// Check checks the answers of attached glasses. It is conformance.Check, except in tests.
type Check func(context.Context, conformance.Conn, glasses.DeviceModel,
	func(conformance.Line)) ([]conformance.Line, error)

// Run waits until glasses attach, and checks them. It calls tell with each verdict immediately. It returns an error
// if not every rule could be checked.
func (h *Host) Run(ctx context.Context, check Check,
	tell func(conformance.Line)) (lines []conformance.Line, err error) {
	verdict := func(name, section, problem string) {
		line := conformance.Line{Name: name, Section: section, Problem: problem}
		lines = append(lines, line)
		tell(line)
	}
	c, err := h.next(ctx, nil)
	if err != nil {
		return lines, err
	}
	verdict("the glasses attach with an origin and a cursor", actingSection, attachProblem(c, false))
	checked, err := check(ctx, c, h.model, tell)
	lines = append(lines, checked...)
	if err != nil {
		return lines, err
	}
	h.release(c, glasses.CloseRestart, "the service is restarting")
	c, err = h.next(ctx, time.After(h.reconnectTime))
	switch {
	case errors.Is(err, errNobody):
		verdict("after 1012 they attach again with their cursor", reconnectSection,
			fmt.Sprintf("no client attached within %v", h.reconnectTime))
		return lines, nil
	case err != nil:
		return lines, err
	}
	verdict("after 1012 they attach again with their cursor", reconnectSection, attachProblem(c, true))
	h.release(c, glasses.CloseSessionOver, "the session was closed")
	problem := ""
	if _, err = h.next(ctx, time.After(h.quietTime)); err == nil {
		problem = "the glasses attached again"
	} else if !errors.Is(err, errNobody) {
		return lines, err
	}
	verdict("after 4410 they stay away", reconnectSection, problem)
	return lines, nil
}

// release disconnects a client and lets the next one attach.
func (h *Host) release(c *client, code websocket.StatusCode, reason string) {
	h.isFree <- struct{}{} // free the slot before the client returns; never blocks, because this client took it
	_ = c.ws.Close(code, reason)
}

var errNobody = errors.New("nobody attached")

// next waits for the next client and greets it.
func (h *Host) next(ctx context.Context, limit <-chan time.Time) (*client, error) {
	select {
	case c := <-h.clients:
		return c, h.greet(ctx, c)
	case <-limit:
		return nil, errNobody
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// attachProblem returns what was wrong with a client's attempt to attach, or "". A client that returns must send the
// cursor of the welcome.
func attachProblem(c *client, isBack bool) string {
	since := c.query.Get("since")
	n, err := strconv.ParseInt(since, 10, 64)
	switch {
	case c.origin == "":
		return "the request has no Origin header"
	case isBack && n != lastSeq:
		return fmt.Sprintf("since is %.40q, want %d, which was lastSeq of the welcome", since, lastSeq)
	case since != "" && err != nil:
		return fmt.Sprintf("since is %.40q, want a number", since)
	}
	return ""
}

// greet sends the frames that the service sends when glasses attach.
func (h *Host) greet(ctx context.Context, c *client) error {
	frames := []struct {
		typ     string
		payload any
	}{
		{glasses.TypeWelcome, map[string]any{"sessionId": "conformance", "deviceModel": h.model, "lastSeq": lastSeq,
			"display": nil, "glasses": nil}},
		{glasses.TypePeers, map[string]any{"apps": []glasses.AppInfo{{Name: "conformance"}}, "pages": 1}},
		{glasses.TypeRole, map[string]bool{"active": true}},
		{glasses.TypeBeat, struct{}{}},
	}
	for i, f := range frames {
		if err := c.Send(ctx, broker.Encode(time.Now(), f.typ, fmt.Sprint("service-", i), f.payload)); err != nil {
			return fmt.Errorf("greet the glasses: %w", err)
		}
	}
	return nil
}
