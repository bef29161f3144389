package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/daemon/internal/backend"
)

// Rules for detecting a process that runs but is suspended or hangs. A slow backend does not matter, because the
// adapter answers a probe itself, however long a call takes.
const (
	probeEvery = 2 * time.Second // while a call or an attachment is under way
	probeWait  = 3 * time.Second
	// idleProbes is how many times less often an idle adapter is probed. It is probed at all because the embedded
	// backend serves pages that the host does not see.
	idleProbes = 8
	// probeMisses in a row make an adapter stuck; one may be due to load.
	probeMisses = 2
)

// errStuck is the error of an adapter that runs but does not answer.
var errStuck = errors.New("did not answer")

// watch probes the process until it is stuck, has ended or ctx ends. At most one probe is under way.
func (i *instance) watch(ctx context.Context, every, wait time.Duration) {
	health := healthv1.NewHealthClient(i.conn)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	misses, skipped := 0, 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.proc.done:
			return
		case <-ticker.C:
		}
		if skipped++; i.busy.Load() == 0 && misses == 0 && skipped < idleProbes {
			continue
		}
		skipped = 0
		began := time.Now()
		answered := probe(ctx, health, wait)
		switch {
		case answered:
			misses = 0
		case time.Since(began) > 2*wait: // this process did not run either: the machine slept or is overloaded
		default:
			misses++
		}
		i.silent.Store(misses > 0)
		if misses == probeMisses {
			close(i.stuck)
			return
		}
	}
}

// probe reports whether the process answers a health check, with whatever status.
func probe(ctx context.Context, health healthv1.HealthClient, wait time.Duration) (answered bool) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_, err := health.Check(ctx, &healthv1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	return err == nil || status.Code(err) != codes.DeadlineExceeded
}

func (i *instance) isStuck() bool {
	select {
	case <-i.stuck:
		return true
	default:
		return false
	}
}

// isAtFault reports whether a call failed because of the adapter: it is stuck, or it did not answer the last probe and
// the call timed out.
func (i *instance) isAtFault(call context.Context) bool {
	return i.isStuck() || i.silent.Load() && errors.Is(call.Err(), context.DeadlineExceeded)
}

// stuckProblem returns the problem of a call to a stuck adapter.
func stuckProblem(name string) *backend.Problem {
	return &backend.Problem{
		Code:      backend.CodeAdapterUnavailable,
		Message:   fmt.Sprintf("adapter %s %v and is being replaced", name, errStuck),
		Retryable: true,
		FixHint:   "Try again in a moment. `servicectl plugin list` shows the adapter.",
	}
}
