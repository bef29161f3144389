package device_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
	"github.com/service-dev/service/glasses/media"
)

// bench is a pair of glasses whose host answers every Ask immediately.
type bench struct {
	t    *testing.T
	d    *device.Device
	now  int64
	n    int
	mute bool   // whether the host does not answer
	seen []byte // the picture that the host's camera sees
	asks []device.Ask
	out  []device.Out // frames so far
}

func newBench(t *testing.T, model string) *bench {
	t.Helper()
	m, ok := glasses.Model(model)
	if !ok {
		t.Fatalf("unknown model %s", model)
	}
	return &bench{t: t, d: device.New(m, device.Options{}), seen: media.TestPicture(64, 48, 0)}
}

// do sends a frame and returns its id.
func (b *bench) do(typ, payload string, body ...byte) string {
	b.n++
	id := fmt.Sprintf("a-%d", b.n)
	if payload == "" {
		payload = "{}"
	}
	b.d.Handle(b.now, glasses.Frame{V: 1, Type: typ, ID: id, Payload: json.RawMessage(payload)}, body)
	b.settle()
	return id
}

func (b *bench) settle() {
	for outs := b.d.Take(); len(outs) > 0; outs = b.d.Take() {
		for _, o := range outs {
			if o.Ask == nil {
				b.out = append(b.out, o)
				continue
			}
			b.asks = append(b.asks, *o.Ask)
			if b.mute {
				continue
			}
			switch o.Ask.Kind {
			case device.AskPhoto, device.AskFrame:
				b.d.Answer(b.now, o.Ask.ID, device.Material{Bytes: b.seen}, nil)
			case device.AskVideo:
				b.d.Answer(b.now, o.Ask.ID, device.Material{Bytes: slices.Repeat(b.seen, 5)}, nil)
			case device.AskChunk:
				var tone *media.Sound
				b.d.Answer(b.now, o.Ask.ID, device.Material{Bytes: tone.Chunk(0, o.Ask.SampleRate)}, nil)
			}
		}
	}
}

// wait advances the clock by ms.
func (b *bench) wait(ms int64) {
	for end := b.now + ms; ; {
		at, ok := b.d.Next()
		if !ok || at > end {
			b.now = end
			b.d.Tick(end)
			b.settle()
			return
		}
		b.now = max(b.now, at)
		b.d.Tick(b.now)
		b.settle()
	}
}

// result returns the answer to id, or nil if there is none yet. A second answer fails the test.
func (b *bench) result(id string) *glasses.Result {
	b.t.Helper()
	var found *glasses.Result
	for _, o := range b.out {
		if o.Frame.Type != glasses.TypeResult || o.Frame.ID != id {
			continue
		}
		r, err := glasses.ParseResult(o.Frame.Payload)
		if err != nil || found != nil {
			b.t.Fatalf("%s: a second or invalid result: %s, %v", id, o.Frame.Payload, err)
		}
		found = &r
	}
	return found
}

// code returns "ok", the error code of the answer, or "none".
func (b *bench) code(id string) string {
	b.t.Helper()
	switch r := b.result(id); {
	case r == nil:
		return "none"
	case r.Error != nil:
		return r.Error.Code
	}
	return "ok"
}

// must sends a frame and requires an immediate ok.
func (b *bench) must(typ, payload string, body ...byte) {
	b.t.Helper()
	if id := b.do(typ, payload, body...); b.code(id) != "ok" {
		b.t.Fatalf("%s %s: %+v", typ, payload, b.result(id))
	}
}

// types lists the types and payloads of the frames since the last call, without results.
func (b *bench) types() []string {
	list := []string{}
	for _, o := range b.out {
		if o.Frame.Type != glasses.TypeResult {
			list = append(list, o.Frame.Type+string(o.Frame.Payload))
		}
	}
	b.out = nil
	return list
}

// commands lists every command with a valid payload.
func commands() map[string]string {
	all := map[string]string{
		glasses.TypeDisplayShow: `{"tree":{"type":"text","text":"x"}}`, glasses.TypeSpeechSay: `{"text":"hello"}`,
		glasses.TypeSoundPlay: `{"sound":"chime"}`, glasses.TypeCameraVideo: `{"durationMs":1000}`,
		glasses.TypePhrasesAnnounce: `{"phrases":["go"]}`, glasses.TypeClockSleep: `{"ms":50}`,
		glasses.TypeClockCancel: `{"id":"none"}`,
	}
	for _, c := range glasses.Commands() {
		if all[c.Type] == "" {
			all[c.Type] = "{}"
		}
	}
	return all
}

