package link

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/codes"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/proto/telemetry"
)

// Accounts is the snapshot of the link and its one writer.
type Accounts interface {
	For(url string) account.Link
	Save(l account.Link) error
	Path() string
	MarkRevoked(token string)
	SetVerified(token string, v account.Verdict)
}

// Config tells where a caller's calls go.
type Config interface{ Current() *config.Config }

// IssuedCodes remembers the codes that were issued here beyond the life of the daemon.
type IssuedCodes interface {
	Find(deviceCode string) (codes.Issued, bool, error)
	Put(deviceCode string, issued codes.Issued) error
	Remove(deviceCode string) error
}

// UnsavedLinks knows the link that holds though auth.json could not be written.
type UnsavedLinks interface {
	Unsaved() (account.Link, bool)
}

// Options are the parts of a Manager. Codes, Unsaved, Log and Now may be nil; without Codes a code is forgotten with the
// daemon.
type Options struct {
	Backend   Backend
	Embedder  Embedder
	Accounts  Accounts
	Unsaved   UnsavedLinks
	Codes     IssuedCodes
	Config    Config
	Record    Recorder
	InstallID string
	Log       *slog.Logger
	Now       func() time.Time
}

const (
	scope = "account_full"
	// remember is how long the outcome of a code is kept for whoever asks again.
	remember = 15 * time.Minute
	// maxFlows bounds the codes that are kept; the oldest finished ones go first.
	maxFlows = 256
	// maxPolling bounds the codes that are polled at once.
	maxPolling = 64
)

// Manager owns every device-code flow of the daemon. Serve must run: it owns the polling.
type Manager struct {
	Options
	asking sync.Mutex // one code is issued at a time, so that callers at once share one
	saving sync.Mutex // one approval at a time decides whether it may replace the link

	mu      sync.Mutex
	flows   map[string]*flow // by device code
	live    map[string]*flow // the one live code of each backend, by liveKey
	polling int
	// revoking counts the tokens that are kept to be revoked.
	revoking int
	closed   bool
	life     context.Context
	end      context.CancelFunc
	pollers  sync.WaitGroup
}

// New makes a manager.
func New(o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Codes == nil {
		o.Codes = noCodes{}
	}
	life, end := context.WithCancel(context.Background())
	return &Manager{Options: o, flows: map[string]*flow{}, live: map[string]*flow{}, life: life, end: end}
}

// noCodes remembers nothing.
type noCodes struct{}

func (noCodes) Find(string) (codes.Issued, bool, error) { return codes.Issued{}, false, nil }
func (noCodes) Put(string, codes.Issued) error          { return nil }
func (noCodes) Remove(string) error                     { return nil }

// Serve waits until ctx ends, then ends the polling and waits for it.
func (m *Manager) Serve(ctx context.Context) error {
	<-ctx.Done()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.end()
	m.pollers.Wait()
	m.revokeUnsaved()
	return nil
}

// Polling counts the codes that are being polled.
func (m *Manager) Polling() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.polling
}

// Target tells where the caller's calls go and as whom: with the token only if the backend there minted it, else with
// the install id.
func (m *Manager) Target(ctx context.Context, who caller.Caller) (backend.Target, account.Link, error) {
	address, err := m.addressOf(who)
	if err != nil {
		return backend.Target{}, account.Link{}, err
	}
	target := backend.Target{BaseURL: address, InstallID: m.InstallID, Requester: requester(who)}
	l := m.Accounts.For(address)
	if l.Linked() && address == backend.EmbeddedURL {
		// Whether this token is this embedded backend's is known only once it told its id.
		if target.BaseURL, err = m.mintedAt(ctx, address); err != nil {
			return backend.Target{}, account.Link{}, err
		}
		l = m.Accounts.For(target.BaseURL)
	}
	if l.Linked() {
		target.InstallID, target.Bearer = "", l.AuthToken.Reveal()
	}
	return target, l, nil
}

