package gateway

import (
	"context"
	"errors"
	"maps"

	"github.com/service-dev/service/backend/internal/credit"
)

// keep registers a call for renew and cutRevoked. forget removes it.
func (s *Service) keep(c *call, cut context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cuts[c] = cut
}

func (s *Service) forget(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cuts, c)
}

func (s *Service) kept() map[*call]context.CancelCauseFunc {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.cuts)
}

func (s *Service) keeps(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cuts[c] != nil
}

// renew extends the leases of the holds. It cuts off calls whose hold has ended.
func (s *Service) renew(ctx context.Context) error {
	for c, cut := range s.kept() {
		if c.hold == "" {
			continue
		}
		err := s.Purse.Renew(ctx, c.hold)
		if err == nil || ctx.Err() != nil || !s.keeps(c) { // the call was settled in the meantime
			continue
		}
		s.Log.ErrorContext(ctx, "failed to renew hold of call", "err", err)
		if errors.Is(err, credit.ErrHoldEnded) || errors.Is(err, credit.ErrNoHold) {
			cut(errUncovered)
		}
	}
	return nil
}
