package session

import (
	"errors"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

func ownTransports() *fakeTransports {
	return &fakeTransports{added: map[string]backend.Transport{
		"own":    {Name: "own", DeviceModels: []string{"even_g1", "even_g2"}},
		"remote": {Name: "remote", NeedsAccount: true},
	}}
}

func TestStartLocal_SelectsATransport(t *testing.T) {
	dir := t.TempDir()
	m := newLocal(t, dir, ownTransports(), nil)
	simulated := start(t, m, LocalRequest{Project: "a.b"})
	own := start(t, m, LocalRequest{Project: "a.b", Transport: "own"})
	if !own.Created || own.Transport != "own" || own.DeviceModel != "even_g1" || own.SessionID == simulated.SessionID {
		t.Fatalf("opened %+v, want another session on the first model of the transport", own.Session)
	}
	for _, again := range []LocalRequest{{Project: "a.b"}, {Project: "a.b", Transport: "own", DeviceModel: "even_g2"}} {
		if s := start(t, m, again); s.Created || s.SessionID != own.SessionID {
			t.Errorf("%+v opened %+v, want the session used last", again, s.Session)
		}
	}
	if s := start(t, m, LocalRequest{Project: "a.b", Transport: "localsim"}); s.SessionID != simulated.SessionID ||
		s.Transport != backend.TransportLocal {
		t.Errorf("localsim: %+v, want the first session", s.Session)
	}
}

func TestStartLocal_TwinHasModelAndPace(t *testing.T) {
	transports := ownTransports()
	m := newLocal(t, t.TempDir(), transports, nil)
	own := start(t, m, LocalRequest{Project: "a.b", Transport: "own"})
	if transports.last().open.Pace {
		t.Error("a session that did not ask for a pace has one")
	}
	twin := start(t, m, LocalRequest{Project: "a.b", TwinOf: own.SessionID})
	if twin.SessionID == own.SessionID || twin.DeviceModel != own.DeviceModel || twin.Transport != backend.TransportLocal {
		t.Errorf("got the twin %+v, want a simulated %s", twin.Session, own.DeviceModel)
	}
	if open := transports.last().open; !open.Pace {
		t.Errorf("the twin was opened with %+v, want a pace", open)
	}
	if s := start(t, m, LocalRequest{Project: "a.b", Transport: localSim, Pace: PaceNone}); s.SessionID == twin.SessionID {
		t.Error("a request without a pace got the session that has one")
	}
	for _, wrong := range []LocalRequest{{TwinOf: "loc_" + strings.Repeat("a", 20)}, {Pace: "slow"}} {
		wrong.Project = "a.b"
		if _, err := m.StartLocal(t.Context(), caller.Caller{}, wrong); err == nil {
			t.Errorf("%+v opened a session, want a refusal", wrong)
		}
	}
}

func TestStartLocal_RefusesWhatATransportLacks(t *testing.T) {
	m := newLocal(t, t.TempDir(), ownTransports(), nil)
	for code, requests := range map[string][]LocalRequest{
		problem.CodeUnknownTransport: {{Transport: "nothing"}},
		problem.CodeUnsupported: {
			{Transport: "remote"},
			{Transport: "own", Clock: backend.ClockVirtual},
			{Transport: "own", DeviceModel: "rayban_display"},
		},
	} {
		for _, r := range requests {
			r.Project = "a.b"
			_, err := m.StartLocal(t.Context(), caller.Caller{}, r)
			var p *problem.Error
			if !errors.As(err, &p) || p.Code != code {
				t.Errorf("%+v: %v, want %s", r, err, code)
			}
		}
	}
	_, err := m.StartLocal(t.Context(), caller.Caller{}, LocalRequest{Project: "a.b", Transport: "own",
		Clock: backend.ClockVirtual})
	var hint *problem.Error
	if !errors.As(err, &hint) || !strings.HasPrefix(hint.FixHint, "Set clock to real, in the scenario too") {
		t.Errorf("without virtual time: %+v, want a hint that holds for scenarios", err)
	}
	if n := m.LocalCount(); n != 0 {
		t.Errorf("%d sessions were opened by refused requests", n)
	}
	own := start(t, m, LocalRequest{Project: "a.b", Transport: "own"})
	_, err = m.Control(t.Context(), backend.Target{}, own.SessionID, glasses.SimDevice,
		glasses.DeviceChoice{DeviceModel: "rayban_display"}, nil)
	var p *problem.Error
	if !errors.As(err, &p) || p.Code != problem.CodeUnsupported || p.FixHint == "" {
		t.Errorf("setDevice: %v, want a refusal with the models of the transport", err)
	}
}
