package pluginhost

import (
	"context"
	"os"
)

// address is empty on Windows. A process cannot inherit a listener there, so the embedded backend itself listens and is
// not stopped when idle.
type address struct{}

func (*address) open(context.Context, string) ([]*os.File, error) { return nil, nil }

func (*address) wait(ctx context.Context) { <-ctx.Done() }

func (*address) port() int { return 0 }

func (*address) close() {}
