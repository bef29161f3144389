// Package telemetry records events about the use of the service. It records only events declared in proto/telemetry.
// They are always written to a local log that the user can read and, if the user's switches allow it, to a spool until
// they are uploaded. The package also issues the first-run notice, before which it uploads no events. It is independent
// of accounts and transports; its Uploader sends events to the backend.
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
	"github.com/service-dev/service/daemon/internal/identity"
	"github.com/service-dev/service/daemon/internal/ratelog"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/telemetry"
)

// Consents reads the user's decision.
type Consents interface {
	Get() (consent.State, error)
}

// Memory stores the part of the install's state that telemetry needs.
type Memory interface {
	// NoticeShownAt returns when the first-run notice was shown to an audience, or the zero time.
	NoticeShownAt(identity.Audience) time.Time
	SetNoticeShownAt(identity.Audience, time.Time) error
	// LastVersion returns the version that ran last, or "" if unknown.
	LastVersion() string
	SetLastVersion(string) error
}

// Uploader sends events to the backend. Its methods return a *problem.Error, or the context's error.
type Uploader interface {
	UploadTelemetry(ctx context.Context, t backend.Target, batch []byte) (backendapi.TelemetryReceipt, error)
	PurgeTelemetry(ctx context.Context, t backend.Target) (deleted int64, err error)
}

// Options configures a Recorder. All fields except Now and Jitter are required.
type Options struct {
	// Dir is the state directory.
	Dir       string
	InstallID string
	// Version is the build version recorded in events.
	Version  string
	Consents Consents
	Memory   Memory
	// Backend returns the caller's backend. For the zero Caller it returns the daemon's own backend, which receives the
	// events.
	Backend  func(caller.Caller) (config.Backend, error)
	Uploader Uploader
	Log      *slog.Logger
	Now      func() time.Time
	// Jitter returns a random number in [0, 1).
	Jitter func() float64
}

// warnEvery is the minimum interval between log entries about a failure to write events.
const warnEvery = time.Minute

// Recorder records and uploads events. It is safe for concurrent use.
type Recorder struct {
	o     Options
	log   *journal
	spool *spool
	// full receives a signal when a batch is complete.
	full chan struct{}

	starting      atomic.Bool // no call has been made since the daemon started
	writeFailures *ratelog.Logger
	notice        notice
	upload        upload
}

// New returns the recorder for a state directory. It does not write files.
func New(o Options) *Recorder {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	files := newLockedDir(filepath.Join(o.Dir, Dir))
	return &Recorder{o: o, notice: notice{taken: map[identity.Audience]bool{}}, log: newJournal(files),
		spool: newSpool(files), full: make(chan struct{}, 1), writeFailures: ratelog.New(o.Log, warnEvery, o.Now)}
}

// Record writes an event to the local log and, if the caller's switches may allow an upload, to the spool. It drops
// undeclared fields and shortens texts to the declared limits. It logs a failure instead of returning it, because
// telemetry must not disturb other work.
func (r *Recorder) Record(ctx context.Context, name string, fields map[string]any) {
	who := caller.From(ctx)
	if r.starting.CompareAndSwap(true, false) {
		r.install(who)
	}
	r.write(who, name, fields)
}

// write records an event, subject to who's switches. It logs failures at a limited rate, so that they do not fill the
// disk.
func (r *Recorder) write(who caller.Caller, name string, fields map[string]any) {
	line, err := r.format(name, fields)
	if err != nil {
		r.o.Log.Error("failed to encode an event", "event", name, "err", err)
		return
	}
	if err := errors.Join(r.log.add(line), r.spoolEvent(who, line)); err != nil {
		r.writeFailures.Warn("failed to write an event", "event", name, "err", err)
	}
}

// format encodes an event. It returns an error for an undeclared event.
func (r *Recorder) format(name string, fields map[string]any) (line []byte, err error) {
	d, known := telemetry.Of(name)
	if !known {
		return nil, errors.New("it is not declared")
	}
	id, err := uuid.NewV7()
	if err == nil {
		line, err = json.Marshal(telemetry.Event{
			ID: id.String(), At: r.o.Now().UTC().Format(telemetry.AtLayout), Name: name, Fields: r.selectFields(d, fields),
		})
	}
	return append(line, '\n'), err
}

// spoolEvent spools a caller's event if it may ever be uploaded.
func (r *Recorder) spoolEvent(who caller.Caller, line []byte) error {
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

// selectFields returns the declared fields, including fields whose values the recorder itself determines.
func (r *Recorder) selectFields(d telemetry.Description, fields map[string]any) map[string]json.RawMessage {
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

// Started records that a daemon has started. At the first start of an install or of a newer version, the next event is
// preceded by an event that reports the start. A start has no caller, so the switches of the first caller apply.
func (r *Recorder) Started() { r.starting.Store(true) }

func (r *Recorder) install(who caller.Caller) {
	last := r.o.Memory.LastVersion()
	if last == r.o.Version {
		return
	}
	switch order, ordered := buildinfo.Compare(last, r.o.Version); {
	case last == "":
		r.write(who, telemetry.InstallStarted, nil)
	case !ordered || order < 0: // another build of the same version, or an older one
		r.write(who, telemetry.InstallUpdated, map[string]any{"previous": last})
	}
	if err := r.o.Memory.SetLastVersion(r.o.Version); err != nil {
		r.o.Log.Warn("failed to save the running version", "err", err)
	}
}
