package link

import (
	"context"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Limits on trail lines that do not record a change.
const (
	viewsPerMinute     = 10  // recorded views per code
	throttlesPerMinute = 100 // recorded refusals in this process
	sweepTrailEvery    = time.Hour
)

type browserKey struct{}

// WithBrowser returns a context with the browser session that View records. The value is secret; only its hash is
// stored.
func WithBrowser(ctx context.Context, session string) context.Context {
	return context.WithValue(ctx, browserKey{}, session)
}

// trace returns the trail line that a change adds.
func (s *Service) trace(ctx context.Context, action audit.TrailAction) audit.Trace {
	return audit.Trace{Action: action, At: s.now(), Address: addressOf(ctx), Ref: s.ref}
}

// viewed records that a code was shown in a browser session, once per code and session.
func (s *Service) viewed(ctx context.Context, userHash string) error {
	if s.views.Take(userHash) > 0 {
		return nil
	}
	session, _ := ctx.Value(browserKey{}).(string)
	t := s.trace(ctx, audit.TrailView)
	t.Once = "view " + userHash + " " + session
	return s.trail.AddTrail(ctx, t.Line(userHash, "", ""))
}

// Throttled records that the caller in ctx was rate limited, once per address and minute. All addresses share one limit
// for these records.
func (s *Service) Throttled(ctx context.Context) {
	address := addressOf(ctx)
	if s.throttles.Take(address) > 0 || s.throttled.Take("all") > 0 {
		return
	}
	t := s.trace(ctx, audit.TrailThrottle)
	t.Once = "throttle " + t.At.UTC().Format("2006-01-02T15:04 ") + audit.PlainAddress(address)
	if err := s.trail.AddTrail(ctx, t.Line("", "", "")); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "failed to write linking trail", "err", err)
	}
}

// Asked is a filter for the trail that contains plain values instead of hashes. Empty fields match every line.
type Asked struct {
	UserCode  string
	LinkID    string
	AccountID string
	Address   string
	Limit     int // 0 means audit.MaxTrailListed
}

// Trail lists lines of the trail, newest first. It returns ErrUnknown if Code does not have the form of a user code.
func (s *Service) Trail(ctx context.Context, a Asked) ([]audit.TrailLine, error) {
	code := ""
	if a.UserCode != "" {
		user, ok := NormalizeUserCode(a.UserCode)
		if !ok {
			return nil, ErrUnknown
		}
		code = s.userHash(user)
	}
	return s.trail.Trail(ctx, audit.TrailFilter{Code: s.ref("code", code), Link: s.ref("link", a.LinkID),
		Account: s.ref("account", a.AccountID), Address: s.ref("address", audit.PlainAddress(a.Address)), Limit: a.Limit})
}

// sweepTrail deletes old lines, at most once an hour.
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
	// Sweep early, so that no line becomes older than TrailKept before the next sweep.
	_, err := s.trail.SweepTrail(ctx, now.Add(sweepTrailEvery-audit.TrailKept), audit.TrailLines)
	return err
}
