package control

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/internal/problem"
	api "github.com/service-dev/service/proto/control"
)

func (f *fake) Telemetry(context.Context) TelemetryStatus {
	return TelemetryStatus{
		Consent: Consent{State: "unset",
			DecidedBy: "notice"}, LogFile: "/x/events.jsonl", BackendURL: "https://b", Waiting: 3,
		Bytes: 100, Cap: 4096, Dropped: 2, UploadedAt: time.UnixMilli(7), Uploaded: 5, LastError: "down",
		NextAt: time.UnixMilli(9),
	}
}

func (f *fake) PurgeTelemetry(context.Context) (TelemetryPurged, error) {
	return TelemetryPurged{Local: 1, Waiting: 2, Backend: "failed",
		Err: &problem.Error{Message: "it is down", FixHint: "try again"}}, nil
}

func (f *fake) TakeNotice(context.Context) (string, func(bool), bool) {
	if f.notice == nil {
		return "", nil, false
	}
	return "telemetry is on", f.notice, true
}

func TestTelemetryIsToldAsItIs(t *testing.T) {
	s := New(Options{Daemon: &fake{}})
	got, err := s.telemetry(t.Context(), api.None{})
	at := func(ms int64) *time.Time { when := time.UnixMilli(ms).UTC(); return &when }
	want := api.Telemetry{
		Consent: "unset", DecidedBy: "notice", LogFile: "/x/events.jsonl", BackendURL: "https://b", Waiting: 3,
		SpoolBytes: 100, SpoolCap: 4096, Dropped: 2, UploadedAt: at(7), Uploaded: 5, LastError: "down", NextTryAt: at(9),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	purged, err := s.purgeTelemetry(t.Context(), api.None{})
	if err != nil || purged.Backend != "failed" || purged.Detail != "it is down. try again" || purged.Waiting != 2 {
		t.Errorf("%+v, %v", purged, err)
	}
}

// The notice counts as shown only if the response was sent to a client that is still connected.
func TestNoticeIsGivenBackWhenTheClientWent(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want bool
	}{{t.Context(), nil, true}, {t.Context(), errors.New("broken"), false}, {gone, nil, false}} {
		var shown []bool
		s := New(Options{Daemon: &fake{notice: func(sent bool) { shown = append(shown, sent) }}})
		var sent api.ToolEvent
		err := s.sendWithNotice(c.ctx, true, tools.Result{Structured: []byte("{}")},
			func(e api.ToolEvent) error { sent = e; return c.err })
		if !errors.Is(err, c.err) || len(shown) != 1 || shown[0] != c.want ||
			sent.Result.Notice != "telemetry is on" || string(sent.Result.Structured) != "{}" {
			t.Errorf("%v: shown %v, sent %v, error %v; want one claim settled as listed", c, shown, sent, err)
		}
	}
}

// A client that does not print the notice, such as a shell's completion, does not consume it.
func TestNoticeIsNotSentToAClientThatDoesNotPrintIt(t *testing.T) {
	s := New(Options{Daemon: &fake{notice: func(bool) { t.Error("the notice was claimed") }}})
	err := s.sendWithNotice(t.Context(), false, tools.Result{}, func(e api.ToolEvent) error {
		if notice := e.Result.Notice; notice != "" {
			t.Errorf("sent %q", notice)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The outcome at the backends is reported even if the local purge failed.
func TestFailedPurgeTellsWhatTheBackendDid(t *testing.T) {
	for want, p := range map[string]TelemetryPurged{
		"no rights; the backend erased all 3 events":       {Backend: "erased", Deleted: 3},
		"no rights; no backend has events of this install": {Backend: "nothing"},
		"no rights; not every backend erased its events of this install (erased 1 events): https://b: is down": {
			Backend: "failed", Deleted: 1,
			Err: &problem.Error{Message: "https://b: is down"}},
	} {
		if e := errorOf(withBackendOutcome(p, errors.New("no rights"))); e.Message != want {
			t.Errorf("got %s, want %s", e.Message, want)
		}
	}
}
