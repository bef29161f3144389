package app

import (
	"context"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/daemon/internal/telemetry"
	"github.com/service-dev/service/internal/buildinfo"
)

// newRecorder creates the recorder. In a sandbox it writes only to the log and, if the spool's file lock is free, to
// the spool. A daemon uploads the spooled events later.
func (d *daemon) newRecorder() *telemetry.Recorder {
	return telemetry.New(telemetry.Options{
		Dir: d.paths.Dir, InstallID: d.install.ID(), Version: buildinfo.Version, Consents: d.consent, Memory: d.install,
		Backend:  func(who caller.Caller) (config.Backend, error) { return d.config.Current().Backend(who) },
		Uploader: d.host, Log: d.log, Now: d.now,
	})
}

func (f facade) SetConsent(_ context.Context, state string) (path string, err error) {
	if err := f.d.consent.Set(consent.State(state)); err != nil {
		return f.d.consent.Path(), err
	}
	f.d.recorder.Decided(consent.State(state))
	return f.d.consent.Path(), nil
}

func (f facade) Telemetry(ctx context.Context) control.TelemetryStatus {
	s := f.d.recorder.Status(caller.From(ctx))
	return control.TelemetryStatus{
		Consent: f.Consent(ctx), LogFile: s.LogFile, BackendURL: s.BackendURL, LastError: s.LastError,
		NoticeAt: s.NoticeAt, UploadedAt: s.UploadedAt, NextAt: s.Next, Waiting: s.Waiting, Uploaded: s.Uploaded,
		Bytes: s.Bytes, Cap: s.Cap, Dropped: s.Dropped,
	}
}

func (f facade) PurgeTelemetry(ctx context.Context) (control.TelemetryPurged, error) {
	p, err := f.d.recorder.Purge(ctx)
	return control.TelemetryPurged(p), err
}

func (f facade) TakeNotice(ctx context.Context) (text string, done func(sent bool), ok bool) {
	return f.d.recorder.TakeForTerminal(caller.From(ctx))
}
