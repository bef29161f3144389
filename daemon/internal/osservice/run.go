package osservice

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/service-dev/service/internal/supervised"
)

// Run runs f, the daemon, until it returns. managed reports whether a service manager started the process. f's context
// ends on the same signals as the context of WithSignals.
func Run(ctx context.Context, managed bool, f func(context.Context) error) error {
	if managed {
		leaveConsole()
	}
	ctx, stop := WithSignals(ctx)
	defer stop()
	return supervised.Run(ctx, Name, f)
}

// WithSignals returns a context that ends on SIGINT or SIGTERM, the signals that service managers send. A second
// signal ends the process immediately.
func WithSignals(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
