package host

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/glasses/host/websocket"
)

// Reasons for closing a connection, shared by all hosts.
const (
	Restarts    = "the service is restarting"
	NotStored   = "the frame could not be stored; reconnect and send it again"
	NotReadable = "the session could not be read; try again"
)

// MaxPressure is the longest time that a peer may delay the sender of a stream.
const MaxPressure = 50 * time.Millisecond

// Group is the peers of one host.
type Group struct {
	bounds  broker.Bounds // of each peer's queue
	log     *slog.Logger
	last    atomic.Int64 // the ID assigned last
	dropped atomic.Int64
}

// NewGroup returns a group without peers.
func NewGroup(bounds broker.Bounds, log *slog.Logger) *Group { return &Group{bounds: bounds, log: log} }

// Dropped returns the number of stream frames dropped because their peers were behind.
func (g *Group) Dropped() int64 { return g.dropped.Load() }

// Handler handles the messages and the end of a peer.
type Handler interface {
	// Handle handles one message from the peer. The message is valid until Handle returns. A peer's messages are
	// handled one after another.
	Handle(m Message)
	// Ending is called once, when the connection is being closed or was lost. It must not call the peer, whose lock is
	// held.
	Ending()
	// Gone is called once after the peer has disconnected. It must call Finish.
	Gone()
}

// Receiver is a peer from the session's point of view. Its methods never block.
type Receiver interface {
	// Send queues a frame. A receiver that is too far behind is disconnected or, if the frame is a stream frame, does
	// not get the frame. The sender of a stream may wait for the returned channel, which is nil if the receiver keeps
	// up.
	Send(m Message) (relieved <-chan struct{})
	// SendText queues a text frame from the service to which apps do not react, such as an acknowledgement.
	SendText(frame []byte)
	// End closes the connection after sending the queued frames. Only the first call has an effect.
	End(code websocket.Status, reason string)
}

// Peer is the connection of one app or page. Any goroutine may call its methods, unless documented otherwise.
type Peer struct {
	ID      broker.PeerID
	group   *Group
	ws      *websocket.Conn
	handler Handler
	// textLimit and binaryLimit are the size limits of frames.
	textLimit, binaryLimit int

	isPinged bool      // a ping was sent at lastPing; only PingIfDue uses this and the next two fields
	heard    uint32    // ws.Heard at lastPing
	lastPing time.Time // time of the last ping, or of connecting

	wg       sync.WaitGroup
	mu       sync.Mutex
	outbox   broker.Outbox[Message]
	lag      *lag          // closed when the peer is gone; created by the first caller that waits for this
	left     chan struct{} // closed once the peer is gone; created by the first caller that waits for it
	greeting bool          // the welcome and the replay are being written, before the queue
	told     bool          // the handler was informed that the peer leaves
	writing  bool          // drain is running
	gone     bool          // no new goroutine may be started
	ending   bool          // the close code and reason are set
	code     websocket.Status
	reason   string
}

// lag is a period during which a peer does not keep up with a stream.
type lag struct {
	since    time.Time
	relieved chan struct{} // closed when the lag ends
}

// Init makes p the peer of an accepted connection. Frames sent to the peer wait until Start. binaryLimit is the size
// limit of its binary frames. Text frames may have glasses.MaxFrame bytes.
func (g *Group) Init(p *Peer, ws *websocket.Conn, handler Handler, binaryLimit int) {
	p.ID = broker.PeerID(g.last.Add(1))
	p.group, p.ws, p.handler, p.lastPing = g, ws, handler, time.Now()
	p.textLimit, p.binaryLimit = glasses.MaxFrame, binaryLimit
	p.outbox, p.greeting = broker.NewOutbox[Message](&g.bounds), true
}

// LimitText sets the size limit of text frames. Call it before the first frame is read.
func (p *Peer) LimitText(bytes int) { p.textLimit = bytes }

