package pluginhost

import (
	"context"
	"os"
)

// address is empty on Windows: a process cannot inherit a listener, so the embedded backend listens itself and is never
// stopped while idle.
type address struct{}

func (*address) open(context.Context, string) ([]*os.File, error) { return nil, nil }

func (*address) wait(ctx context.Context) { <-ctx.Done() }

func (*address) port() int { return 0 }

func (*address) close() {}