// addressOf is where the caller's calls go.
func (m *Manager) addressOf(who caller.Caller) (string, error) {
	b, err := m.Config.Current().Backend(who)
	if err != nil {
		p := &backend.Problem{Code: CodeInvalidConfig, Message: err.Error(), FixHint: "Correct the address of the backend, or unset it."}
		if setting := (*config.Error)(nil); errors.As(err, &setting) && setting.Fix != "" {
			p.FixHint = setting.Fix
		}
		return "", p
	}
	return b.URL, nil
}

// mintedAt is the name of a backend as auth.json keeps it.
func (m *Manager) mintedAt(ctx context.Context, address string) (string, error) {
	if address != backend.EmbeddedURL {
		return address, nil
	}
	id, _, err := m.Embedder.Embedded(ctx)
	return id, err
}

// Revoked notes that the backend refused a token.
func (m *Manager) Revoked(token string) { m.Accounts.MarkRevoked(token) }

// Verify asks the backend about the caller's token and gives the link with the fresh verdict. When it cannot be asked,
// only the verdict says so.
func (m *Manager) Verify(ctx context.Context, who caller.Caller) account.Link {
	target, l, err := m.Target(ctx, who)
	if err != nil {
		if address, bad := m.addressOf(who); bad == nil {
			l = m.Accounts.For(address)
		}
		l.Verified.OK, l.Verified.Err = false, err.Error()
		return l
	}
	if target.Bearer == "" {
		return l
	}
	m.verify(ctx, target)
	return m.Accounts.For(target.BaseURL)
}

// verify asks the backend about a token and keeps its word.
func (m *Manager) verify(ctx context.Context, target backend.Target) {
	_, err := m.Backend.Account(ctx, target)
	switch problem := asProblem(err); {
	case err == nil:
		m.Accounts.SetVerified(target.Bearer, account.Verdict{At: m.Now(), OK: true})
	case problem.Code == backend.CodeAuthRequired:
		m.Accounts.MarkRevoked(target.Bearer)
	default:
		m.Accounts.SetVerified(target.Bearer, account.Verdict{At: m.Now(), Err: problem.Message})
	}
}

// Ask gives the live code of the target's backend and remembers the call that needs it. Only when there is none, knock
// makes the call: the backend refuses it with a code.
func (m *Manager) Ask(ctx context.Context, target backend.Target, gated GatedCall, knock func(context.Context) error) (Code, error) {
	m.asking.Lock()
	defer m.asking.Unlock()
	m.rivalAt(ctx, target.BaseURL) // so that Code.Replaces says whether its backend still honours it
	key := liveKey(target.BaseURL)
	m.mu.Lock()
	f := m.live[key]
	if f != nil && f.usable(m.Now()) {
		f.gated = &gated
		shown := m.codeOf(f, false)
		m.mu.Unlock()
		m.remember(shown, gated)
		return shown, nil
	}
	m.mu.Unlock()
	code, err := m.refusedWith(ctx, target, knock(ctx))
	if err != nil {
		return Code{}, err
	}
	f = m.newFlow(caller.From(ctx), code, target)
	f.gated = &gated
	m.initiated(f.who)
	m.mu.Lock()
	m.live[key] = f
	expired := m.keep(f)
	shown := m.codeOf(f, true)
	m.mu.Unlock()
	m.recordExpired(expired)
	m.remember(shown, gated)
	return shown, nil
}

// refusedWith is the code that a refusal brought; where it brought none, one is asked for.
func (m *Manager) refusedWith(ctx context.Context, target backend.Target, err error) (backend.DeviceCode, error) {
	p := asProblem(err)
	switch {
	case p.Code == backend.CodeAuthRequired && p.DeviceCode != nil:
		return *p.DeviceCode, nil
	case p.Code == backend.CodeAuthRequired || err == nil:
		return m.issue(ctx, target)
	}
	return backend.DeviceCode{}, err
}