// TestEveryFaultAnswersEveryCommand checks the first half of the contract: every fault code applies to every command.
func TestEveryFaultAnswersEveryCommand(t *testing.T) {
	for typ, payload := range commands() {
		for _, code := range glasses.CommandCodes() {
			b := newBench(t, "rayban_display")
			b.must(glasses.SimFault, fmt.Sprintf(`{"command":%q,"code":%q}`, typ, code))
			id := b.do(typ, payload)
			if code == glasses.CodeTimeout {
				b.wait(9999)
				if got := b.code(id); got != "none" {
					t.Errorf("%s was answered early, with %s", typ, got)
				}
				b.wait(1)
			}
			if got := b.code(id); got != code {
				t.Errorf("%s with fault %s failed with %s", typ, code, got)
			}
			again := b.do(typ, payload)
			b.wait(2000)
			if got := b.code(again); got != "ok" {
				t.Errorf("%s after fault %s: %s, want ok", typ, code, got)
			}
		}
	}
}

// TestStateRefuses checks the second half: each state refuses certain commands and no others.
func TestStateRefuses(t *testing.T) {
	show, say, play, photo, video := glasses.TypeDisplayShow, glasses.TypeSpeechSay, glasses.TypeSoundPlay, glasses.TypeCameraPhoto, glasses.TypeCameraVideo
	playback := glasses.TypePlaybackStart
	audio, speech, stream, motion := glasses.TypeAudioStart, glasses.TypeTranscriptionStart, glasses.TypeVideoStart, glasses.TypeMotionStart
	for _, c := range []struct{ model, state, code, refused string }{
		{"rayban_display", `{"link":"lost"}`, "not_connected",
			strings.Join([]string{show, say, play, playback, photo, video, audio, speech, stream, motion, "display.clear",
				"speech.stop", "playback.end", "playback.flush", "audio.stop", "video.stop", "motion.stop"}, " ")},
		{"rayban_display", `{"hinge":"folded"}`, "hinge_closed",
			strings.Join([]string{show, say, play, playback, photo, video, audio, speech, stream}, " ")},
		{"rayban_display", `{"thermal":"critical"}`, "thermal_critical",
			strings.Join([]string{show, photo, video, stream}, " ")},
		{"rayban_display", `{"worn":false}`, "paused", strings.Join([]string{show, say, play, playback}, " ")},
		{"rayban_display", `{"permissions":{"camera":"denied"}}`, "permission_denied",
			strings.Join([]string{photo, video, stream}, " ")},
		{"rayban_display", `{"permissions":{"microphone":"denied"}}`, "permission_denied", audio + " " + speech},
		{"rayban_display", `{"permissions":{"speech":"denied"}}`, "permission_denied", say + " " + speech},
		{"rayban_display", `{"disabled":["camera"]}`, "disabled_by_user",
			strings.Join([]string{photo, video, stream}, " ")},
		{"rayban_display", `{"disabled":["microphone"]}`, "disabled_by_user", audio + " " + speech},
		{"rayban_display", `{"disabled":["speech"]}`, "disabled_by_user", say + " " + speech},
		{"rayban_display", `{"call":true}`, "busy", strings.Join([]string{say, play, playback, audio, speech}, " ")},
		{"rayban_display", `{"thermal":"warm","route":"phone","battery":{"level":1}}`, "", ""},
		{"system_audio", `{}`, "unsupported", strings.Join([]string{show, photo, video, stream, motion}, " ")},
		{"even_g1", `{}`, "unsupported", strings.Join([]string{say, play, playback, photo, video, stream, motion}, " ")},
		// The order of the checks when all of them fail.
		{"rayban_display", `{"link":"lost","hinge":"folded","thermal":"critical","worn":false}`, "not_connected",
			strings.Join([]string{show, say, play, playback, photo, video, audio, speech, stream, motion, "display.clear",
				"speech.stop", "playback.end", "playback.flush", "audio.stop", "video.stop", "motion.stop"}, " ")},
		{"rayban_display", `{"permissions":{"camera":"denied"},"disabled":["camera"]}`, "permission_denied",
			strings.Join([]string{photo, video, stream}, " ")},
	} {
		for typ, payload := range commands() {
			b := newBench(t, c.model)
			b.must(glasses.SimState, c.state)
			id := b.do(typ, payload)
			b.wait(2000)
			want := "ok"
			if slices.Contains(strings.Fields(c.refused), typ) {
				want = c.code
			}
			if got := b.code(id); got != want {
				t.Errorf("%s %s: %s was answered with %s, want %s", c.model, c.state, typ, got, want)
			}
		}
	}
}

