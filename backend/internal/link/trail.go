package link

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Bounds of what the trail writes down unasked.
const (
	viewsPerMinute     = 10  // lines of views of one code
	throttlesPerMinute = 100 // lines of refused callers, in this process
	sweepTrailEvery    = time.Hour
)

// TrailStore keeps the operator's trail of linking.
type TrailStore interface {
	// AddTrail writes a line of its own; one with that id is left alone.
	AddTrail(ctx context.Context, l audit.TrailLine) error
	// Trail lists lines, newest first.
	Trail(ctx context.Context, f audit.TrailFilter) ([]audit.TrailLine, error)
	// SweepTrail drops lines from before old, and of audit.AnybodysTrail the oldest beyond keep; it counts them.
	SweepTrail(ctx context.Context, old time.Time, keep int) (int64, error)
}

type browserKey struct{}

// WithBrowser notes in ctx which browser session looks, for View. It is a secret and hashed on the way.
func WithBrowser(ctx context.Context, session string) context.Context {
	return context.WithValue(ctx, browserKey{}, session)
}

// trace is the line that a change leaves.
func (s *Service) trace(ctx context.Context, action audit.TrailAction) audit.Trace {
	return audit.Trace{Action: action, At: s.now(), Address: addressOf(ctx), Ref: s.ref}
}

// viewed writes that a browser session was shown a code, once for both.
func (s *Service) viewed(ctx context.Context, userHash string) error {
	if s.views.Take(userHash) > 0 {
		return nil
	}
	session, _ := ctx.Value(browserKey{}).(string)
	t := s.trace(ctx, audit.TrailView)
	t.Once = "view " + userHash + " " + session
	return s.tokens.AddTrail(ctx, t.Line(userHash, "", ""))
}

// Throttled writes that the caller noted in ctx was refused for asking too often: once an address and minute, and so
// many of all addresses that nobody fills the trail with it.
func (s *Service) Throttled(ctx context.Context) {
	address := addressOf(ctx)
	if s.throttles.Take(address) > 0 || s.throttled.Take("all") > 0 {
		return
	}
	t := s.trace(ctx, audit.TrailThrottle)
	t.Once = "throttle " + t.At.UTC().Format("2006-01-02T15:04 ") + audit.PlainAddress(address)
	if err := s.tokens.AddTrail(ctx, t.Line("", "", "")); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "writing the link trail", "err", err)
	}
}

// Asked is whom or what an operator asks the trail about, in clear; empty fields narrow nothing.
type Asked struct {
	UserCode  string
	LinkID    string
	AccountID string
	Address   string
	Limit     int // 0: audit.MaxTrailListed
}

// Trail reads the trail by what the operator knows, newest first. ErrUnknown when the code is no user code.
func (s *Service) Trail(ctx context.Context, a Asked) ([]audit.TrailLine, error) {
	code := ""
	if a.UserCode != "" {
		user, ok := NormalizeUserCode(a.UserCode)
		if !ok {
			return nil, ErrUnknown
		}
		code = s.userHash(user)
	}
	return s.tokens.Trail(ctx, audit.TrailFilter{Code: s.ref("code", code), Link: s.ref("link", a.LinkID),
		Account: s.ref("account", a.AccountID), Address: s.ref("address", audit.PlainAddress(a.Address)), Limit: a.Limit})
}

// sweepTrail drops what is over, once an hour.
func (s *Service) sweepTrail(ctx context.Context, now time.Time) error {
	s.mu.Lock()
	due := now.Sub(s.trailSwept) >= sweepTrailEvery
	if due {
		s.trailSwept = now
	}
	s.mu.Unlock()
	if !due {
		return nil
	}
	// What is left does not become older than TrailKept until the next sweep.
	_, err := s.tokens.SweepTrail(ctx, now.Add(sweepTrailEvery-audit.TrailKept), audit.TrailLines)
	return err
}
