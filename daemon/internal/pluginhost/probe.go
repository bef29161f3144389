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

	"github.com/service-dev/service/internal/problem"
)

// Rules for detecting a process that is suspended or hangs. A slow backend does not count, because the adapter itself
// answers a probe, even during a long call.
const (
	probeEvery = 2 * time.Second // while a call or an attachment is in progress
	probeWait  = 3 * time.Second
	// idleProbes is the factor by which an idle adapter is probed less often. It is probed because the embedded backend
	// also serves pages, which the host cannot see.
	idleProbes = 8
	// probeMisses is the number of consecutive missed probes after which an adapter counts as stuck; a single miss may
	// be due to load.
	probeMisses = 2
)

// errStuck means that an adapter is running but does not respond.
var errStuck = errors.New("did not answer")

// watch probes the process until it is stuck, has ended or ctx ends. At most one probe is in progress.
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
		case time.Since(began) > 2*wait: // this process did not run either: the machine was asleep or is overloaded
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

// probe reports whether the process responds to a health check, with any status.
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

// isAtFault reports whether the adapter caused a call's failure: either the adapter is stuck, or it did not respond to
// the last probe and the call was not answered either.
func (i *instance) isAtFault(unanswered bool) bool {
	return i.isStuck() || i.silent.Load() && unanswered
}

// stuckProblem returns the problem for a call to a stuck adapter.
func stuckProblem(name string) *problem.Error {
	return &problem.Error{
		Code:      problem.CodeAdapterUnavailable,
		Message:   fmt.Sprintf("adapter %s %v and is being replaced", name, errStuck),
		Retryable: true,
		FixHint:   "Try again in a moment. `servicectl plugin list` shows the adapter.",
	}
}