func TestBusyAndBad(t *testing.T) {
	b := newBench(t, "rayban_display")
	for _, stream := range []string{"audio", "transcription", "video", "motion"} {
		b.must(stream+".start", "")
		want := "busy"
		if stream == "transcription" {
			want = "ok" // transcription continues in the new language
		}
		if got := b.code(b.do(stream+".start", "")); got != want {
			t.Errorf("a second %s.start: %s, want %s", stream, got, want)
		}
	}
	if got := b.d.Snapshot().State.Running; !slices.Equal(got, []string{"audio", "transcription", "video", "motion"}) {
		t.Errorf("running: %v", got)
	}
	first := b.do(glasses.TypeCameraVideo, `{"durationMs":1000}`)
	if got := b.code(b.do(glasses.TypeCameraPhoto, "")); got != "busy" {
		t.Errorf("a photo during a clip: %s, want busy", got)
	}
	b.wait(1000)
	if r := b.result(first); r == nil || r.Media == nil || r.Media.MIME != "video/x-motion-jpeg" ||
		r.Media.DurationMs != 1000 {
		t.Errorf("the clip is %+v, want a motion JPEG", r)
	}
	for range 64 {
		b.do(glasses.TypeClockSleep, `{"ms":60000}`)
	}
	if got := b.code(b.do(glasses.TypeClockSleep, `{"ms":1}`)); got != "busy" {
		t.Errorf("the 65th command: %s, want busy", got)
	}
	// Cancelling frees capacity when there is none left.
	b.must(glasses.TypeClockCancel, fmt.Sprintf(`{"id":"a-%d"}`, b.n-1))
	b.must(glasses.TypeDisplayClear, "")
	for typ, payload := range map[string]string{"display.show": `{}`, "speech.say": `{"text":""}`,
		"camera.photo": `{"width":1}`, "sim.input": `{"kind":"wink"}`} {
		if got := newBench(t, "rayban_display"); got.code(got.do(typ, payload)) != "bad_payload" {
			t.Errorf("%s %s was not rejected with bad_payload", typ, payload)
		}
	}
}

func TestLatency(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must(glasses.SimState, `{"link":"lossy"}`)
	b.must(glasses.SimFault, `{"latencyMs":1000,"times":2}`)
	id := b.do(glasses.TypeDisplayClear, "")
	b.wait(1399)
	if b.code(id) != "none" {
		t.Error("the command was answered early")
	}
	b.wait(1)
	if b.code(id) != "ok" {
		t.Error("the command was not answered after 1400 ms")
	}
	photo := b.do(glasses.TypeCameraPhoto, "")
	b.wait(1400)
	last := b.out[len(b.out)-2:]
	if b.code(photo) != "ok" || last[0].Frame.Type != glasses.TypeMedia || last[0].Frame.ID != photo ||
		last[0].Frame.At != b.now || last[1].Frame.Type != glasses.TypeResult {
		t.Errorf("media and result: %+v; want the media first", last)
	}
	third := b.do(glasses.TypeDisplayClear, "")
	b.wait(400)
	if b.code(third) != "ok" {
		t.Error("the fault applied twice")
	}
	b.must(glasses.SimFault, `{"latencyMs":60000}`)
	never := b.do(glasses.TypeDisplayClear, "")
	b.wait(10_000)
	if got := b.code(never); got != "timeout" {
		t.Errorf("an answer delayed by a minute: %s, want timeout", got)
	}
}