// ReadHello reads the first frame within its size limit and the duration wait. On failure it closes the connection with
// the reason, which is CloseRestart if life ends. Only the reading goroutine may call it.
func (p *Peer) ReadHello(life context.Context, wait time.Duration) (glasses.Hello, glasses.Frame, bool) {
	stop := context.AfterFunc(life, func() { p.ws.SendClose(glasses.CloseRestart, Restarts) })
	defer stop()
	p.ws.ReadBy(time.Now().Add(wait))
	m, ok := p.next(glasses.MaxHello, glasses.MaxHello)
	for ok && m.Kind == 0 {
		m, ok = p.next(glasses.MaxHello, glasses.MaxHello)
	}
	if !ok {
		p.ws.Close(glasses.CloseBadHello, "no hello in time") // an earlier reason takes precedence
		return glasses.Hello{}, glasses.Frame{}, false
	}
	p.ws.ReadBy(time.Time{})
	defer m.release()
	hello, frame, err := glasses.ParseHello(m.Data)
	if err != nil {
		p.ws.Close(glasses.CloseBadHello, err.Error())
		return hello, frame, false
	}
	return hello, frame, true
}

// Refuse closes the connection of a peer that may not attach. Only the reading goroutine may call it.
func (p *Peer) Refuse(code websocket.Status, reason string) { p.ws.Close(code, reason) }

// Drop closes the connection without a reason. The reader gets an error, and Gone is called.
func (p *Peer) Drop() { p.ws.Drop() }

// Recover prevents a panic while serving one peer from ending the process. Call it with defer.
func (p *Peer) Recover() {
	if v := recover(); v != nil {
		p.group.log.Error("panic while serving a peer", "panic", v, "stack", string(debug.Stack()))
		p.ws.Drop()
	}
}

// Await handles messages from now on, in goroutines that exist only while messages arrive. The handler's Gone is called
// after the last one.
func (p *Peer) Await() { p.ws.Await(p.read) }

// read handles messages until no more arrive.
func (p *Peer) read() {
	isGone := true
	defer func() {
		if isGone {
			p.handler.Gone()
		}
	}()
	defer p.Recover()
	if p.ws.Wait() != nil {
		return
	}
	for p.ws.More() {
		m, ok := p.next(p.textLimit, p.binaryLimit)
		if !ok {
			return
		}
		if m.Kind != 0 {
			p.handler.Handle(m)
			m.release()
		}
	}
	isGone = false
	p.Await()
}

// Send queues a message (Receiver).
func (p *Peer) Send(m Message) (relieved <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.ending {
		return nil
	}
	switch p.outbox.Put(m) {
	case broker.Dropped:
		p.group.dropped.Add(1)
		return p.press()
	case broker.Overflow:
		p.endLocked(glasses.CloseSlow, "too slow; reconnect with your cursor")
		return nil
	}
	m.retain()
	p.startWriter()
	if p.outbox.IsPressed() {
		return p.press()
	}
	return nil
}

// SendText queues a text frame from the service.
func (p *Peer) SendText(frame []byte) { p.Send(Text(frame)) }

// press returns the channel to wait for, or nil if the peer has already delayed senders for MaxPressure. The caller
// must hold mu.
func (p *Peer) press() <-chan struct{} {
	now := time.Now()
	if p.lag == nil {
		p.lag = &lag{now, make(chan struct{})}
	}
	if now.Sub(p.lag.since) > MaxPressure {
		return nil
	}
	return p.lag.relieved
}

// AwaitRelief delays the sender of a stream until relieved or gone is closed, but at most for MaxPressure.
func AwaitRelief(relieved, gone <-chan struct{}) {
	select {
	case <-relieved:
	case <-time.After(MaxPressure):
	case <-gone:
	}
}

// relieve releases the senders that are waiting for this peer. The caller must hold mu.
func (p *Peer) relieve() {
	if p.lag != nil {
		close(p.lag.relieved)
		p.lag = nil
	}
}

// startWriter starts drain unless it is running. The caller must hold mu.
func (p *Peer) startWriter() {
	if !p.writing && !p.greeting && !p.gone {
		p.writing = true
		p.wg.Go(p.drain)
	}
}

// Start begins to write the queue. Call it after the greeting.
func (p *Peer) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.greeting = false
	if p.outbox.Len() > 0 || p.ending {
		p.startWriter()
	}
}

// End sends the queued frames and then closes the connection with a reason. Only the first call has an effect.
func (p *Peer) End(code websocket.Status, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(code, reason)
}

func (p *Peer) endLocked(code websocket.Status, reason string) {
	if p.ending || p.gone {
		return
	}
	p.ending, p.code, p.reason = true, code, reason
	p.tellHandler()
	p.startWriter()
}

// tellHandler calls the handler's Ending once. The caller must hold mu.
func (p *Peer) tellHandler() {
	if !p.told {
		p.told = true
		p.handler.Ending()
	}
}

