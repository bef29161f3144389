package localsim

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/plugins/internal/attach"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// sim implements the Transport contract. Sessions share no other state.
type sim struct {
	pluginv1.UnimplementedTransportServer
	log      *slog.Logger
	sessions *attach.Server
}

func newSim(log *slog.Logger) *sim { return &sim{log: log, sessions: attach.NewServer(log)} }

// Close ends every session and waits until they have ended, for as long as ctx allows.
func (s *sim) Close(ctx context.Context) error { return s.sessions.Close(ctx) }

// DescribeTransport returns the adapter's name.
func (s *sim) DescribeTransport(context.Context,
	*pluginv1.DescribeTransportRequest) (*pluginv1.DescribeTransportResponse, error) {
	return &pluginv1.DescribeTransportResponse{Name: "localsim", Version: buildinfo.Version,
		Title: "LocalSimTransport: simulated glasses on this machine", VirtualClock: true}, nil
}

// Attach serves the glasses of one session until the stream ends.
func (s *sim) Attach(stream grpc.BidiStreamingServer[pluginv1.AttachRequest, pluginv1.AttachResponse]) error {
	return s.sessions.Serve(stream, func(o *pluginv1.AttachOpen) (attach.Session, string, error) {
		one, err := newSession(o, stream, s.log)
		if err != nil {
			return nil, "", err
		}
		return one, one.device.Model().ID, nil
	})
}
