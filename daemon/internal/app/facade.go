package app

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/pairs"
	"github.com/service-dev/service/internal/problem"
)

// facade implements the interfaces of control and tools by calling the components. It makes no decisions of its own.
type facade struct{ d *daemon }

func (f facade) InstallID() string { return f.d.install.ID() }

// Link returns the link for the caller's backend.
func (f facade) Link(ctx context.Context) account.Link {
	b, err := f.d.backendOf(ctx)
	if err != nil {
		return f.d.accounts.Current()
	}
	return f.d.accounts.For(f.d.resolved(b))
}

// resolved returns the URL of a backend; for a running embedded backend it includes the ID.
func (d *daemon) resolved(b config.Backend) string {
	if b.Kind != config.KindEmbedded {
		return b.URL
	}
	id, _ := d.host.RunningEmbedded()
	return cmp.Or(id, b.URL)
}

func (f facade) Verify(ctx context.Context) account.Link {
	return f.d.link.Verify(ctx, caller.From(ctx))
}

// BackendURL returns the URL of the caller's backend, or "" if the setting is invalid.
func (f facade) BackendURL(ctx context.Context) string {
	b, err := f.d.backendOf(ctx)
	if err != nil {
		return ""
	}
	return f.d.resolved(b)
}

// Logout deletes auth.json first, without waiting for the network, and then asks the backend to revoke the token.
func (f facade) Logout(ctx context.Context) (control.LoggedOut, error) {
	out := control.LoggedOut{Path: f.d.accounts.Path()}
	l := f.d.accounts.Current()
	var err error
	if out.Was, err = f.d.accounts.Delete(); err != nil {
		return out, err
	}
	if l.AuthToken != "" {
		out.RevokeURL = f.d.link.Revoke(context.WithoutCancel(ctx), l)
		out.Revoked = out.RevokeURL == ""
	}
	return out, nil
}

func (f facade) Begin(ctx context.Context, replace bool) (control.Attempt, error) {
	a, err := f.d.link.Start(ctx, caller.From(ctx), replace)
	if err != nil {
		return nil, err
	}
	return attempt{a}, nil
}

// attempt implements control's interface with a link.Attempt.
type attempt struct{ *link.Attempt }

func (a attempt) Wait(ctx context.Context, onPoll func(link.PollEvent)) (link.Outcome, error) {
	return a.Attempt.Wait(ctx, link.Wait{OnPoll: onPoll})
}

func (f facade) Open(ctx context.Context, url string) (opened bool, reason string) {
	return clientio.Open(ctx, caller.From(ctx), url)
}

// requireEmbedded returns an error unless the caller uses the embedded backend, whose accounts belong to this user.
func (f facade) requireEmbedded(ctx context.Context) error {
	b, err := f.d.backendOf(ctx)
	if err != nil {
		return &problem.Error{Code: "invalid_request", Message: err.Error(),
			FixHint: "Correct SERVICE_BACKEND_URL or config.yaml."}
	}
	if b.Kind == config.KindEmbedded {
		return nil
	}
	return &problem.Error{
		Code: problem.CodeNotEmbedded, Message: "this shell uses the backend " + b.URL + ", which manages its own accounts",
		FixHint: "Request a new password on its page " + b.URL + forgotPath + ".",
	}
}

func (f facade) LocalAccounts(ctx context.Context, email string) ([]backend.LocalAccount, error) {
	if err := f.requireEmbedded(ctx); err != nil {
		return nil, err
	}
	return f.d.host.LocalAccounts(ctx, email)
}

func (f facade) ResetPassword(ctx context.Context, p backend.NewPassword) (reset backend.PasswordReset, signInURL string,
	err error) {
	if err := f.requireEmbedded(ctx); err != nil {
		return backend.PasswordReset{}, "", err
	}
	reset, err = f.d.host.ResetPassword(ctx, p)
	if _, address := f.d.host.RunningEmbedded(); address != "" {
		signInURL = address + signInPath
	}
	return reset, signInURL, err
}

func (f facade) Consent(ctx context.Context) control.Consent {
	state, _ := f.d.consent.Get()
	allowed, by := f.d.recorder.Gate(caller.From(ctx))
	return control.Consent{State: string(state), UploadAllowed: allowed, DecidedBy: by}
}

