package link

import (
	"cmp"
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
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/telemetry"
)

// IssuedCodes stores the codes issued to this install, so that they survive a restart of the daemon.
type IssuedCodes interface {
	Find(deviceCode string) (codes.Issued, bool, error)
	Put(deviceCode string, issued codes.Issued) error
	Update(deviceCode string, change func(*codes.Issued)) error
	Remove(deviceCode string) error
}

// Options holds the components of a Manager. Codes, Log and Now may be nil. Without Codes, a code does not survive a
// restart of the daemon.
type Options struct {
	Backend   Backend
	Accounts  *account.Store
	Codes     IssuedCodes
	Config    func() *config.Config // the configuration in use
	Record    Recorder
	InstallID string
	Log       *slog.Logger
	Now       func() time.Time
}

const (
	scope = "account_full"
	// remember is how long a code's outcome is kept.
	remember = 15 * time.Minute
	// maxFlows is the maximum number of remembered codes. Above this number, the oldest code that is not being polled
	// is removed.
	maxFlows = 256
	// maxPolling is the maximum number of codes that are polled at the same time.
	maxPolling = 64
	// verifyTimeout is the time limit of Verify. maxReverify is the maximum number of its attempts, because the link
	// may be replaced while it is verified.
	verifyTimeout = 12 * time.Second
	maxReverify   = 2
)

// Manager runs every device-code flow of the daemon. Serve must be running, because it owns the polling.
type Manager struct {
	Options
	asking sync.Mutex // held while a code is issued, so that concurrent callers share the code
	saving sync.Mutex // held while deciding whether an approval may replace the link

	mu      sync.Mutex
	flows   map[string]*flow // by device code
	live    map[string]*flow // the live code of each backend, by liveKey
	polling int
	// revoking is the number of tokens kept until they are revoked.
	revoking int
	closed   bool
	life     context.Context
	end      context.CancelFunc
	pollers  sync.WaitGroup
}

// New returns a manager.
func New(o Options) *Manager {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Codes == nil {
		o.Codes = noCodes{}
	}
	life, end := context.WithCancel(context.Background())
	return &Manager{Options: o, flows: map[string]*flow{}, live: map[string]*flow{}, life: life, end: end}
}

// noCodes is an IssuedCodes that stores nothing.
type noCodes struct{}

func (noCodes) Find(string) (codes.Issued, bool, error)  { return codes.Issued{}, false, nil }
func (noCodes) Put(string, codes.Issued) error           { return nil }
func (noCodes) Update(string, func(*codes.Issued)) error { return nil }
func (noCodes) Remove(string) error                      { return nil }

// Serve ends flows that are unnecessary because another program has created a link. When ctx ends, it stops the
// polling, waits for the pollers to finish and cancels the codes of unfinished logins.
func (m *Manager) Serve(ctx context.Context) error {
	changes := m.Accounts.Watch(ctx)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-changes:
			m.supersedeAll(ctx)
		}
	}
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.end()
	m.pollers.Wait()
	m.cancelLogins()
	m.recordExpired(m.takeExpired())
	m.revokeUnsaved()
	return nil
}

// Polling returns the number of codes being polled.
func (m *Manager) Polling() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.polling
}

// Target returns the caller's backend and credential. The credential is the token if that backend issued it, and the
// install ID otherwise.
func (m *Manager) Target(ctx context.Context, who caller.Caller) (backend.Target, account.Link, error) {
	address, err := m.addressOf(who)
	if err != nil {
		return backend.Target{}, account.Link{}, err
	}
	target := backend.Target{BaseURL: address, InstallID: m.InstallID, Requester: requester(who)}
	l := m.Accounts.For(address)
	if l.Linked() && address == backend.EmbeddedURL {
		// Only the ID that the embedded backend reports shows whether it issued the token.
		if target.BaseURL, err = m.backendIDAt(ctx, address); err != nil {
			return backend.Target{}, account.Link{}, err
		}
		l = m.Accounts.For(target.BaseURL)
	}
	if l.Linked() {
		target.InstallID, target.Bearer = "", l.AuthToken.Reveal()
	}
	return target, l, nil
}

// addressOf returns the URL of the caller's backend.
func (m *Manager) addressOf(who caller.Caller) (string, error) {
	b, err := m.Config().Backend(who)
	if err != nil {
		return "", invalidAddress(err)
	}
	return b.URL, nil
}

// backendIDAt returns a backend's name as used in auth.json.
func (m *Manager) backendIDAt(ctx context.Context, address string) (string, error) {
	if address != backend.EmbeddedURL {
		return address, nil
	}
	id, _, err := m.Backend.Embedded(ctx)
	return id, err
}

// Revoked records that the backend rejected a token.
func (m *Manager) Revoked(token string) { m.Accounts.MarkRevoked(token) }

// Verify asks the backend whether it accepts the caller's token, and returns the link with the verdict. If the backend
// cannot be reached, the stored verdict is kept and only the returned link reports the failure.
func (m *Manager) Verify(ctx context.Context, who caller.Caller) account.Link {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	l := m.verifyCaller(ctx, who)
	for range maxReverify { // another program may have replaced auth.json in the meantime
		if !l.Linked() || l.Verified != (account.Verdict{}) {
			break
		}
		l = m.verifyCaller(ctx, who)
	}
	return l
}

func (m *Manager) verifyCaller(ctx context.Context, who caller.Caller) account.Link {
	target, l, err := m.Target(ctx, who)
	if err != nil {
		if address, bad := m.addressOf(who); bad == nil {
			l = m.Accounts.For(address)
		}
	} else if target.Bearer != "" {
		_, err = m.verify(ctx, target)
		l = m.Accounts.For(target.BaseURL)
	}
	if err != nil {
		l.Verified.OK, l.Verified.Err = false, err.Error()
	}
	return l
}