// lose drops a connection that no longer works. The reader gets an error, unless it is handling a message.
func (p *Peer) lose() {
	p.mu.Lock()
	p.tellHandler()
	p.mu.Unlock()
	p.ws.Drop()
}

// drain writes until the queue is empty.
func (p *Peer) drain() {
	for {
		p.mu.Lock()
		batch := p.outbox.Take()
		isDone, ending := len(batch) == 0 || p.gone, p.ending && !p.gone
		if len(batch) == 0 && !p.ending {
			p.writing = false
		}
		p.mu.Unlock()
		if isDone {
			releaseAll(batch)
			if ending {
				p.ws.SendClose(p.code, p.reason)
			}
			return
		}
		if !p.writeAll(batch) {
			p.lose()
			return
		}
	}
}

func releaseAll(batch []Message) {
	for _, m := range batch {
		m.release()
	}
}

// writeAll writes a batch. It combines frames into larger writes where they fit.
func (p *Peer) writeAll(batch []Message) bool {
	p.ws.Cork()
	for i, m := range batch {
		err := p.ws.Write(m.Kind, m.Data)
		p.written(m)
		if err != nil {
			releaseAll(batch[i+1:])
			return false
		}
	}
	return p.ws.Uncork() == nil
}

func (p *Peer) written(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outbox.Written(m)
	m.release()
	if p.outbox.IsRelieved() {
		p.relieve()
	}
}

// Greet writes a frame immediately, before the queued frames.
func (p *Peer) Greet(frame []byte) error {
	return p.ws.Write(websocket.Text, frame)
}

// next reads one frame within the size limit for its kind. The kind is 0 if a ping or pong arrived instead. next
// returns false when the peer is gone or has been closed with a reason. The caller must release the frame.
func (p *Peer) next(textLimit, binaryLimit int) (Message, bool) {
	kind, err := p.ws.Next()
	if err != nil || kind == 0 {
		return Message{}, err == nil
	}
	limit := binaryLimit
	if kind == websocket.Text {
		limit = textLimit
	}
	size := p.ws.Size()
	if size > uint64(limit) { //nolint:gosec // limits are positive
		p.ws.Close(glasses.CloseTooBig, "the frame is too big")
		return Message{}, false
	}
	b := newBuffer(int(size) + 1) //nolint:gosec // at most the limit; one extra byte detects the end without growing
	for {
		if len(b.data) == cap(b.data) {
			b = b.grow()
		}
		n, err := p.ws.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		switch {
		case len(b.data) > limit:
			b.free()
			p.ws.Close(glasses.CloseTooBig, "the frame is too big")
			return Message{}, false
		case err == nil:
			continue
		case !errors.Is(err, io.EOF):
			b.free()
			return Message{}, false
		}
		return Message{Data: b.data, Kind: kind, pooled: b}, true
	}
}

// Finish stops the goroutines of a peer that is gone. If a writer is closing the connection with a reason, Finish waits
// for it first.
func (p *Peer) Finish() {
	p.mu.Lock()
	p.greeting = false
	isClosing := p.ending && p.writing
	if !isClosing {
		p.gone = true
	}
	p.mu.Unlock()
	if !isClosing {
		p.ws.Drop()
	}
	p.wg.Wait()
	p.ws.Drop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	if p.left != nil {
		close(p.left)
		p.left = nil
	}
	releaseAll(p.outbox.Take())
	p.relieve()
}

// Leaves returns a channel that is closed when the peer is gone.
func (p *Peer) Leaves() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
		left := make(chan struct{})
		close(left)
		return left
	case p.left == nil:
		p.left = make(chan struct{})
	}
	return p.left
}

// PingIfDue pings the peer if at least every has passed since the last ping. It drops a peer that has sent no data
// within wait after a ping. It must not be called concurrently.
func (p *Peer) PingIfDue(now time.Time, every, wait time.Duration) {
	since, heard := now.Sub(p.lastPing), p.ws.Heard()
	if p.isPinged && since >= wait && heard == p.heard {
		p.lose()
		return
	}
	if since >= every && p.ping() {
		p.lastPing, p.heard, p.isPinged = now, heard, true
	}
}

// ping sends a ping to the peer. It does nothing while frames are waiting to be written: the ping would wait behind
// them, and a write to a peer that is gone fails in time.
func (p *Peer) ping() (sent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone || p.greeting || p.ending || p.outbox.Len() > 0 {
		return false
	}
	p.outbox.Put(Message{Kind: websocket.Ping})
	p.startWriter()
	return true
}
