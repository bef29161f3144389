package link

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// Serve sweeps immediately: an embedded backend may run for so short a time that no interval ends.
func TestServe_SweepsAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, Settings{UnusedAfter: time.Minute})
		expired := Code{DeviceHash: "device", UserHash: "user", State: Pending, CreatedAt: time.Unix(0, 0),
			ExpiresAt: time.Now().Add(-keepExpired - time.Hour)}
		if err := s.store.InsertCode(t.Context(), expired, audit.Trace{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := s.store.Progress(t.Context(), "device"); !errors.Is(err, ErrUnknown) {
			t.Errorf("got error %v for an expired code, want it swept at the start", err)
		}
	})
}