// A delayed command takes effect after its delay, commands stay in order, and the result lists the fault.
func TestLatency_DelaysTheEffect(t *testing.T) {
	b := newBench(t, "rayban_display")
	shown := func() string {
		if tree := b.d.Snapshot().View.Tree; tree != nil {
			return tree.Text
		}
		return ""
	}
	show := func(text string) string {
		return b.do(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"`+text+`"}}`)
	}
	b.must(glasses.SimFault, `{"command":"display.show","latencyMs":1500}`)
	first := show("first")
	b.wait(500)
	second := show("second")
	b.must(glasses.TypeSoundPlay, `{"sound":"chime"}`) // another part of the glasses
	b.wait(999)
	if shown() != "" || b.code(first) != "none" || b.code(second) != "none" {
		t.Errorf("early: the panel shows %q, answers %s and %s; want nothing yet", shown(), b.code(first), b.code(second))
	}
	b.wait(1)
	if shown() != "second" || b.code(first) != "ok" || b.code(second) != "ok" {
		t.Errorf("the panel shows %q, answers %s and %s; want the second text", shown(), b.code(first), b.code(second))
	}
	for id, want := range map[string]string{
		first:  `{"ok":true,"lateMs":1500,"faults":[{"command":"display.show","latencyMs":1500}]}`,
		second: `{"ok":true,"lateMs":1000}`, show("third"): `{"ok":true}`,
	} {
		if got, _ := json.Marshal(b.result(id)); string(got) != want {
			t.Errorf("%s has the result %s, want %s", id, got, want)
		}
	}
	b.must(glasses.SimFault, `{"code":"busy","latencyMs":100}`)
	failed := show("never")
	b.wait(100)
	if got, _ := json.Marshal(b.result(failed).Faults); string(got) != `[{"code":"busy","latencyMs":100}]` {
		t.Errorf("a failed command names the faults %s", got)
	}
	b.must(glasses.SimState, `{"link":"lossy"}`)
	late := show("late")
	b.must(glasses.SimState, `{"hinge":"folded"}`)
	b.wait(400)
	if b.code(late) != "hinge_closed" || shown() != "third" {
		t.Errorf("folded before the command arrived: %s, the panel shows %q", b.code(late), shown())
	}
}

func TestTimers_CancelAnswersASleepAtOnce(t *testing.T) {
	b := newBench(t, "rayban_display")
	kept, cancelled := b.do(glasses.TypeClockSleep, `{"ms":1000}`), b.do(glasses.TypeClockSleep, `{"ms":500}`)
	b.wait(100)
	b.must(glasses.TypeClockCancel, `{"id":"`+cancelled+`"}`)
	if b.code(cancelled) != "ok" || b.code(kept) != "none" {
		t.Errorf("the cancelled sleep: %s, want ok; the other one: %s, want no answer", b.code(cancelled), b.code(kept))
	}
	if at, ok := b.d.Next(); !ok || at != 1000 {
		t.Errorf("the next instant is %d, %v; want 1000", at, ok)
	}
	// Cancelling a finished command is not an error and sends no second answer.
	b.must(glasses.TypeClockCancel, `{"id":"`+cancelled+`"}`)
	b.must(glasses.TypeClockCancel, `{"id":"nobody"}`)
	b.wait(1000)
	if b.code(kept) != "ok" {
		t.Errorf("the other sleep: %s, want ok", b.code(kept))
	}
}

// In virtual time, what is due at once happens one after the other, whatever the app sends meanwhile.
func TestStep_RunsOneThing(t *testing.T) {
	m, _ := glasses.Model("rayban_display")
	b := &bench{t: t, d: device.New(m, device.Options{Stepwise: true}), seen: media.TestPicture(64, 48, 0)}
	first, second := b.do(glasses.TypeClockSleep, `{"ms":1000}`), b.do(glasses.TypeClockSleep, `{"ms":1000}`)
	if now := b.do(glasses.TypeClockSleep, `{"ms":0}`); b.code(now) != "ok" {
		t.Error("a sleep of 0 ms waits")
	}
	b.now = 1000
	b.d.Step(b.now)
	b.settle()
	b.must(glasses.TypeDisplayShow, `{"tree":{"type":"text","text":"x"}}`)
	b.must(glasses.TypeCameraPhoto, "")
	if b.code(first) != "ok" || b.code(second) != "none" {
		t.Errorf("the sleeps have the results %s and %s, want only the first", b.code(first), b.code(second))
	}
	b.d.Step(b.now)
	b.settle()
	if b.code(second) != "ok" {
		t.Error("the second sleep has not ended")
	}
}
