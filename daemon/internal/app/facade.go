package app

import (
	"context"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/tools"
)

// face shows the parts to the control door in the words that it declares. It decides nothing.
type face struct{ p *parts }

var (
	_ control.Accounts  = face{}
	_ control.Logins    = face{}
	_ control.Consents  = face{}
	_ control.System    = face{}
	_ tools.Accounts    = face{}
	_ control.Catalogue = (*tools.Catalogue)(nil)
)

func (f face) InstallID() string { return f.p.installID() }

// Link is the snapshot as the caller's backend sees it.
func (f face) Link(ctx context.Context) account.Link {
	b, err := f.p.backendOf(ctx)
	if err != nil {
		return f.p.accounts.Current()
	}
	return f.p.accounts.For(f.p.resolved(b))
}

// resolved puts the id of the embedded backend into its address when it runs.
func (p *parts) resolved(b config.Backend) string {
	if b.Kind == config.KindEmbedded && p.host != nil {
		if id := p.host.EmbeddedID(); id != "" {
			return id
		}
	}
	return b.URL
}

func (f face) Verify(ctx context.Context) account.Link {
	return f.p.verify(ctx, caller.From(ctx))
}

// BackendURL is where the caller's calls go; empty when its setting cannot be used.
func (f face) BackendURL(ctx context.Context) string {
	b, err := f.p.backendOf(ctx)
	if err != nil {
		return ""
	}
	return f.p.resolved(b)
}

// Logout deletes auth.json first: that never waits for the network. Then the backend is asked to revoke the token.
func (f face) Logout(ctx context.Context) (control.LoggedOut, error) {
	out := control.LoggedOut{Path: f.p.accounts.Path()}
	l := f.p.accounts.Current()
	var err error
	if out.Was, err = f.p.accounts.Delete(); err != nil {
		return out, err
	}
	if l.AuthToken != "" {
		out.RevokeURL = f.p.link.Revoke(context.WithoutCancel(ctx), l)
		out.Revoked = out.RevokeURL == ""
	}
	return out, nil
}

func (f face) Begin(ctx context.Context, replace bool) (control.Attempt, error) {
	a, err := f.p.link.Start(ctx, caller.From(ctx), replace)
	if err != nil {
		return nil, err
	}
	return attempt{a}, nil
}

// attempt is a login of link's in control's words.
type attempt struct{ *link.Attempt }

func (a attempt) Wait(ctx context.Context, onPoll func(link.PollEvent)) (link.Outcome, error) {
	return a.Attempt.Wait(ctx, link.Wait{OnPoll: onPoll})
}

func (f face) Open(ctx context.Context, url string) (opened bool, reason string) {
	return clientio.Open(ctx, caller.From(ctx), url)
}

func (f face) Consent(ctx context.Context) control.Consent {
	state, _ := f.p.consent.Get()
	allowed, by := f.p.record.Gate(caller.From(ctx))
	return control.Consent{State: string(state), UploadAllowed: allowed, DecidedBy: by}
}

func (f face) Plugins() []control.Plugin {
	var out []control.Plugin
	for _, s := range f.p.host.Plugins() {
		out = append(out, pluginOut(s))
	}
	return out
}

func pluginOut(s pluginhost.PluginStatus) control.Plugin {
	return control.Plugin{
		Name: s.Name, Path: s.Path, State: s.State, Version: s.Version, LastError: s.LastError,
		PID: s.PID, Restarts: s.Restarts, Verified: s.Verified,
		Since: s.Since, Crashed: s.Crashed, Resume: s.Resume,
	}
}

// Load tells what is held now. A browser session lives in its backend and is not counted.
func (f face) Load() control.Load {
	return control.Load{
		MCPClients: f.p.gate.Clients(), Sessions: f.p.sessions.LocalCount(), Polling: f.p.link.Polling(),
		Replaced: f.p.program.replaced(), ConfigProblem: f.p.configProblem(),
	}
}

// configProblem is why config.yaml as it is now is not in use; empty when it is.
func (p *parts) configProblem() string {
	if err := p.config.Problem(); err != nil {
		return err.Error()
	}
	return ""
}

// dashboardPath is where a backend's dashboard begins.
const dashboardPath = "/account"

// Backend tells where the caller's calls go, and how the last of them went. It asks nobody; the doctor does.
func (f face) Backend(ctx context.Context) control.Backend {
	b, err := f.p.backendOf(ctx)
	if err != nil {
		return control.Backend{State: "unknown", Detail: err.Error()}
	}
	out := control.Backend{Kind: b.Kind, URL: b.URL, ChosenBy: b.ChosenBy, State: "unknown"}
	address := b.URL
	if b.Kind == config.KindEmbedded {
		out.URL, address = f.p.host.EmbeddedID(), f.p.host.EmbeddedURL()
		if out.URL != "" {
			out.State = "reachable"
		}
	} else if c := f.p.host.Contact(b.URL); !c.At.IsZero() {
		out.State, out.Detail = "unreachable", c.Err
		if c.OK {
			out.State = "reachable"
		}
	}
	if address != "" {
		out.DashboardURL = address + dashboardPath
	}
	return out
}

func (f face) CloseLocalSession(ctx context.Context, id string) error {
	_, err := f.p.sessions.Close(ctx, backend.Target{}, id)
	return err
}

func (f face) Doctor(ctx context.Context) []control.Check { return f.p.doctor(ctx) }

func (f face) Stop() { f.p.end(errAsked) }
