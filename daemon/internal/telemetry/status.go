package telemetry

import (
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
)

// Status is the state of telemetry for one caller.
type Status struct {
	// Allowed and DecidedBy are the results of Gate.
	Allowed   bool
	DecidedBy string
	LogFile   string
	// BackendURL receives the events; empty if there is none.
	BackendURL string
	// NoticeAt is when the notice was first shown; zero if it was not shown yet.
	NoticeAt time.Time
	// Waiting is the number of spooled events. They use Bytes of Cap. Dropped is the number of events lost since the
	// last upload.
	Waiting             int
	Bytes, Cap, Dropped int64
	// UploadedAt is the time of the last upload, and Uploaded the number of its events. Both are zero before the first
	// upload.
	UploadedAt time.Time
	Uploaded   int
	// LastError is the reason why the latest upload failed, or why the spool could not be read or deleted; empty if
	// there was no failure.
	LastError string
	// Next is the time of the next upload; zero if the spool is empty or uploads are not allowed.
	Next time.Time
}

// Status returns the state of telemetry for a caller: the recorded events, the events to upload, and the switch that
// decides.
func (r *Recorder) Status(who caller.Caller) Status {
	s := Status{LogFile: r.log.path, NoticeAt: r.toldAt(), Cap: spoolCap}
	s.Allowed, s.DecidedBy = r.Gate(who)
	if own, err := r.o.Backend(caller.Caller{}); err == nil && own.Kind == config.KindRemote {
		s.BackendURL = own.URL
	}
	s.Waiting, s.Bytes = r.spool.waiting()
	counts := r.spool.counterFile.read()
	s.Dropped, s.Uploaded = counts.Dropped, counts.Uploaded
	if counts.UploadedAt > 0 {
		s.UploadedAt = time.UnixMilli(counts.UploadedAt)
	}
	r.upload.mu.Lock()
	defer r.upload.mu.Unlock()
	if s.LastError = r.upload.last; s.LastError == "" {
		s.LastError = r.upload.spoolProblem
	}
	if open, _ := r.Gate(caller.Caller{}); open && s.Waiting > 0 {
		s.Next = r.upload.next
	}
	return s
}
