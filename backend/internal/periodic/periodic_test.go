package periodic_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/backend/internal/periodic"
)

func TestRun_ContinuesAfterError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		var log strings.Builder
		calls := 0
		err := periodic.Run(ctx, time.Minute, slog.New(slog.NewTextHandler(&log, nil)), "sweep", func(context.Context) error {
			if calls++; calls == 2 {
				return errors.New("broken")
			}
			return nil
		})
		if err != nil || calls != 3 {
			t.Errorf("%d calls, %v", calls, err)
		}
		if text := log.String(); strings.Count(text, "failed to sweep") != 1 || !strings.Contains(text, "broken") {
			t.Errorf("log: %s", text)
		}
	})
}
