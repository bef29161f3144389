package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
)

// Status is what a person may know of it all, for one caller.
type Status struct {
	// Allowed and DecidedBy are Gate's answer.
	Allowed   bool
	DecidedBy string
	LogFile   string
	// BackendURL is where events go; empty when there is nowhere.
	BackendURL string
	// NoticeAt is zero while the notice was not shown.
	NoticeAt time.Time
	// Waiting events take Bytes of Cap; Dropped were lost since the last upload.
	Waiting             int
	Bytes, Cap, Dropped int64
	// UploadedAt is zero before the first upload, of Uploaded events.
	UploadedAt time.Time
	Uploaded   int
	// LastError is why the last try was not taken; empty when it was.
	LastError string
	// Next is when the next try is; zero when nothing waits or nothing may be sent.
	Next time.Time
}

// Status tells what is recorded, what would be uploaded, and which switch decides it.
func (r *Recorder) Status(who caller.Caller) Status {
	s := Status{LogFile: r.log.path, NoticeAt: r.o.Memory.NoticeShownAt(), Cap: spoolCap}
	s.Allowed, s.DecidedBy = r.Gate(who)
	if own, err := r.o.Backend(caller.Caller{}); err == nil && own.Kind == config.KindRemote {
		s.BackendURL = own.URL
	}
	s.Waiting, s.Bytes = r.spool.waiting()
	counts := r.spool.tally.read()
	s.Dropped, s.Uploaded = counts.Dropped, counts.Uploaded
	if counts.UploadedAt > 0 {
		s.UploadedAt = time.UnixMilli(counts.UploadedAt)
	}
	r.upload.mu.Lock()
	defer r.upload.mu.Unlock()
	s.LastError = r.upload.last
	if open, _ := r.Gate(caller.Caller{}); open && s.Waiting > 0 {
		s.Next = r.upload.next
	}
	return s
}

// Purged is what an erasure did.
type Purged struct {
	// Local events stood in the log, Waiting ones in the spool.
	Local, Waiting int64
	// Backend is PurgeErased, PurgeNothing or PurgeFailed; Deleted events were erased there.
	Backend string
	Deleted int64
	// Err is why the backend's part failed.
	Err error
}

// The words of Purged.Backend.
const (
	PurgeErased  = "erased"
	PurgeNothing = "nothing" // there is no backend that could have any
	PurgeFailed  = "failed"
)

// Purge erases the local log, the spool, and what the daemon's own backend holds of this install. It asks the backend
// whatever the switches say: they are about what is told, and this takes back what was. The error is of this machine.
func (r *Recorder) Purge(ctx context.Context) (p Purged, err error) {
	err = r.alone(func() error {
		local, logErr := r.log.clear()
		waiting, spoolErr := r.spool.clear()
		p.Local, p.Waiting, p.Backend = local, waiting, PurgeNothing
		if own, err := r.o.Backend(caller.Caller{}); err == nil && own.Kind == config.KindEmbedded {
			return errors.Join(logErr, spoolErr)
		}
		ctx, cancel := context.WithTimeout(ctx, uploadWait)
		defer cancel()
		target, err := r.target()
		if err == nil {
			p.Deleted, err = r.o.Uploader.PurgeTelemetry(ctx, target)
		}
		if p.Backend = PurgeErased; err != nil {
			p.Backend, p.Err = PurgeFailed, err
		}
		return errors.Join(logErr, spoolErr)
	})
	return p, err
}
