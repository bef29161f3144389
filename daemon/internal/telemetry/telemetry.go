// Package telemetry records events about the use of the service: those of proto/telemetry and no others, always in a
// local log that the person can read, and in a spool until they are uploaded where the person's switches allow that.
// It hands out the first-run notice, before which nothing is uploaded. The package knows no
// account and no transport; how a batch reaches the backend is its Uploader's business.
package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/telemetry"
)

// Consents reads the person's decision.
type Consents interface {
	Get() (consent.State, error)
}

// Memory is what the install remembers.
type Memory interface {
	// NoticeShownAt is the zero time until the first-run notice was shown.
	NoticeShownAt() time.Time
	SetNoticeShownAt(time.Time) error
	// LastVersion is the version that ran last; empty when none said so.
	LastVersion() string
	SetLastVersion(string) error
}

// Uploader reaches the backend. Errors are *backend.Problem, or the context's.
type Uploader interface {
	UploadTelemetry(ctx context.Context, t backend.Target, batch []byte) (backend.TelemetryReceipt, error)
	PurgeTelemetry(ctx context.Context, t backend.Target) (deleted int64, err error)
}

// Options are the parts of a Recorder. All are required but Now and Jitter.
type Options struct {
	// Dir is the state directory.
	Dir       string
	InstallID string
	// Version is the build version that events carry.
	Version  string
	Consents Consents
	Memory   Memory
	// Backend resolves where a caller's calls go; that of the zero Caller is the daemon's own, which events go to.
	Backend  func(caller.Caller) (config.Backend, error)
	Uploader Uploader
	Log      *slog.Logger
	Now      func() time.Time
	// Jitter draws from [0, 1).
	Jitter func() float64
}

// warnEvery is how often the log tells of events that cannot be written.
const warnEvery = time.Minute

// Recorder writes events down and uploads them. It is safe for concurrent use.
type Recorder struct {
	o     Options
	log   *journal
	spool *spool
	// full has a signal when a batch is complete.
	full chan struct{}

	starting  atomic.Bool // nobody called since the daemon began
	unwritten *ratelog.Logger
	notice    notice
	upload    upload
}

// New makes the recorder of one state directory. It writes nothing.
func New(o Options) *Recorder {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	files := newArea(filepath.Join(o.Dir, Dir))
	return &Recorder{o: o, log: newJournal(files), spool: newSpool(files), full: make(chan struct{}, 1), unwritten: ratelog.New(o.Log, warnEvery, o.Now)}
}

// Record writes an event to the local log, and to the spool where the caller's switches leave open that it is uploaded.
// Fields that are not of the list are left out, and words are cut down to what the list allows. What cannot be written
// is reported to the daemon's log and nowhere else: telemetry never disturbs the work.
func (r *Recorder) Record(ctx context.Context, name string, fields map[string]any) {
	who := caller.From(ctx)
	if r.starting.CompareAndSwap(true, false) {
		r.install(who)
	}
	r.tell(who, name, fields)
}

// tell writes an event down under the switches of who. One that cannot be written is one warning, or one more in the
// count of the next: a full disk must not fill the daemon's log as well.
func (r *Recorder) tell(who caller.Caller, name string, fields map[string]any) {
	line, err := r.format(name, fields)
	if err != nil {
		r.o.Log.Error("failed to make an event", "event", name, "err", err)
		return
	}
	if err := errors.Join(r.log.add(line), r.keep(who, line)); err != nil {
		r.unwritten.Warn("failed to write an event", "event", name, "err", err)
	}
}

// format makes an event's line; an event that is not on the list is an error.
func (r *Recorder) format(name string, fields map[string]any) (line []byte, err error) {
	d, known := telemetry.Of(name)
	if !known {
		return nil, errors.New("it is not on the list")
	}
	id, err := uuid.NewV7()
	if err == nil {
		line, err = json.Marshal(telemetry.Event{
			ID: id.String(), At: r.o.Now().UTC().Format(telemetry.AtLayout), Name: name, Fields: r.pick(d, fields),
		})
	}
	return append(line, '\n'), err
}

// keep spools an event of a caller unless it will never be uploaded.
func (r *Recorder) keep(who caller.Caller, line []byte) error {
	allowed, by, own := r.gate(who)
	if !allowed && by != ByNotice {
		return nil
	}
	full, err := r.spool.add(own.URL, line)
	if full {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
	return err
}

// pick takes the fields of the list and adds those that the recorder itself knows.
func (r *Recorder) pick(d telemetry.Description, fields map[string]any) map[string]json.RawMessage {
	own := map[string]any{"version": r.o.Version, "os": runtime.GOOS, "arch": runtime.GOARCH}
	kept := make(map[string]json.RawMessage, len(d.Fields))
	for _, f := range d.Fields {
		value, ok := fields[f.Name]
		if !ok {
			value = own[f.Name]
		}
		if data, ok := encode(f, value); ok {
			kept[f.Name] = data
		}
	}
	return kept
}

// Started is called at the start of a daemon. When it is the first one, or the first in a newer version, the next event is
// preceded by one that says so: nobody called for a start, so the switches of the first caller decide about it.
func (r *Recorder) Started() { r.starting.Store(true) }

func (r *Recorder) install(who caller.Caller) {
	last := r.o.Memory.LastVersion()
	if last == r.o.Version {
		return
	}
	switch order, ordered := buildinfo.Compare(last, r.o.Version); {
	case last == "":
		r.tell(who, telemetry.InstallStarted, nil)
	case !ordered || order < 0: // neither another build of the same version nor a step back
		r.tell(who, telemetry.InstallUpdated, map[string]any{"previous": last})
	}
	if err := r.o.Memory.SetLastVersion(r.o.Version); err != nil {
		r.o.Log.Warn("remembering the version that runs", "err", err)
	}
}
