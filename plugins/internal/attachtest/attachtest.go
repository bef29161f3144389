// Package attachtest drives a transport adapter in tests as the daemon does: over gRPC, in memory.
package attachtest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/plugins/internal/serve"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// sessionLimit ends a test that waits forever. It is far longer than any test takes.
const sessionLimit = 10 * time.Minute

// Serve serves an adapter over an in-memory connection until the test ends.
func Serve(t *testing.T, s serve.Transport) pluginv1.TransportClient {
	t.Helper()
	server, l := grpc.NewServer(), bufconn.Listen(1<<20)
	pluginv1.RegisterTransportServer(server, s)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:adapter", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Errorf("close the adapter: %v", err)
		}
		conn.Close()
		server.Stop()
		<-done
	})
	return pluginv1.NewTransportClient(conn)
}

// Pair is a session's glasses as the daemon sees them.
type Pair struct {
	Frames []glasses.Frame // received since the last Take, except results
	Bodies map[string][]byte
	// Hardware is the last state of real glasses.
	Hardware *pluginv1.Hardware

	t      *testing.T
	stream grpc.BidiStreamingClient[pluginv1.AttachRequest, pluginv1.AttachResponse]
	n      int
}

// Attach opens a session. The default model is rayban_display.
func Attach(t *testing.T, c pluginv1.TransportClient, o *pluginv1.AttachOpen) *Pair {
	t.Helper()
	p := &Pair{t: t, Bodies: map[string][]byte{}}
	ctx, cancel := context.WithTimeoutCause(t.Context(), sessionLimit,
		fmt.Errorf("the session has run for %s", sessionLimit))
	t.Cleanup(cancel)
	var err error
	if p.stream, err = c.Attach(ctx); err != nil {
		t.Fatal(err)
	}
	if o.DeviceModel == "" {
		o.DeviceModel = "rayban_display"
	}
	p.Send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Open{Open: o}})
	m, err := p.stream.Recv()
	if err != nil || m.GetOpened() == nil {
		t.Fatalf("open the session: got %v, %v", m, err)
	}
	return p
}

// Send sends a request.
func (p *Pair) Send(m *pluginv1.AttachRequest) {
	p.t.Helper()
	if err := p.stream.Send(m); err != nil {
		p.t.Fatal(err)
	}
}

// Start sends a frame and returns its ID.
func (p *Pair) Start(typ, payload string) string {
	p.t.Helper()
	p.n++
	id := fmt.Sprintf("a-%d", p.n)
	raw := fmt.Sprintf(`{"v":1,"type":%q,"id":%q,"at":0,"payload":%s}`, typ, id, payload)
	p.Send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Frame{Frame: []byte(raw)}})
	return id
}

// Next waits for the next frame and returns it. It records hardware states that it receives.
func (p *Pair) Next() glasses.Frame {
	p.t.Helper()
	m, err := p.Receive()
	for err == nil && m.GetHardware() != nil {
		m, err = p.Receive()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	var f glasses.Frame
	if b := m.GetBinary(); b != nil {
		var body []byte
		f, body, err = glasses.ParseBinary(b)
		p.Bodies[f.ID] = body
	} else {
		f, err = glasses.Parse(m.GetFrame())
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

// Receive waits for the next response.
func (p *Pair) Receive() (*pluginv1.AttachResponse, error) {
	m, err := p.stream.Recv()
	if h := m.GetHardware(); h != nil {
		p.Hardware = h
	}
	if err != nil && p.stream.Context().Err() != nil {
		err = fmt.Errorf("%w (%w)", err, context.Cause(p.stream.Context()))
	}
	return m, err
}

// AwaitHardware waits until isWanted returns true for the state of the hardware. It keeps the frames received
// meanwhile.
func (p *Pair) AwaitHardware(isWanted func(*pluginv1.Hardware) bool) *pluginv1.Hardware {
	p.t.Helper()
	for p.Hardware == nil || !isWanted(p.Hardware) {
		m, err := p.Receive()
		if err != nil {
			p.t.Fatalf("wait for the hardware: %v; the last state is %v", err, p.Hardware)
		}
		if f, err := glasses.Parse(m.GetFrame()); err == nil {
			p.Frames = append(p.Frames, f)
		}
	}
	return p.Hardware
}

// End ends the session.
func (p *Pair) End() {
	p.t.Helper()
	if err := p.stream.CloseSend(); err != nil {
		p.t.Fatal(err)
	}
	for {
		if _, err := p.Receive(); err != nil {
			return
		}
	}
}

// Await waits for the result with this ID. It keeps the other frames received meanwhile.
func (p *Pair) Await(id string) glasses.Result {
	p.t.Helper()
	for {
		f := p.Next()
		if f.Type == glasses.TypeResult && f.ID == id {
			r, err := glasses.ParseResult(f.Payload)
			if err != nil {
				p.t.Fatal(err)
			}
			return r
		}
		p.Frames = append(p.Frames, f)
	}
}

// Do sends a frame and waits for its result.
func (p *Pair) Do(typ, payload string) glasses.Result {
	p.t.Helper()
	return p.Await(p.Start(typ, payload))
}

// Must is like Do, but fails the test if the command fails.
func (p *Pair) Must(typ, payload string) glasses.Result {
	p.t.Helper()
	r := p.Do(typ, payload)
	if r.Error != nil {
		p.t.Fatalf("%s %s: %+v", typ, payload, r.Error)
	}
	return r
}

// Take returns the frames received since the last Take, formatted as "at type payload".
func (p *Pair) Take() []string {
	var list []string
	for _, f := range p.Frames {
		list = append(list, fmt.Sprintf("%d %s %s", f.At, f.Type, f.Payload))
	}
	p.Frames = nil
	return list
}
