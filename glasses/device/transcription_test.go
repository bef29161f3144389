package device_test

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
)

// TestTranscription_Resumes checks that each condition that prevents transcription stops and resumes it, and that the
// event has the reason and precedes the event of the cause.
func TestTranscription_Resumes(t *testing.T) {
	for _, c := range []struct{ typ, on, off, reason, cause string }{
		{"sim.state", `{"hinge":"folded"}`, `{"hinge":"open"}`, `"hinge_closed"`, "hinge"},
		{"sim.state", `{"link":"lost"}`, `{"link":"connected"}`, `"not_connected"`, "link"},
		{"sim.state", `{"call":true}`, `{"call":false}`, `"busy"`, "call"},
		{"sim.state", `{"permissions":{"speech":"denied"}}`, `{"permissions":{"speech":"granted"}}`,
			`"permission_denied","part":"speech","by":"permission"`, "permission"},
		{"sim.state", `{"permissions":{"microphone":"denied"}}`, `{"permissions":{"microphone":"granted"}}`,
			`"permission_denied","part":"microphone","by":"permission"`, "permission"},
		{"sim.state", `{"disabled":["speech"]}`, `{"disabled":[]}`,
			`"disabled_by_user","part":"speech","by":"switch"`, "disabled"},
	} {
		t.Run(c.on, func(t *testing.T) {
			b := newBench(t, "rayban_display")
			b.must("transcription.start", `{"language":"de"}`)
			b.types()
			b.must(c.typ, c.on)
			got := b.types()
			want := `transcription{"running":false,"reason":` + c.reason + `}`
			if len(got) != 2 || got[0] != want || !strings.HasPrefix(got[1], c.cause+"{") {
				t.Errorf("stopping caused %v, want %s before %s", got, want, c.cause)
			}
			b.must(c.typ, c.off)
			got = b.types()
			if len(got) != 2 || got[0] != `transcription{"running":true}` || !strings.HasPrefix(got[1], c.cause+"{") {
				t.Errorf("resuming caused %v", got)
			}
			b.must("sim.transcript", `{"text":"hallo"}`)
			if last := b.asks[len(b.asks)-1]; last.Kind != device.AskListen || last.Language != "de" {
				t.Errorf("the host was asked for %+v, want to listen in German", last)
			}
		})
	}
}

func TestTranscription_GoesOnWithAnotherModel(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must("transcription.start", "")
	b.types()
	b.must("sim.device", `{"deviceModel":"even_g1"}`)
	if got := b.types(); len(got) != 1 || !strings.HasPrefix(got[0], "device{") {
		t.Errorf("events: %v", got)
	}
	b.must("sim.transcript", `{"text":"hello"}`)
}

// TestTranscription_StandsAsAnswered checks that transcription is on or off as the app's answers report.
func TestTranscription_StandsAsAnswered(t *testing.T) {
	b := newBench(t, "rayban_display")
	refuse := func(typ, code string) {
		t.Helper()
		b.must("sim.fault", `{"command":"`+typ+`","code":"`+code+`"}`)
		if got := b.code(b.do(typ, "")); got != code {
			t.Fatalf("%s: %s, want the fault", typ, got)
		}
	}
	fold := func() { b.must("sim.state", `{"hinge":"folded"}`); b.must("sim.state", `{"hinge":"open"}`) }
	hears := func() bool { return b.code(b.do("sim.transcript", `{"text":"x"}`)) == "ok" }
	refuse("transcription.start", "busy")
	fold()
	if hears() {
		t.Error("transcription started although the start was refused")
	}
	b.must("transcription.start", "")
	refuse("transcription.stop", "platform_error")
	if fold(); !hears() {
		t.Error("transcription ended although the stop was refused")
	}
	b.must("sim.state", `{"link":"lost"}`)
	// Stopping works while the glasses are out of reach.
	b.must("transcription.stop", "")
	b.must("sim.state", `{"link":"connected"}`)
	if hears() {
		t.Error("transcription resumed after it was stopped")
	}
}

func TestStanding_IsRestored(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must("sim.standing", `{"phrases":["next page"],"transcription":{"language":"en"}}`)
	if got := b.types(); len(got) != 1 || got[0] != `transcription{"running":true}` {
		t.Errorf("restored: %v", got)
	}
	if s := b.d.Snapshot().State; strings.Join(s.Phrases, ",") != "next page" || strings.Join(s.Running, ",") != "transcription" {
		t.Errorf("state: %v %v", s.Phrases, s.Running)
	}
	b.must("sim.standing", `{"phrases":["next page"],"transcription":{"language":"en"}}`)
	b.must("sim.standing", `{"phrases":["next page"],"transcription":null}`)
	if got := b.types(); len(got) != 0 { // no app is attached
		t.Errorf("events: %v", got)
	}
	if s := b.d.Snapshot().State; len(s.Running) != 0 || len(s.Phrases) != 1 {
		t.Errorf("state: %v %v", s.Phrases, s.Running)
	}
}

// TestTranscript_SaysWhyNobodyListens covers the reasons app, fold, permission and switch. If no page is open, the
// service itself answers.
func TestTranscript_SaysWhyNobodyListens(t *testing.T) {
	for _, c := range []struct{ state, code, part, message string }{
		{`{}`, "paused", "", "no app listens: the app has not started transcription"},
		{`{"hinge":"folded"}`, "hinge_closed", "", "nobody listens: the glasses are folded"},
		{`{"permissions":{"speech":"denied"}}`, "permission_denied", "speech",
			"nobody listens: the wearer did not allow speech"},
		{`{"disabled":["microphone"]}`, "disabled_by_user", "microphone",
			"nobody listens: the wearer switched microphone off"},
	} {
		b := newBench(t, "rayban_display")
		b.must("sim.state", c.state)
		r := b.result(b.do("sim.transcript", `{"text":"x"}`))
		if r == nil || r.Error == nil || r.Error.Code != c.code || r.Error.Part != c.part || r.Error.Message != c.message {
			t.Errorf("%s: %+v", c.state, r.Error)
		}
	}
}

// TestRefusal_NamesThePart compares the refusal of a part with the corresponding fault.
func TestRefusal_NamesThePart(t *testing.T) {
	for _, c := range []struct{ command, state, fault, part, by string }{
		{"camera.photo", `{"permissions":{"camera":"denied"}}`, "permission_denied", "camera", "permission"},
		{"audio.start", `{"disabled":["microphone"]}`, "disabled_by_user", "microphone", "switch"},
		{"speech.say", `{"permissions":{"speech":"denied"}}`, "permission_denied", "speech", "permission"},
	} {
		answer := func(typ, payload string) glasses.Error {
			b := newBench(t, "rayban_display")
			b.must(typ, payload)
			r := b.result(b.do(c.command, `{"text":"x"}`))
			if r == nil || r.Error == nil {
				t.Fatalf("%s after %s: %+v", c.command, payload, r)
			}
			return *r.Error
		}
		real := answer("sim.state", c.state)
		fault := answer("sim.fault", `{"command":"`+c.command+`","code":"`+c.fault+`"}`)
		if real != fault || real.Part != c.part || real.By != c.by || real.Code != c.fault {
			t.Errorf("%s: refused with %+v, but the fault is %+v", c.command, real, fault)
		}
	}
}
