// Package attach serves the Attach streams of a transport adapter: it limits their number, passes requests to the
// glasses of each session, and ends all of them when the adapter closes. It is independent of the kind of glasses.
package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/serve"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Limits of an adapter.
const (
	maxSessions = 256
	// maxWaiting is the maximum number of queued requests of one session; beyond it, the host must wait.
	maxWaiting = 64
	// MaxClock limits the session's clock, in ms, so that times are exactly representable in JSON and far from
	// overflow.
	MaxClock = 1 << 53
)

// Session is implemented by the glasses of one session.
type Session interface {
	// Serve handles requests until in is closed, ctx ends or sending to the host fails.
	Serve(ctx context.Context, in <-chan *pluginv1.AttachRequest) error
	// Close releases the resources of the session. It is called once, after Serve or instead of it.
	Close()
}

// Server serves Attach streams. Sessions share no other state.
type Server struct {
	log  *slog.Logger
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	open    int
	workers sync.WaitGroup
}

// NewServer returns a server without sessions.
func NewServer(log *slog.Logger) *Server {
	s := &Server{log: log}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends every session and waits until they have ended, for as long as ctx allows.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock() // no session can start from here on
	s.end()
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.workers.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Serve serves one stream. open returns the session's glasses and their model.
func (s *Server) Serve(stream grpc.BidiStreamingServer[pluginv1.AttachRequest, pluginv1.AttachResponse],
	open func(*pluginv1.AttachOpen) (Session, string, error)) error {
	if !s.enter() {
		return serve.Refuse(codes.ResourceExhausted, &pluginv1.Problem{
			Code: "rate_limited", Message: fmt.Sprintf("%d sessions are already attached",
				maxSessions), Retryable: true, FixHint: "Close sessions that are not needed.",
		})
	}
	defer s.leave()
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	one, model, err := open(first.GetOpen())
	if err != nil {
		return err
	}
	defer one.Close()
	opened := &pluginv1.AttachOpened{DeviceModel: model}
	if err := stream.Send(&pluginv1.AttachResponse{Message: &pluginv1.AttachResponse_Opened{Opened: opened}}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	return one.Serve(ctx, s.receive(ctx, stream))
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxSessions || s.life.Err() != nil {
		return false
	}
	s.open++
	s.workers.Add(1)
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.workers.Done()
}

// receive reads the stream's requests until the stream or ctx ends. Its goroutine may briefly outlive Serve, until
// gRPC ends the stream.
func (s *Server) receive(ctx context.Context, stream grpc.BidiStreamingServer[pluginv1.AttachRequest,
	pluginv1.AttachResponse]) <-chan *pluginv1.AttachRequest {
	in := make(chan *pluginv1.AttachRequest, maxWaiting)
	s.workers.Go(func() {
		defer close(in)
		for {
			m, err := stream.Recv()
			if err != nil {
				if !errors.Is(err, io.EOF) && ctx.Err() == nil {
					s.log.Debug("session stream failed", "err", err)
				}
				return
			}
			select {
			case in <- m:
			case <-ctx.Done():
				return
			}
		}
	})
	return in
}

// ParseOpen validates an open request. It returns the model in the snapshot, or the named model if there is no
// snapshot.
func ParseOpen(o *pluginv1.AttachOpen) (model glasses.DeviceModel, snapshot *glasses.Snapshot, err error) {
	if o == nil {
		return model, nil, Invalid("the first request of a session is not open")
	}
	id := o.GetDeviceModel()
	if len(o.GetSnapshot()) > 0 {
		snapshot = &glasses.Snapshot{}
		if err := json.Unmarshal(o.GetSnapshot(), snapshot); err != nil {
			return model, nil, Invalid("the snapshot is not a valid glasses.Snapshot")
		}
		if snapshot.DeviceModel != "" {
			id = snapshot.DeviceModel
		}
	}
	model, ok := glasses.Model(id)
	switch {
	case !ok:
		return model, nil, Invalid("unknown device model")
	case o.GetNowMs() < 0 || o.GetNowMs() > MaxClock:
		return model, nil, Invalid("the session's clock is out of range")
	case len(o.GetFixturesDir()) > 0 && !filepath.IsAbs(string(o.GetFixturesDir())):
		return model, nil, Invalid("the folder of fixtures is not an absolute path")
	}
	return model, snapshot, nil
}

// Invalid returns the error for a request that violates the contract.
func Invalid(message string) error {
	return serve.Refuse(codes.InvalidArgument, &pluginv1.Problem{Code: problem.CodeInvalidRequest, Message: message})
}
