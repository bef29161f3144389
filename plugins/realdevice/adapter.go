package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/plugins/internal/attach"
	"github.com/service-dev/service/plugins/internal/bluez"
	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/glasses/driver/kinds"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// adapter implements the Transport contract.
type adapter struct {
	pluginv1.UnimplementedTransportServer
	log      *slog.Logger
	sessions *attach.Server
	options  bluez.Options
	scanTime time.Duration // for which a session looks for its glasses

	mu    sync.Mutex
	radio *bluez.Radio        // nil until it is needed
	users map[string]*session // the session that uses a peripheral, by address
}

func newAdapter(log *slog.Logger, o bluez.Options) *adapter {
	return &adapter{
		log: log, sessions: attach.NewServer(log), options: o, scanTime: scanTime, users: map[string]*session{},
	}
}

// Close ends every session, which clears the glasses, and then lets go of the radio.
func (a *adapter) Close(ctx context.Context) error {
	err := a.sessions.Close(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.radio != nil {
		a.radio.Close()
		a.radio = nil
	}
	return err
}

// DescribeTransport implements the contract.
func (a *adapter) DescribeTransport(context.Context,
	*pluginv1.DescribeTransportRequest) (*pluginv1.DescribeTransportResponse, error) {
	return &pluginv1.DescribeTransportResponse{
		Name: "realdevice", Version: buildinfo.Version, Title: "Real glasses over Bluetooth LE",
		DeviceModels: kinds.DeviceModels(),
	}, nil
}

// Attach serves the glasses of one session until the stream ends.
func (a *adapter) Attach(stream grpc.BidiStreamingServer[pluginv1.AttachRequest, pluginv1.AttachResponse]) error {
	return a.sessions.Serve(stream, func(o *pluginv1.AttachOpen) (attach.Session, string, error) {
		s, err := newSession(stream.Context(), a, o, stream)
		if err != nil {
			return nil, "", err
		}
		return s, s.glasses.Model().ID, nil
	})
}

// claim reserves a peripheral for a session. It returns the id of the session that has it already, or "". If that is
// the same session, attached earlier, it waits until the glasses were left.
func (a *adapter) claim(ctx context.Context, address string, s *session) (holder string) {
	for {
		a.mu.Lock()
		other := a.users[address]
		if other == nil || other == s {
			a.users[address] = s
			a.mu.Unlock()
			return ""
		}
		a.mu.Unlock()
		if other.id != s.id {
			return other.id
		}
		select {
		case <-other.left:
		case <-ctx.Done():
			return other.id
		}
	}
}

// release ends all reservations of a session.
func (a *adapter) release(s *session) {
	defer close(s.left)
	a.mu.Lock()
	defer a.mu.Unlock()
	for address, holder := range a.users {
		if holder == s {
			delete(a.users, address)
		}
	}
}

// refuse returns a problem of the radio as an error of the contract.
func refuse(err error) error { return serve.Refuse(codes.Unavailable, problemOf(err)) }
