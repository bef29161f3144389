package realdevice

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/glasses/driver/kinds"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/plugins/internal/attach"
	"github.com/service-dev/service/plugins/internal/bluez"
	"github.com/service-dev/service/plugins/internal/serve"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// adapter implements the Transport contract.
type adapter struct {
	pluginv1.UnimplementedTransportServer
	log      *slog.Logger
	sessions *attach.Server
	options  bluez.Options
	scanTime time.Duration // how long a session searches for its glasses

	mu       sync.Mutex
	radio    *bluez.Radio // nil until it is needed
	claims   []claim
	stateDir string // state directory of the daemon; empty until the daemon has sent it
}

func newAdapter(log *slog.Logger, o bluez.Options) *adapter {
	return &adapter{log: log, sessions: attach.NewServer(log), options: o, scanTime: scanTime}
}

// Close ends every session, which clears the glasses, and then closes the radio.
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
func (a *adapter) DescribeTransport(_ context.Context,
	r *pluginv1.DescribeTransportRequest) (*pluginv1.DescribeTransportResponse, error) {
	a.mu.Lock()
	a.stateDir = string(r.GetConfigDir())
	a.mu.Unlock()
	return &pluginv1.DescribeTransportResponse{
		Name: "realdevice", Version: buildinfo.Version, Title: "RealDeviceTransport: real glasses over Bluetooth LE",
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

// refuse converts a problem of the radio to an error of the contract.
func refuse(err error) error { return serve.Refuse(codes.Unavailable, problemOf(err)) }
