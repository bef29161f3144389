package telemetry

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/internal/problem"
)

// Purged is the outcome of a purge.
type Purged struct {
	// Local, Waiting and Deleted are the numbers of events erased from the log, from the spool and at
	// backends.
	Local, Waiting, Deleted int64
	// Backend is PurgeErased, PurgeNothing or PurgeFailed.
	Backend string
	// Err contains the reason for each backend that failed to erase events.
	Err error
}

// Values of Purged.Backend.
const (
	PurgeErased  = "erased"
	PurgeNothing = "nothing" // no backend has received events since the last erasure, and none is configured
	PurgeFailed  = "failed"
)

// Purge erases the local log, the spool, and this install's events at the daemon's own backend and at every backend
// that has received events. It ignores the switches, because it withdraws what was sent. It records a backend that
// cannot be reached for the next purge. The error covers only this machine.
func (r *Recorder) Purge(ctx context.Context) (p Purged, err error) {
	err = r.withLock(func() error {
		local, logErr := r.log.clear()
		waiting, spoolErr := r.spool.clear()
		if spoolErr == nil {
			r.upload.settle(true)
		}
		p.Local, p.Waiting, p.Backend = local, waiting, PurgeNothing
		urls := r.spool.counterFile.read().Holders
		own, ownErr := r.o.Backend(caller.Caller{})
		if ownErr == nil && own.Kind == config.KindRemote && !slices.Contains(urls, own.URL) {
			urls = append(urls, own.URL)
		}
		erased, deleted, failed := r.eraseAtBackends(ctx, urls)
		if len(urls) > 0 {
			p.Backend, p.Deleted = PurgeErased, deleted
		}
		if failed == nil {
			failed = ownErr
		}
		if failed != nil {
			p.Backend, p.Err = PurgeFailed, failed
		}
		return errors.Join(logErr, spoolErr, r.spool.erased(erased))
	})
	return p, err
}

// eraseAtBackends asks backends in parallel to erase this install's events. err contains the reason for each backend
// that failed.
func (r *Recorder) eraseAtBackends(ctx context.Context, urls []string) (erased []string, deleted int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, uploadWait)
	defer cancel()
	counts, errs := make([]int64, len(urls)), make([]error, len(urls))
	var all sync.WaitGroup
	for i, url := range urls {
		all.Go(func() {
			counts[i], errs[i] = r.o.Uploader.PurgeTelemetry(ctx, backend.Target{BaseURL: url, InstallID: r.o.InstallID})
		})
	}
	all.Wait()
	var failed *problem.Error
	for i, url := range urls {
		if errs[i] == nil {
			erased, deleted = append(erased, url), deleted+counts[i]
			continue
		}
		if failed == nil {
			failed = &problem.Error{Code: problem.CodeBackendUnreachable, Retryable: true,
				FixHint: "The next purge asks each of them again."}
		}
		failed.Message = joined(failed.Message, url+": "+errs[i].Error())
	}
	if failed == nil {
		return erased, deleted, nil
	}
	return erased, deleted, failed
}

func joined(all, next string) string {
	if all == "" {
		return next
	}
	return all + "; " + next
}
