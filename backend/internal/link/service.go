package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/periodic"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// Settings are the operator's settings for links.
type Settings struct {
	CodeTTL      time.Duration // lifetime of a code, default 10 min
	PollInterval time.Duration // minimum time between two polls, default 5 s
	Grace        time.Duration // how long after CodeTTL a code approved in time can still be redeemed, default 30 s
	UnusedAfter  time.Duration // how long after its code was polled again an unused token is revoked, default 60 s
}

// Limits and tolerances of polling.
const (
	intervalStep = 5 * time.Second
	intervalCap  = 60 * time.Second
	// A poll may be early by jitter plus a quarter of the interval before it is refused as too fast. jitter covers
	// network delays, and the quarter covers a client clock that is up to 30 % fast. The quarter grows with the
	// interval, so that a client with such a clock is not slowed down further if it follows every raise.
	jitter     = 500 * time.Millisecond
	clockShare = 4
	// keepExpired is how long polls of an expired code are answered with "expired" instead of "unknown".
	keepExpired = 24 * time.Hour
	// maxPaced limits the number of devices whose last poll is kept in memory.
	maxPaced = 20_000
)

// Service runs the state machine. Set its functions before use; each may be nil.
type Service struct {
	// Made is called with each new link, after it is stored and before its token is returned. It must not block.
	Made func(l Link)
	// Revoked is called after this process revoked a link, or all links of an account if linkID is empty. Connections
	// opened with the links can then be closed immediately instead of at their next check.
	Revoked func(accountID, linkID string)

	store *Store
	trail *audit.Store
	hash  secret.Hasher
	ref   audit.TrailRef
	set   Settings
	log   *slog.Logger
	now   func() time.Time
	draw  func() string // a new user code

	views     *limit.Limiter // limit per code
	throttles *limit.Limiter // limit per address
	throttled *limit.Limiter // limit for all addresses together

	mu         sync.Mutex
	polls      map[string]time.Time // device hash -> time of the last poll
	trailSwept time.Time
}

// Options configure a Service.
type Options struct {
	Store    *Store
	Hasher   secret.Hasher
	Settings Settings
	Log      *slog.Logger
	Now      func() time.Time // defaults to time.Now
}

// New returns a service.
func New(o Options) *Service {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return &Service{store: o.Store, trail: audit.NewStore(o.Store.DB), hash: o.Hasher,
		ref: audit.NewTrailRef(o.Hasher.Hash), set: o.Settings, log: o.Log, now: now, draw: newUserCode,
		views: limit.New(viewsPerMinute, now), throttles: limit.New(1, now), throttled: limit.New(throttlesPerMinute, now),
		polls: map[string]time.Time{}}
}

// PendingCodes counts the codes that can still be approved, and the approved codes that are not yet redeemed.
func (s *Service) PendingCodes(ctx context.Context) (int, error) {
	return s.store.PendingCodes(ctx, s.now())
}

// Start issues a device code to the requester.
func (s *Service) Start(ctx context.Context, who Requester) (Issued, error) {
	now := s.now()
	device := secret.New(credential.DeviceCode)
	trace := s.trace(WithAddress(ctx, who.IP), audit.TrailIssue)
	for range 5 {
		user := s.draw()
		err := s.store.InsertCode(ctx, Code{
			DeviceHash: s.hash.Hash("device_code", device), UserHash: s.userHash(user), State: Pending, Requester: who,
			CreatedAt: now, ExpiresAt: now.Add(s.set.CodeTTL), Interval: s.set.PollInterval,
		}, trace)
		switch {
		case err == nil:
			return Issued{DeviceCode: device, UserCode: user, ExpiresIn: s.set.CodeTTL, PollInterval: s.set.PollInterval}, nil
		case !errors.Is(err, ErrDuplicate):
			return Issued{}, err
		}
	}
	return Issued{}, errors.New("create user code: every generated code is in use")
}

