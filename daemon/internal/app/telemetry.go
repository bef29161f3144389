package app

import (
	"context"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/daemon/internal/telemetry"
	"github.com/service-dev/service/proto/buildinfo"
)

var (
	_ control.Telemetry  = face{}
	_ telemetry.Uploader = blocked{}
)

// newRecorder makes the recorder. In a process without adapters it only writes down: to the log, and to the spool while
// its file lock can be had, from where a daemon uploads; such a process uploads nothing and tells of no first start.
func (p *parts) newRecorder() *telemetry.Recorder {
	return telemetry.New(telemetry.Options{
		Dir: p.paths.Dir, InstallID: p.install.ID(), Version: buildinfo.Version, Consents: p.consent, Memory: p.install,
		Backend:  func(who caller.Caller) (config.Backend, error) { return p.config.Current().Backend(who) },
		Uploader: p.backends, Log: p.log, Now: p.now,
	})
}

func (f face) SetConsent(_ context.Context, state string) (path string, err error) {
	if err := f.p.consent.Set(consent.State(state)); err != nil {
		return f.p.consent.Path(), err
	}
	f.p.record.Decided(consent.State(state))
	return f.p.consent.Path(), nil
}

func (f face) Telemetry(ctx context.Context) control.TelemetryStatus {
	s := f.p.record.Status(caller.From(ctx))
	return control.TelemetryStatus{
		Consent: f.Consent(ctx), LogFile: s.LogFile, BackendURL: s.BackendURL, LastError: s.LastError,
		NoticeAt: s.NoticeAt, UploadedAt: s.UploadedAt, NextAt: s.Next, Waiting: s.Waiting, Uploaded: s.Uploaded,
		Bytes: s.Bytes, Cap: s.Cap, Dropped: s.Dropped,
	}
}

func (f face) PurgeTelemetry(ctx context.Context) (control.TelemetryPurged, error) {
	p, err := f.p.record.Purge(ctx)
	return control.TelemetryPurged{Local: p.Local, Waiting: p.Waiting, Deleted: p.Deleted, Backend: p.Backend, Err: p.Err}, err
}

func (f face) TakeNotice(ctx context.Context) (text string, done func(sent bool), ok bool) {
	return f.p.record.Take(caller.From(ctx))
}

func (b blocked) UploadTelemetry(context.Context, backend.Target, []byte) (backend.TelemetryReceipt, error) {
	return backend.TelemetryReceipt{}, b.problem()
}

func (b blocked) PurgeTelemetry(context.Context, backend.Target) (deleted int64, err error) {
	return 0, b.problem()
}
