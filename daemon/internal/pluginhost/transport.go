package pluginhost

import (
	"context"
	"encoding/json"
	"sync"

	"google.golang.org/grpc"

	"github.com/service-dev/service/daemon/internal/backend"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// maxQueued is the maximum number of queued frames in each direction of an attachment. If the queue to the glasses is
// full, further frames are refused. If the queue from the glasses is full, the adapter blocks.
const maxQueued = 256

type (
	attachStream = grpc.BidiStreamingClient[pluginv1.AttachRequest, pluginv1.AttachResponse]
	inbound      struct {
		data   []byte
		binary bool
	}
)

// attachment connects one session to its glasses in a transport adapter. Its two goroutines end with the stream.
type attachment struct {
	name   string
	stream attachStream
	end    context.CancelFunc
	life   context.Context
	out    chan *pluginv1.AttachRequest
	in     chan inbound
	closed error // why in was closed; set before in is closed
	// hardware is called with the state of real glasses; it may be nil.
	hardware func(backend.Hardware)
	workers  sync.WaitGroup
}

// Attach attaches a session's glasses through the named transport adapter, starting the adapter if necessary. ctx
// applies only to the opening. The glasses stay attached until Close, or until the adapter or the host stops. It
// returns a *problem.Error, or ctx's error.
func (h *Host) Attach(ctx context.Context, name string, open backend.TransportOpen) (backend.Glasses, error) {
	request, err := openRequest(open)
	if err != nil {
		return nil, err
	}
	var inst *instance
	var done func()
	a, err := h.findTransport(name)
	if err == nil {
		inst, done, err = a.get(ctx)
	}
	if err != nil {
		return nil, err
	}
	g := &attachment{name: name, out: make(chan *pluginv1.AttachRequest, maxQueued), in: make(chan inbound, maxQueued),
		hardware: open.OnHardware}
	g.life, g.end = context.WithCancel(h.life)
	context.AfterFunc(g.life, done)
	stop := context.AfterFunc(ctx, g.end)
	err = g.open(inst.transport, request)
	if err != nil && inst.isStuck() {
		err = stuckProblem(name)
	}
	if stop() && err == nil {
		g.workers.Go(g.read)
		g.workers.Go(g.write)
		return g, nil
	}
	g.end()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, err
}

func openRequest(o backend.TransportOpen) (*pluginv1.AttachRequest, error) {
	open := &pluginv1.AttachOpen{
		SessionId: o.SessionID, DeviceModel: o.DeviceModel, VirtualClock: o.Virtual, NowMs: o.NowMs,
		FixturesDir: []byte(o.FixturesDir), Pair: pairRequest(o), Pace: o.Pace, Via: o.Via,
	}
	if o.Snapshot != nil {
		var err error
		if open.Snapshot, err = json.Marshal(o.Snapshot); err != nil {
			return nil, err
		}
	}
	return &pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Open{Open: open}}, nil
}

// open opens the stream and waits for the message that the glasses are attached.
func (g *attachment) open(c pluginv1.TransportClient, request *pluginv1.AttachRequest) (err error) {
	var first *pluginv1.AttachResponse
	if g.stream, err = c.Attach(g.life); err == nil {
		_ = g.stream.Send(request) // if this fails, Recv returns the reason
		first, err = g.stream.Recv()
	}
	if err != nil {
		return problemOf(g.life, g.name, err)
	}
	if first.GetOpened() == nil {
		return unavailable(g.name, "it did not confirm the opening of a session", 0)
	}
	return nil
}

// read receives the glasses' frames until the stream ends.
func (g *attachment) read() {
	defer close(g.in)
	defer g.end() // also ends write
	for {
		m, err := g.stream.Recv()
		if err != nil {
			g.closed = g.closeError(err)
			return
		}
		if h := m.GetHardware(); h != nil {
			if g.hardware != nil {
				g.hardware(hardwareOf(h))
			}
			continue
		}
		f := inbound{data: m.GetFrame()}
		if b, ok := m.GetMessage().(*pluginv1.AttachResponse_Binary); ok {
			f = inbound{data: b.Binary, binary: true}
		}
		select {
		case g.in <- f:
		case <-g.life.Done():
			g.closed = g.closeError(g.life.Err())
			return
		}
	}
}

func (g *attachment) closeError(err error) error {
	if g.life.Err() != nil {
		return unavailable(g.name, "the glasses were detached", 0)
	}
	return problemOf(context.Background(), g.name, err)
}

// write sends the session's queued frames to the glasses.
func (g *attachment) write() {
	for {
		select {
		case m := <-g.out:
			if g.stream.Send(m) != nil {
				return // read returns the reason
			}
		case <-g.life.Done():
			return
		}
	}
}

// Send implements backend.Glasses.
func (g *attachment) Send(frame []byte, binary bool) error {
	m := &pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Frame{Frame: frame}}
	if binary {
		m.Message = &pluginv1.AttachRequest_Binary{Binary: frame}
	}
	return g.put(m)
}

// SetPanel implements backend.Glasses.
func (g *attachment) SetPanel(p backend.PairPanel) error {
	return g.put(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Panel{Panel: &pluginv1.PairPanel{
		Inverted: p.Inverted, Rows: int32(p.Rows), Checked: p.IsChecked,
	}}})
}

// put queues a message to the glasses.
func (g *attachment) put(m *pluginv1.AttachRequest) error {
	if g.life.Err() != nil {
		return unavailable(g.name, "the glasses are detached", 0)
	}
	select {
	case g.out <- m:
		return nil
	default:
		return unavailable(g.name, "the glasses cannot keep up and a frame was dropped", 0)
	}
}

// Receive implements backend.Glasses.
func (g *attachment) Receive(ctx context.Context) (frame []byte, binary bool, err error) {
	select {
	case f, ok := <-g.in:
		if !ok {
			return nil, false, g.closed
		}
		return f.data, f.binary, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// Close implements backend.Glasses.
func (g *attachment) Close() error {
	g.end()
	g.workers.Wait()
	return nil
}
