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

// Limits for detecting a suspended or hanging process. A slow backend does not count, because the adapter itself
// responds to a probe, even during a long call.
const (
	probeEvery = 2 * time.Second // while a call or an attachment is in progress
	probeWait  = 3 * time.Second
	// idleProbes is the factor by which an idle adapter is probed less often. It is still probed, because the embedded
	// backend also serves pages, of which the host is not aware.
	idleProbes = 8
	// probeMisses is the number of consecutive missed probes after which an adapter counts as stuck. A single miss may
	// be due to load.
	probeMisses = 2
)

// errStuck is returned for an adapter that is running but does not respond.
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
		case time.Since(began) > 2*wait: // the machine was asleep or is overloaded
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

// probe reports whether the process responds to a health check, whatever the status.
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

// isAtFault reports whether the adapter caused a call's failure. This is the case if the adapter is stuck, or if
// neither the last probe nor the call was answered.
func (i *instance) isAtFault(unanswered bool) bool {
	return i.isStuck() || i.silent.Load() && unanswered
}

// stuckProblem returns the problem of a call to a stuck adapter.
func stuckProblem(name string) *problem.Error {
	return &problem.Error{
		Code:      problem.CodeAdapterUnavailable,
		Message:   fmt.Sprintf("adapter %s %v and is being replaced", name, errStuck),
		Retryable: true,
		FixHint:   "Try again in a moment. `servicectl plugin list` shows the adapter.",
	}
}