// verify asks the backend whether it accepts a token, and stores the verdict. It returns the token's account, and an
// error if the backend did not respond.
func (m *Manager) verify(ctx context.Context, target backend.Target) (backend.Account, error) {
	a, err := m.Backend.Account(ctx, target)
	switch {
	case err == nil:
		m.Accounts.SetVerified(target.Bearer, account.Verdict{At: m.Now(), OK: true})
	case asProblem(err).Code == problem.CodeAuthRequired:
		m.Accounts.MarkRevoked(target.Bearer)
	default:
		return backend.Account{}, err
	}
	return a, nil
}

// Ask returns the live code of the target's backend and stores the call that needs the code. If there is no code, Ask
// calls probe, and the backend's refusal contains a code.
func (m *Manager) Ask(ctx context.Context, target backend.Target, gated GatedCall,
	probe func(context.Context) error) (Code, error) {
	m.asking.Lock()
	defer m.asking.Unlock()
	m.conflictingLinkAt(ctx, target.BaseURL) // so that Code.Replaces is up to date
	key := liveKey(target.BaseURL)
	m.mu.Lock()
	f := m.live[key]
	if f != nil && f.isUsable(m.Now()) {
		f.gated = &gated
		shown := m.codeOf(f)
		m.mu.Unlock()
		m.remember(shown, gated)
		return shown, nil
	}
	m.mu.Unlock()
	code, err := m.refusedWith(ctx, target, probe(ctx))
	if err != nil {
		return Code{}, err
	}
	f = m.newFlow(caller.From(ctx), code, target)
	f.gated = &gated
	m.initiated(f.who)
	m.mu.Lock()
	m.live[key] = f
	expired := m.keep(f)
	shown := m.codeOf(f)
	m.mu.Unlock()
	m.recordExpired(expired)
	m.remember(shown, gated)
	return shown, nil
}

// refusedWith returns the code in the refusal err, or requests one if err contains none.
func (m *Manager) refusedWith(ctx context.Context, target backend.Target, err error) (backend.DeviceCode, error) {
	var refused *backend.AuthRequired
	switch {
	case errors.As(err, &refused):
		return refused.DeviceCode, nil
	case problem.CodeOf(err) == problem.CodeAuthRequired || err == nil:
		return m.issue(ctx, target)
	}
	return backend.DeviceCode{}, err
}

// Start issues a code for a login. If replace is set, the user allows the login to replace a live link to another
// account or backend. Otherwise, a login at another backend is refused immediately.
func (m *Manager) Start(ctx context.Context, who caller.Caller, replace bool) (*Attempt, error) {
	address, err := m.addressOf(who)
	if err != nil {
		return nil, err
	}
	if other, ok := m.conflictingLinkAt(ctx, address); ok && !replace {
		return nil, conflict(other)
	}
	target := backend.Target{BaseURL: address, Requester: requester(who)}
	m.initiated(who)
	code, err := m.issue(ctx, target)
	if err != nil {
		outcome := telemetry.OutcomeNetworkError
		if ctx.Err() != nil {
			outcome = telemetry.OutcomePollingAborted
		}
		m.record(who, telemetry.LoginCompleted, map[string]any{"outcome": outcome})
		return nil, err
	}
	f := m.newFlow(who, code, target)
	f.exclusive, f.replace = true, replace
	m.mu.Lock()
	expired := m.keep(f)
	attempt := &Attempt{m: m, f: f, code: m.codeOf(f)}
	m.mu.Unlock()
	m.recordExpired(expired)
	return attempt, nil
}

func (m *Manager) issue(ctx context.Context, target backend.Target) (backend.DeviceCode, error) {
	target.Bearer, target.InstallID = "", m.InstallID
	return m.Backend.IssueDeviceCode(ctx, target, scope)
}

// TakeGated returns the call that needed a code, and removes it.
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

// keep stores a flow and removes flows that are over. The caller holds m.mu and must record the returned flows
// as expired.
func (m *Manager) keep(f *flow) (expired []*flow) {
	now := m.Now()
	var oldest *flow
	for code, old := range m.flows {
		if old.isOver(now) {
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

// drop removes a flow, and appends it to expired if it has no outcome yet.
func (m *Manager) drop(code string, f *flow, expired []*flow) []*flow {
	if f.finished.IsZero() { // the user saw the code, but no call waited for its outcome
		f.finished = m.Now()
		expired = append(expired, f)
	}
	delete(m.flows, code)
	if key := liveKey(f.target.BaseURL); m.live[key] == f {
		delete(m.live, key)
	}
	return expired
}

// codeOf returns a flow's code in the form shown to the user. The caller holds m.mu.
func (m *Manager) codeOf(f *flow) Code {
	c := Code{DeviceCode: f.code, BackendURL: f.target.BaseURL,
		Replaces: account.Link{State: account.NotLinked}}
	c.ExpiresIn = max(f.expires.Sub(m.Now()), 0)
	if l := m.current(); l.AccountID != "" {
		l.AuthToken = ""
		c.Replaces = l
	}
	return c
}

// liveKey returns the key of a backend. The embedded backend has the same key with and without its ID.
func liveKey(address string) string {
	if address == "" || strings.HasPrefix(address, backend.EmbeddedURL) {
		return backend.EmbeddedURL
	}
	return strings.TrimRight(address, "/")
}