// Start issues a code of its own for a login. replace is the person's word that a live link of another account or
// backend may be replaced; without it a login at another backend is refused before it begins.
func (m *Manager) Start(ctx context.Context, who caller.Caller, replace bool) (*Attempt, error) {
	address, err := m.addressOf(who)
	if err != nil {
		return nil, err
	}
	if rival, ok := m.rivalAt(ctx, address); ok && !replace {
		return nil, conflict(rival)
	}
	target := backend.Target{BaseURL: address, Requester: requester(who)}
	m.initiated(who)
	code, err := m.issue(ctx, target)
	if err != nil {
		outcome := telemetry.OutcomeNetworkError
		if ctx.Err() != nil {
			outcome = telemetry.OutcomePollingAborted
		}
		m.completed(who, outcome)
		return nil, err
	}
	f := m.newFlow(who, code, target)
	f.exclusive, f.replace = true, replace
	m.mu.Lock()
	expired := m.keep(f)
	attempt := &Attempt{m: m, f: f, code: m.codeOf(f, true)}
	m.mu.Unlock()
	m.recordExpired(expired)
	return attempt, nil
}

func (m *Manager) issue(ctx context.Context, target backend.Target) (backend.DeviceCode, error) {
	target.Bearer, target.InstallID = "", m.InstallID
	return m.Backend.IssueDeviceCode(ctx, target, scope)
}

func (m *Manager) initiated(who caller.Caller) {
	m.Record.Record(caller.With(context.Background(), who), telemetry.LoginInitiated, nil)
}

func (m *Manager) completed(who caller.Caller, outcome string) {
	m.Record.Record(caller.With(context.Background(), who), telemetry.LoginCompleted, map[string]any{"outcome": outcome})
}

// TakeGated gives the call that asked for a code, once.
func (m *Manager) TakeGated(deviceCode string) (GatedCall, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.flows[deviceCode]
	if f == nil || f.gated == nil {
		return GatedCall{}, false
	}
	gated := *f.gated
	f.gated = nil
	return gated, true
}

// recordExpired records the end of codes that were shown and never asked for. It writes files, so m.mu is not held.
func (m *Manager) recordExpired(flows []*flow) {
	for _, f := range flows {
		m.completed(f.who, telemetry.OutcomeCodeExpired)
	}
}

// keep stores a flow and drops those nobody will ask for any more; those of them that expired are the caller's to
// record. m.mu is held.
func (m *Manager) keep(f *flow) (expired []*flow) {
	now := m.Now()
	var oldest *flow
	for code, old := range m.flows {
		if old.over(now) {
			expired = m.drop(code, old, expired)
		} else if !old.polling && (oldest == nil || old.expires.Before(oldest.expires)) {
			oldest = old
		}
	}
	if len(m.flows) >= maxFlows && oldest != nil {
		expired = m.drop(oldest.code.DeviceCode, oldest, expired)
	}
	m.flows[f.code.DeviceCode] = f
	return expired
}

// drop forgets a flow, and adds it to expired when it has no outcome yet.
func (m *Manager) drop(code string, f *flow, expired []*flow) []*flow {
	if f.finished.IsZero() { // shown, and never asked for
		f.finished = m.Now()
		expired = append(expired, f)
	}
	delete(m.flows, code)
	if key := liveKey(f.target.BaseURL); m.live[key] == f {
		delete(m.live, key)
	}
	return expired
}

// codeOf is a flow as a person needs it. m.mu is held.
func (m *Manager) codeOf(f *flow, fresh bool) Code {
	c := Code{DeviceCode: f.code, BackendURL: f.target.BaseURL, Fresh: fresh, Replaces: account.Link{State: account.NotLinked}}
	c.ExpiresIn = max(f.expires.Sub(m.Now()), 0)
	if l := m.current(); l.AccountID != "" {
		l.AuthToken = ""
		c.Replaces = l
	}
	return c
}

// liveKey makes the embedded backend one, with its id and without.
func liveKey(address string) string {
	if address == "" || strings.HasPrefix(address, backend.EmbeddedURL) {
		return backend.EmbeddedURL
	}
	return strings.TrimRight(address, "/")
}
