package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/service-dev/service/proto/glasses"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// serveSim serves the adapter over an in-memory connection until the test ends.
func serveSim(t *testing.T) pluginv1.TransportClient {
	t.Helper()
	s := newSim(slog.New(slog.DiscardHandler))
	server, l := grpc.NewServer(), bufconn.Listen(1<<20)
	pluginv1.RegisterTransportServer(server, s)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:sim", grpc.WithTransportCredentials(insecure.NewCredentials()),
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

// pair is a session's glasses as the daemon sees them.
type pair struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[pluginv1.AttachRequest, pluginv1.AttachResponse]
	n      int
	frames []glasses.Frame // received since the last take, except results
	bodies map[string][]byte
}

func attach(t *testing.T, c pluginv1.TransportClient, o *pluginv1.AttachOpen) *pair {
	t.Helper()
	p := &pair{t: t, bodies: map[string][]byte{}}
	var err error
	if p.stream, err = c.Attach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if o.DeviceModel == "" {
		o.DeviceModel = "rayban_display"
	}
	p.send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Open{Open: o}})
	m, err := p.stream.Recv()
	if err != nil || m.GetOpened() == nil {
		t.Fatalf("open the session: got %v, %v", m, err)
	}
	return p
}

func (p *pair) send(m *pluginv1.AttachRequest) {
	p.t.Helper()
	if err := p.stream.Send(m); err != nil {
		p.t.Fatal(err)
	}
}

// start sends a frame and returns its id.
func (p *pair) start(typ, payload string) string {
	p.t.Helper()
	p.n++
	id := fmt.Sprintf("a-%d", p.n)
	raw := fmt.Sprintf(`{"v":1,"type":%q,"id":%q,"at":0,"payload":%s}`, typ, id, payload)
	p.send(&pluginv1.AttachRequest{Message: &pluginv1.AttachRequest_Frame{Frame: []byte(raw)}})
	return id
}

// next waits for the next frame and returns it.
func (p *pair) next() glasses.Frame {
	p.t.Helper()
	m, err := p.stream.Recv()
	if err != nil {
		p.t.Fatal(err)
	}
	var f glasses.Frame
	if b := m.GetBinary(); b != nil {
		var body []byte
		f, body, err = glasses.ParseBinary(b)
		p.bodies[f.ID] = body
	} else {
		f, err = glasses.Parse(m.GetFrame())
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

// await waits for the result of id and keeps other frames.
func (p *pair) await(id string) glasses.Result {
	p.t.Helper()
	for {
		f := p.next()
		if f.Type == glasses.TypeResult && f.ID == id {
			r, err := glasses.ParseResult(f.Payload)
			if err != nil {
				p.t.Fatal(err)
			}
			return r
		}
		p.frames = append(p.frames, f)
	}
}

func (p *pair) do(typ, payload string) glasses.Result {
	p.t.Helper()
	return p.await(p.start(typ, payload))
}

// must is like do, but fails the test if the command fails.
func (p *pair) must(typ, payload string) glasses.Result {
	p.t.Helper()
	r := p.do(typ, payload)
	if r.Error != nil {
		p.t.Fatalf("%s %s: %+v", typ, payload, r.Error)
	}
	return r
}

// advance moves virtual time forward step by step and returns the number of steps.
func (p *pair) advance(to int64) (steps int) {
	p.t.Helper()
	for {
		steps++
		if c := p.must(glasses.SimAdvance, fmt.Sprintf(`{"toMs":%d}`, to)).Clock; c.Reached {
			return steps
		}
	}
}

// take returns the frames received since the last take, formatted as "at type payload".
func (p *pair) take() []string {
	var list []string
	for _, f := range p.frames {
		list = append(list, fmt.Sprintf("%d %s %s", f.At, f.Type, f.Payload))
	}
	p.frames = nil
	return list
}
