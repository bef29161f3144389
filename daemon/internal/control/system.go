package control

import (
	"context"

	"github.com/service-dev/service/internal/rendezvous"
	api "github.com/service-dev/service/proto/control"
)

// version returns the versions of the daemon and its protocols.
func (s *Server) version(context.Context, api.None) (api.Version, error) {
	return api.Version{
		Version: s.o.About.Version, PID: s.o.About.PID,
		ProtocolMin: rendezvous.ControlProtocolMin, ProtocolMax: rendezvous.ControlProtocolMax,
	}, nil
}

// status returns the daemon's status. It uses only data in memory.
func (s *Server) status(ctx context.Context, _ api.None) (api.Status, error) {
	a, now := s.o.About, s.o.Now()
	b, load, consent := s.o.Daemon.Backend(ctx), s.o.Daemon.Load(), s.o.Daemon.Consent(ctx)
	return api.Status{
		Version: a.Version, PID: a.PID, UptimeMs: now.Sub(a.Started).Milliseconds(), Managed: a.Managed,
		ConfigDir: a.Paths.Dir, ControlSocket: a.Paths.Control, MCPSocket: a.Paths.MCP,
		MCPClients: load.MCPClients, Sessions: load.Sessions, Polling: load.Polling,
		ProtocolMin: rendezvous.ControlProtocolMin, ProtocolMax: rendezvous.ControlProtocolMax,
		Program: a.Program, Replaced: load.Replaced, SocketActivated: a.SocketActivated, ConfigProblem: load.ConfigProblem,
		InstallID: s.o.Daemon.InstallID(), Link: linkOf(s.o.Daemon.Link(ctx), now),
		Consent: api.Consent{State: consent.State, UploadAllowed: consent.UploadAllowed, DecidedBy: consent.DecidedBy},
		Plugins: pluginsOf(s.o.Daemon.Plugins()),
		Backend: api.Backend{Kind: b.Kind, URL: b.URL, ChosenBy: b.ChosenBy, State: b.State, Detail: b.Detail,
			DashboardURL: b.DashboardURL},
		UnclearedGlasses: load.UnclearedGlasses,
	}, nil
}

// listPlugins lists the adapters and their states.
func (s *Server) listPlugins(context.Context, api.None) (api.Plugins, error) {
	return api.Plugins{Plugins: pluginsOf(s.o.Daemon.Plugins())}, nil
}

func (s *Server) addPlugin(ctx context.Context, r api.AddPluginRequest) (api.PluginAnswer, error) {
	p, err := s.o.Daemon.AddPlugin(ctx, string(r.Path), r.SHA256)
	return api.PluginAnswer{Plugin: pluginOf(p)}, err
}

func (s *Server) removePlugin(ctx context.Context, r api.NameRequest) (api.PluginAnswer, error) {
	p, err := s.o.Daemon.RemovePlugin(ctx, r.Name)
	return api.PluginAnswer{Plugin: pluginOf(p)}, err
}

func (s *Server) doctor(ctx context.Context, _ api.None) (api.Checks, error) {
	checks := []api.Check{}
	for _, c := range s.o.Daemon.Doctor(ctx) {
		checks = append(checks, api.Check(c))
	}
	return api.Checks{Checks: checks}, nil
}

// stop starts the shutdown. The shutdown waits for calls in progress, so this response is still sent.
func (s *Server) stop(context.Context, api.None) (api.Stopped, error) {
	s.o.Daemon.Stop()
	return api.Stopped{PID: s.o.About.PID}, nil
}
