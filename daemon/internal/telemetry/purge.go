package telemetry

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
)

// Purged is what an erasure did.
type Purged struct {
	// Local events stood in the log, Waiting ones in the spool.
	Local, Waiting int64
	// Backend is PurgeErased, PurgeNothing or PurgeFailed; Deleted events were erased at backends.
	Backend string
	Deleted int64
	// Err is why the backends' part failed; it names each backend that still has its events.
	Err error
}

// The words of Purged.Backend.
const (
	PurgeErased  = "erased"
	PurgeNothing = "nothing" // no backend was ever sent any since the last erasure, and there is none now
	PurgeFailed  = "failed"
)

// Purge erases the local log, the spool, and what backends hold of this install: the daemon's own, and each that events
// were sent to before. It asks them whatever the switches say: they are about what is told, and this takes back what
// was. A backend that could not be asked is remembered for the next time. The error is of this machine.
func (r *Recorder) Purge(ctx context.Context) (p Purged, err error) {
	err = r.alone(func() error {
		local, logErr := r.log.clear()
		waiting, spoolErr := r.spool.clear()
		if spoolErr == nil {
			r.upload.settle(true)
		}
		p.Local, p.Waiting, p.Backend = local, waiting, PurgeNothing
		urls := r.spool.tally.read().Holders
		own, ownErr := r.o.Backend(caller.Caller{})
		if ownErr == nil && own.Kind == config.KindRemote && !slices.Contains(urls, own.URL) {
			urls = append(urls, own.URL)
		}
		erased, deleted, failed := r.eraseAt(ctx, urls)
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

// eraseAt asks backends, all at once, to erase what they hold of this install. err names each that did not.
func (r *Recorder) eraseAt(ctx context.Context, urls []string) (erased []string, deleted int64, err error) {
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
	var problem *backend.Problem
	for i, url := range urls {
		if errs[i] == nil {
			erased, deleted = append(erased, url), deleted+counts[i]
			continue
		}
		if problem == nil {
			problem = &backend.Problem{Code: backend.CodeUnreachable, Retryable: true, FixHint: "Each is remembered and asked again by the next purge."}
		}
		problem.Message = joined(problem.Message, url+": "+errs[i].Error())
	}
	if problem == nil {
		return erased, deleted, nil
	}
	return erased, deleted, problem
}

func joined(all, next string) string {
	if all == "" {
		return next
	}
	return all + "; " + next
}
