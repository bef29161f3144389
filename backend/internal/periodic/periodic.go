// Package periodic runs maintenance tasks at intervals.
package periodic

import (
	"context"
	"log/slog"
	"time"
)

// Run calls f immediately and then at every interval until ctx ends, and returns nil. If f fails, Run logs "failed to"
// followed by what, for example "failed to sweep links". log may be nil.
func Run(
	ctx context.Context, interval time.Duration, log *slog.Logger, what string, f func(context.Context) error,
) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := f(ctx); err != nil && ctx.Err() == nil && log != nil {
			log.ErrorContext(ctx, "failed to "+what, "err", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