// Poll reports whether a code is pending, and returns its token exactly once. It returns ErrUnknown, ErrExpired or
// ErrDenied for a code that yields no token.
func (s *Service) Poll(ctx context.Context, deviceCode string) (Poll, error) {
	if !secret.Valid(credential.DeviceCode, deviceCode) {
		return Poll{}, ErrUnknown
	}
	hash := s.hash.Hash("device_code", deviceCode)
	code, err := s.store.Progress(ctx, hash)
	if err != nil {
		return Poll{}, err
	}
	now := s.now()
	switch code.State {
	case Pending:
		if !now.Before(code.ExpiresAt) {
			return Poll{}, ErrExpired
		}
		interval, err := s.pace(ctx, hash, code.Interval, now)
		return Poll{Interval: interval}, err
	case Approved:
		return s.redeem(ctx, hash, code.ExpiresAt, now)
	case Denied:
		return Poll{}, ErrDenied
	default:
		return Poll{}, s.repolled(ctx, hash, now)
	}
}

func (s *Service) redeem(ctx context.Context, hash string, expires, now time.Time) (Poll, error) {
	if now.After(expires.Add(s.set.Grace)) {
		return Poll{}, ErrExpired
	}
	token := secret.New(credential.Token)
	link := Link{ID: uuid.NewString(), TokenHash: s.hash.Hash("token", token),
		LinkedAt: now.UTC().Truncate(time.Millisecond)}
	link, err := s.store.Redeem(ctx, hash, now.Add(-s.set.Grace), link, s.trace(ctx, audit.TrailRedeem))
	if errors.Is(err, ErrUnknown) {
		return Poll{}, s.lostRedemption(ctx, hash, now)
	}
	if err != nil {
		return Poll{}, err
	}
	s.forget(hash)
	s.log.InfoContext(ctx, "link created", "account", link.AccountID, "link", link.ID)
	if s.Made != nil {
		s.Made(link) // call this even if the caller has disconnected, so that the account holder is informed
	}
	return Poll{Token: &Token{AuthToken: token, Principal: Principal{
		AccountID: link.AccountID, LinkID: link.ID, Tier: TierFreeAccount, LinkedAt: link.LinkedAt,
	}}}, nil
}

// lostRedemption returns the reason why an approved code could not be redeemed: another poll redeemed it first, or the
// account is no longer active.
func (s *Service) lostRedemption(ctx context.Context, hash string, now time.Time) error {
	code, err := s.store.Progress(ctx, hash)
	if err != nil {
		return err
	}
	if code.State == Redeemed {
		return s.repolled(ctx, hash, now)
	}
	return ErrDenied
}

func (s *Service) repolled(ctx context.Context, hash string, now time.Time) error {
	if err := s.store.MarkRepolled(ctx, hash, now); err != nil {
		return err
	}
	return ErrUnknown
}

// pace raises the interval of a code that is polled too fast, as RFC 8628 does with slow_down. The time of the last
// poll is kept only in memory, so that polling a pending code only reads one row. The raised interval is stored.
func (s *Service) pace(ctx context.Context, hash string, interval time.Duration, now time.Time) (time.Duration, error) {
	s.mu.Lock()
	last, polled := s.polls[hash]
	if len(s.polls) >= maxPaced {
		clear(s.polls)
	}
	s.polls[hash] = now
	s.mu.Unlock()
	if !polled || now.Sub(last) >= interval-interval/clockShare-jitter || interval >= intervalCap {
		return interval, nil
	}
	raised := min(interval+intervalStep, intervalCap)
	return raised, s.store.RaiseInterval(ctx, hash, raised)
}

func (s *Service) forget(hash string) {
	s.mu.Lock()
	delete(s.polls, hash)
	s.mu.Unlock()
}

// View returns a pending code for the activation page. It returns ErrUnknown for an unknown code, ErrDenied for a code
// that was denied or cancelled, ErrExpired for an expired code, and ErrNotPending for an approved code.
func (s *Service) View(ctx context.Context, userCode string) (Code, error) {
	user, ok := NormalizeUserCode(userCode)
	if !ok {
		return Code{}, ErrUnknown
	}
	code, err := s.store.CodeByUser(ctx, s.userHash(user))
	if err != nil {
		return Code{}, err
	}
	switch {
	case code.State == Denied:
		return Code{}, ErrDenied
	case code.State != Pending:
		return Code{}, ErrNotPending
	case !s.now().Before(code.ExpiresAt):
		return Code{}, ErrExpired
	}
	return code, s.viewed(ctx, code.UserHash)
}

