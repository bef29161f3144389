package main

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

	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/glasses"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Limits of the adapter.
const (
	maxSessions = 256
	// maxWaiting is the maximum number of queued requests of one session; beyond that the host must wait.
	maxWaiting = 64
	// maxClock keeps the session's clock, in ms, exactly representable in JSON and far from overflow.
	maxClock = 1 << 53
)

// codeInvalid is the Problem code for an invalid open request.
const codeInvalid = "invalid_request"

// sim implements the Transport contract. Sessions share no other state.
type sim struct {
	pluginv1.UnimplementedTransportServer
	log  *slog.Logger
	life context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	open    int
	workers sync.WaitGroup
}

func newSim(log *slog.Logger) *sim {
	s := &sim{log: log}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends every session and waits until they have ended, for as long as ctx allows.
func (s *sim) Close(ctx context.Context) error {
	s.mu.Lock() // from here on no session can start
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

// DescribeTransport returns the adapter's name.
func (s *sim) DescribeTransport(context.Context,
	*pluginv1.DescribeTransportRequest) (*pluginv1.DescribeTransportResponse, error) {
	return &pluginv1.DescribeTransportResponse{Name: "localsim", Version: buildinfo.Version}, nil
}

// Attach serves the glasses of one session until the stream ends.
func (s *sim) Attach(stream grpc.BidiStreamingServer[pluginv1.AttachRequest, pluginv1.AttachResponse]) error {
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
	one, err := newSession(first.GetOpen(), stream, s.log)
	if err != nil {
		return err
	}
	defer one.fixtures.close()
	opened := &pluginv1.AttachOpened{DeviceModel: one.device.Model().ID}
	if err := stream.Send(&pluginv1.AttachResponse{Message: &pluginv1.AttachResponse_Opened{Opened: opened}}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	return one.serve(ctx, s.receive(ctx, stream))
}

func (s *sim) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open >= maxSessions || s.life.Err() != nil {
		return false
	}
	s.open++
	s.workers.Add(1)
	return true
}

func (s *sim) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	s.workers.Done()
}

// receive reads the stream's requests until the stream or ctx ends. Its goroutine may briefly outlive Attach, until
// gRPC has ended the stream.
func (s *sim) receive(ctx context.Context, stream grpc.BidiStreamingServer[pluginv1.AttachRequest,
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

// parseOpen validates an open request. It returns the model in the snapshot, or the named model if there is no
// snapshot.
func parseOpen(o *pluginv1.AttachOpen) (model glasses.DeviceModel, snapshot *glasses.Snapshot, err error) {
	if o == nil {
		return model, nil, invalid("the first request of a session is not open")
	}
	id := o.GetDeviceModel()
	if len(o.GetSnapshot()) > 0 {
		snapshot = &glasses.Snapshot{}
		if err := json.Unmarshal(o.GetSnapshot(), snapshot); err != nil {
			return model, nil, invalid("the snapshot is not a valid glasses.Snapshot")
		}
		if snapshot.DeviceModel != "" {
			id = snapshot.DeviceModel
		}
	}
	model, ok := glasses.Model(id)
	switch {
	case !ok:
		return model, nil, invalid("unknown device model")
	case o.GetNowMs() < 0 || o.GetNowMs() > maxClock:
		return model, nil, invalid("the session's clock is out of range")
	case len(o.GetFixturesDir()) > 0 && !filepath.IsAbs(string(o.GetFixturesDir())):
		return model, nil, invalid("the folder of fixtures is not an absolute path")
	}
	return model, snapshot, nil
}

func invalid(message string) error {
	return serve.Refuse(codes.InvalidArgument, &pluginv1.Problem{Code: codeInvalid, Message: message})
}