func (f facade) Plugins() []control.Plugin {
	var out []control.Plugin
	for _, s := range f.d.host.Plugins() {
		out = append(out, control.Plugin(s))
	}
	return out
}

func (f facade) AddPlugin(ctx context.Context, path, sha256 string) (control.Plugin, error) {
	s, err := f.d.host.Add(ctx, path, sha256)
	return control.Plugin(s), err
}

func (f facade) RemovePlugin(_ context.Context, name string) (control.Plugin, error) {
	s, err := f.d.host.Remove(name)
	return control.Plugin(s), err
}

// Load returns the current load. It does not count browser sessions, because a backend hosts them.
func (f facade) Load() control.Load {
	return control.Load{
		MCPClients: f.d.gate.Clients(), Sessions: f.d.sessions.LocalCount(), Polling: f.d.link.Polling(),
		Replaced: f.d.program.isReplaced(), ConfigProblem: f.d.configProblem(), UnclearedGlasses: f.unclearedGlasses(),
	}
}

func (f facade) unclearedGlasses() (names []string) {
	for _, k := range f.KnownPairs() {
		if k.Uncleared {
			names = append(names, k.Name)
		}
	}
	return names
}

// configProblem returns the reason why the current config.yaml is not in use, or "" if it is in
// use.
func (d *daemon) configProblem() string {
	if err := d.config.Problem(); err != nil {
		return err.Error()
	}
	return ""
}

// Paths of a backend's pages.
const (
	dashboardPath = "/account"
	forgotPath    = "/forgot"
	signInPath    = "/signin"
)

// Backend returns the caller's backend and the outcome of the last call to it. It does not call the backend; the doctor
// does.
func (f facade) Backend(ctx context.Context) control.Backend {
	b, err := f.d.backendOf(ctx)
	if err != nil {
		return control.Backend{State: "unknown", Detail: err.Error()}
	}
	out := control.Backend{Kind: b.Kind, URL: b.URL, ChosenBy: b.ChosenBy, State: "unknown"}
	address := b.URL
	if b.Kind == config.KindEmbedded {
		out.URL, address = f.d.host.RunningEmbedded()
		if out.URL != "" {
			out.State = "reachable"
		}
	} else if c := f.d.host.Contact(b.URL); !c.At.IsZero() {
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

func (f facade) HoldLocalSession(id string) func(ctx context.Context) error {
	f.d.sessions.Hold(id)
	return func(ctx context.Context) error {
		_, err := f.d.sessions.Close(ctx, backend.Target{}, id)
		return err
	}
}

func (f facade) KnownPairs() []control.KnownPair {
	var list []control.KnownPair
	for _, k := range f.d.pairs.List() {
		list = append(list, control.KnownPair{Known: k})
	}
	for _, r := range f.d.sessions.RealPairs() {
		i := slices.IndexFunc(list, func(k control.KnownPair) bool {
			return k.Name == r.Name && k.DeviceModel == r.DeviceModel
		})
		if i < 0 { // the pair was removed in the meantime
			i = len(list)
			known := pairs.Known{Pair: backend.Pair{Name: r.Name}, DeviceModel: r.DeviceModel}
			list = append(list, control.KnownPair{Known: known})
		}
		list[i].SessionID, list[i].Uncleared = r.SessionID, r.Uncleared
	}
	return list
}

func (f facade) ForgetPair(name string) error { return f.d.pairs.Forget(name) }

func (f facade) SetPanel(sessionID string, panel backend.PairPanel) error {
	return f.d.sessions.SetPanel(sessionID, panel)
}

func (f facade) ScanPairs(ctx context.Context, length time.Duration) ([]backend.FoundPair, error) {
	return f.d.host.Scan(ctx, length)
}

func (f facade) CloseRealSessions(ctx context.Context) ([]string, error) {
	return f.d.sessions.CloseReal(ctx, caller.From(ctx))
}

func (f facade) Doctor(ctx context.Context) []control.Check { return f.d.doctor(ctx) }

func (f facade) Stop() { f.d.end(errAsked) }