// Approve approves a code for the account. It returns ErrNotPending if the code can no longer be approved.
func (s *Service) Approve(ctx context.Context, userCode, accountID string) error {
	return s.decide(ctx, userCode, Approved, accountID)
}

// Deny denies a code. It requires no account. It returns ErrNotPending if the code can no longer be denied.
func (s *Service) Deny(ctx context.Context, userCode string) error {
	return s.decide(ctx, userCode, Denied, "")
}

func (s *Service) decide(ctx context.Context, userCode string, to State, accountID string) error {
	user, ok := NormalizeUserCode(userCode)
	if !ok {
		return ErrUnknown
	}
	action := audit.TrailApprove
	if to == Denied {
		action = audit.TrailDeny
	}
	moved, err := s.store.Decide(ctx, s.userHash(user), to, accountID, s.now(), s.trace(ctx, action))
	if err != nil {
		return err
	}
	if !moved {
		return ErrNotPending
	}
	s.log.InfoContext(ctx, "device code decided", "decision", string(to), "account", accountID)
	return nil
}

// Cancel ends a code that its client will no longer poll. The code can then not be approved, and a token that the
// client never received is revoked. Cancelling a code again succeeds. Cancel returns ErrUnknown if the code is unknown
// or its token is in use.
func (s *Service) Cancel(ctx context.Context, deviceCode string) error {
	if !secret.Valid(credential.DeviceCode, deviceCode) {
		return ErrUnknown
	}
	hash := s.hash.Hash("device_code", deviceCode)
	s.forget(hash)
	return s.store.Cancel(ctx, hash, s.now(), s.trace(ctx, audit.TrailCancel))
}

// Authenticate returns the owner of a bearer token, or ErrUnknown, ErrRevoked or ErrTokenExpired. It treats a token of
// a suspended account as revoked.
func (s *Service) Authenticate(ctx context.Context, token string) (Principal, error) {
	if !secret.Valid(credential.Token, token) {
		return Principal{}, ErrUnknown
	}
	link, err := s.store.LinkByToken(ctx, s.hash.Hash("token", token))
	if err != nil {
		return Principal{}, err
	}
	now := s.now()
	switch {
	case !link.RevokedAt.IsZero() || !link.Active:
		return Principal{}, ErrRevoked
	case !link.ExpiresAt.IsZero() && now.After(link.ExpiresAt):
		return Principal{}, ErrTokenExpired
	}
	if now.Sub(link.LastUsedAt) >= touchEvery {
		if err := s.store.MarkUsed(ctx, link.ID, addressOf(ctx), now); err != nil {
			return Principal{}, err
		}
	}
	return Principal{AccountID: link.AccountID, LinkID: link.ID, Tier: TierFreeAccount, LinkedAt: link.LinkedAt,
		ExpiresAt: link.ExpiresAt}, nil
}

// Serve runs Sweep, immediately and then periodically, until ctx ends.
func (s *Service) Serve(ctx context.Context) error {
	return periodic.Run(ctx, max(s.set.UnusedAfter/6, time.Second), s.log, "sweep links", s.Sweep)
}

// Sweep revokes tokens that were never received, and deletes codes that expired long ago and old lines of the linking
// trail.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.now()
	revoked, err := s.store.Sweep(ctx, now, now.Add(-s.set.UnusedAfter), now.Add(-keepExpired),
		s.trace(ctx, audit.TrailRevoke))
	if err != nil {
		return err
	}
	if revoked > 0 {
		s.log.InfoContext(ctx, "revoked tokens that no client received", "count", revoked)
	}
	if err := s.sweepTrail(ctx, now); err != nil {
		return fmt.Errorf("sweep link trail: %w", err)
	}
	return nil
}

func (s *Service) userHash(user string) string { return s.hash.Hash("user_code", user) }
