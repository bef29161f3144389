package link

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/secret"
)

// sweptStore counts sweeps.
type sweptStore struct {
	TokenStores
	sweeps int
}

func (s *sweptStore) Sweep(context.Context, time.Time, time.Time, time.Time, audit.Trace) (int64, error) {
	s.sweeps++
	return 0, nil
}

func (s *sweptStore) SweepTrail(context.Context, time.Time, int) (int64, error) { return 0, nil }

// Serve sweeps immediately: an embedded backend may run for so short a time that no interval ends.
func TestServe_SweepsAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &sweptStore{}
		s := NewService(nil, store, secret.NewHasher(make([]byte, 32)), Settings{UnusedAfter: time.Minute},
			slog.New(slog.DiscardHandler), nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil || store.sweeps != 1 {
			t.Errorf("%d sweeps, error %v; want one at the start", store.sweeps, err)
		}
	})
}
