package control

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/internal/rendezvous"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// Hello exchanges protocol ranges and refuses an incompatible client.
func (s *Server) Hello(_ context.Context, r *controlv1.HelloRequest) (*controlv1.HelloResponse, error) {
	if lo, hi := r.GetProtocolMin(), r.GetProtocolMax(); lo > rendezvous.ProtocolMax || hi < rendezvous.ProtocolMin ||
		lo > hi {
		who, what := "client", "Upgrade the client: the running daemon is "+s.o.About.Version
		if lo > rendezvous.ProtocolMax {
			who, what = "daemon", "Run `servicectl daemon restart`; connected agents continue with the new daemon"
		}
		return nil, refuse(codes.FailedPrecondition, &controlv1.Error{
			Code: "protocol_mismatch",
			Message: fmt.Sprintf("the %s is too old: the client speaks protocol %d to %d, the daemon %d to %d",
				who, lo, hi, rendezvous.ProtocolMin, rendezvous.ProtocolMax),
			FixHint: what + ".",
		})
	}
	return &controlv1.HelloResponse{
		ProtocolMin: rendezvous.ProtocolMin, ProtocolMax: rendezvous.ProtocolMax,
		Version: s.o.About.Version, Pid: int64(s.o.About.PID),
	}, nil
}

// Status returns the daemon's status. It uses only data of this process.
func (s *Server) Status(ctx context.Context, r *controlv1.StatusRequest) (*controlv1.StatusResponse, error) {
	ctx = withCaller(ctx, r.GetCaller())
	a, now := s.o.About, s.o.Now()
	b, load := s.o.System.Backend(ctx), s.o.System.Load()
	return &controlv1.StatusResponse{
		Version: a.Version, Pid: int64(a.PID), UptimeMs: now.Sub(a.Started).Milliseconds(), Managed: a.Managed,
		ConfigDir: a.Paths.Dir, ControlSocket: a.Paths.Control, McpSocket: a.Paths.MCP,
		McpClients: count(load.MCPClients), Sessions: count(load.Sessions), Polling: count(load.Polling),
		ProtocolMin: rendezvous.ProtocolMin, ProtocolMax: rendezvous.ProtocolMax,
		Program: a.Program, Replaced: load.Replaced, SocketActivated: a.SocketActivated, ConfigProblem: load.ConfigProblem,
		InstallId: s.o.Accounts.InstallID(),
		Link:      linkMessage(s.o.Accounts.Link(ctx), now),
		Consent:   consentMessage(s.o.Consents.Consent(ctx)),
		Backend: &controlv1.Backend{Kind: b.Kind, Url: b.URL, ChosenBy: b.ChosenBy, State: b.State, Detail: b.Detail,
			DashboardUrl: b.DashboardURL},
		Plugins: pluginMessages(s.o.System.Plugins()), UnclearedGlasses: load.UnclearedGlasses,
	}, nil
}

func count(n int) uint32 { return uint32(max(0, n)) }

// ListPlugins lists the adapters and their states.
func (s *Server) ListPlugins(context.Context, *controlv1.ListPluginsRequest) (*controlv1.ListPluginsResponse, error) {
	return &controlv1.ListPluginsResponse{Plugins: pluginMessages(s.o.System.Plugins())}, nil
}

// AddPlugin adds an adapter that the user approved.
func (s *Server) AddPlugin(ctx context.Context,
	r *controlv1.AddPluginRequest) (*controlv1.AddPluginResponse, error) {
	p, err := s.o.Adapters.AddPlugin(ctx, string(r.GetPath()), r.GetSha256())
	return &controlv1.AddPluginResponse{Plugin: pluginMessage(p)}, statusOrNil(err)
}

// RemovePlugin removes an added adapter.
func (s *Server) RemovePlugin(ctx context.Context,
	r *controlv1.RemovePluginRequest) (*controlv1.RemovePluginResponse, error) {
	p, err := s.o.Adapters.RemovePlugin(ctx, r.GetName())
	return &controlv1.RemovePluginResponse{Plugin: pluginMessage(p)}, statusOrNil(err)
}

func statusOrNil(err error) error {
	if err == nil {
		return nil
	}
	return statusError(err)
}

// Doctor runs every check.
func (s *Server) Doctor(ctx context.Context, r *controlv1.DoctorRequest) (*controlv1.DoctorResponse, error) {
	var out []*controlv1.Check
	for _, c := range s.o.System.Doctor(withCaller(ctx, r.GetCaller())) {
		out = append(out, &controlv1.Check{Name: c.Name, State: c.State, Detail: c.Detail, Fix: c.Fix})
	}
	return &controlv1.DoctorResponse{Checks: out}, nil
}

// Stop starts the shutdown. The shutdown waits for calls in progress and therefore for this response.
func (s *Server) Stop(context.Context, *controlv1.StopRequest) (*controlv1.StopResponse, error) {
	s.o.System.Stop()
	return &controlv1.StopResponse{Pid: int64(s.o.About.PID)}, nil
}
