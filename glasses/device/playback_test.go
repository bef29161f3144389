package device_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
)

// play sends ms milliseconds of sound for the playback id at 24,000 Hz, in chunks of at most 100 ms.
func (b *bench) play(id string, ms int) {
	for ; ms > 0; ms -= 100 {
		b.do(glasses.TypePlaybackChunk, fmt.Sprintf(`{"playback":%q}`, id), make([]byte, 48*min(ms, 100))...)
	}
}

// step is one step of a story about playback.
type step struct {
	do   func(b *bench, id string) // id is the ID of the first playback.start
	wait int64
	want string // the events, without the ID of the playback
}

func do(typ, payload string) func(*bench, string) {
	return func(b *bench, _ string) { b.do(typ, payload) }
}

func play(ms int) func(*bench, string) { return func(b *bench, id string) { b.play(id, ms) } }

func nothing(*bench, string) {}

func TestPlayback(t *testing.T) {
	const started = `playback{"state":"started","playedMs":0}`
	end, flush := do(glasses.TypePlaybackEnd, ""), do(glasses.TypePlaybackFlush, "")
	for name, steps := range map[string][]step{
		"end": {
			{play(250), 0, started}, {end, 249, ""}, {play(100), 0, ""},
			{nothing, 1, `playback{"state":"finished","playedMs":250}`}, {nothing, 60_000, ""},
		},
		"end without sound": {{end, 0, `playback{"state":"finished","playedMs":0}`}},
		"end after everything was played": {
			{play(100), 500, started}, {end, 0, `playback{"state":"finished","playedMs":100}`},
		},
		"gap": {
			{play(200), 1000, started}, {play(100), 50, ""}, {end, 49, ""},
			{nothing, 1, `playback{"state":"finished","playedMs":300}`},
		},
		"chunks that arrive in time leave no gap": {
			{play(100), 99, started}, {play(100), 100, ""}, {end, 0, ""},
			{nothing, 1, `playback{"state":"finished","playedMs":200}`},
		},
		"flush in the middle": {
			{play(1000), 333, started}, {flush, 0, `playback{"state":"stopped","playedMs":333}`},
			{play(100), 5000, ""}, {flush, 0, ""},
		},
		"flush after a gap": {
			{play(100), 700, started}, {play(300), 60, ""}, {flush, 0, `playback{"state":"stopped","playedMs":160}`},
		},
		"a minute ahead": {
			{play(60_000), 0, started}, {play(1), 0, `playback{"state":"stopped","playedMs":0,"reason":"busy"}`},
		},
		"a minute ahead after a second": {
			{play(60_000), 1000, started}, {play(1000), 0, ""},
			{play(100), 0, `playback{"state":"stopped","playedMs":1000,"reason":"busy"}`},
		},
		"a second start": {
			{play(200), 100, started}, {do(glasses.TypePlaybackStart, ""), 0, ""}, {end, 100,
				`playback{"state":"finished","playedMs":200}`},
		},
		"another route": {
			{play(200), 100, started}, {do(glasses.SimState, `{"route":"phone"}`), 0, `route{"to":"phone"}`},
			{end, 100, `playback{"state":"finished","playedMs":200}`},
		},
		"taken off": {{play(200), 70, started}, {do(glasses.SimState, `{"worn":false}`), 500,
			`wear{"worn":false} playback{"state":"stopped","playedMs":70,"reason":"paused"}`}},
		"a call": {{play(200), 70, started}, {do(glasses.SimState, `{"call":true}`), 500,
			`call{"active":true} playback{"state":"stopped","playedMs":70,"reason":"busy"}`}},
		"folded": {{nothing, 70, ""}, {do(glasses.SimState, `{"hinge":"folded"}`), 500,
			`hinge{"state":"folded"} playback{"state":"stopped","playedMs":0,"reason":"hinge_closed"}`}},
		"lost": {{play(200), 70, started}, {do(glasses.SimState, `{"link":"lost"}`), 500,
			`link{"state":"lost"} playback{"state":"stopped","playedMs":70,"reason":"not_connected"}`}},
	} {
		b := newBench(t, "rayban_display")
		id := b.do(glasses.TypePlaybackStart, `{"sampleRate":24000}`)
		if got := b.code(id); got != "ok" {
			t.Fatalf("playback.start: %s", got)
		}
		for i, s := range steps {
			s.do(b, id)
			b.wait(s.wait)
			got := strings.ReplaceAll(strings.Join(b.types(), " "), fmt.Sprintf(`"id":%q,`, id), "")
			if got != s.want {
				t.Errorf("%s, step %d: %q, want %q", name, i, got, s.want)
			}
		}
	}
}

func TestPlayback_FlushReportsWhatWasPlayed(t *testing.T) {
	b := newBench(t, "rayban_display")
	flushed := func() int64 {
		t.Helper()
		r := b.result(b.do(glasses.TypePlaybackFlush, ""))
		if r == nil || r.PlayedMs == nil {
			t.Fatalf("the result of playback.flush is %+v", r)
		}
		return *r.PlayedMs
	}
	if got := flushed(); got != 0 {
		t.Errorf("before any playback: %d ms", got)
	}
	id := b.do(glasses.TypePlaybackStart, `{"sampleRate":16000}`)
	b.do(glasses.TypePlaybackChunk, fmt.Sprintf(`{"playback":%q}`, id), make([]byte, 3200)...)
	b.wait(40)
	if got := flushed(); got != 40 {
		t.Errorf("40 ms later: %d ms", got)
	}
	b.wait(500)
	if got := flushed(); got != 40 {
		t.Errorf("of a playback that has ended: %d ms, want its 40", got)
	}
	if got := b.code(b.do(glasses.TypePlaybackStart, "")); got != "ok" {
		t.Errorf("the next playback: %s", got)
	}
}

// The sound of a playback.start that is delayed plays as soon as the start has reached the glasses.
func TestPlayback_KeepsSoundForADelayedStart(t *testing.T) {
	b := newBench(t, "rayban_display")
	b.must(glasses.SimFault, `{"command":"playback.start","latencyMs":300}`)
	b.types()
	id := b.do(glasses.TypePlaybackStart, "")
	b.play(id, 200)
	flush := b.do(glasses.TypePlaybackFlush, "") // does not overtake the start
	b.wait(299)
	if got := b.code(id) + " " + b.code(flush); got != "none none" || len(b.types()) > 0 {
		t.Errorf("before the start has arrived: %s", got)
	}
	b.wait(1)
	equal(t, "events", b.types(), []string{
		fmt.Sprintf(`playback{"id":%q,"state":"started","playedMs":0}`, id),
		fmt.Sprintf(`playback{"id":%q,"state":"stopped","playedMs":0}`, id),
	})

	b.must(glasses.SimFault, `{"command":"playback.start","latencyMs":300}`)
	b.types()
	refused := b.do(glasses.TypePlaybackStart, "")
	b.play(refused, 200)
	b.must(glasses.SimState, `{"call":true}`)
	b.wait(1000)
	if got := b.code(refused); got != "busy" {
		t.Errorf("a start that arrived during a call: %s", got)
	}
	equal(t, "events", b.types(), []string{`call{"active":true}`})
}

func TestPlayback_EndsWithTheModel(t *testing.T) {
	for model, reason := range map[string]string{"even_g1": "unsupported", "system_audio": "platform_error"} {
		b := newBench(t, "rayban_display")
		id := b.do(glasses.TypePlaybackStart, "")
		b.play(id, 100)
		b.wait(30)
		b.types()
		b.do(glasses.SimDevice, fmt.Sprintf(`{"deviceModel":%q}`, model))
		want := fmt.Sprintf(`playback{"id":%q,"state":"stopped","playedMs":30,"reason":%q}`, id, reason)
		if got := b.types(); got[len(got)-1] != want {
			t.Errorf("%s: %v, want %s", model, got, want)
		}
	}
}

// The device passes each chunk to the host once, and a flush tells the host to discard the rest.
func TestPlayback_AsksTheHost(t *testing.T) {
	b := newBench(t, "rayban_display")
	id := b.do(glasses.TypePlaybackStart, `{"sampleRate":16000}`)
	b.do(glasses.TypePlaybackChunk, fmt.Sprintf(`{"playback":%q}`, id), 1, 2, 3, 4)
	b.do(glasses.TypePlaybackChunk, `{"playback":"other"}`, 5, 6)
	b.do(glasses.TypePlaybackFlush, "")
	got := ""
	for _, a := range b.asks {
		got += fmt.Sprintf("%s %d %q ", a.Kind, a.SampleRate, a.PCM)
	}
	if want := device.AskSound + ` 16000 "\x01\x02\x03\x04" ` + device.AskSilence + ` 0 "" `; got != want {
		t.Errorf("asks %q, want %q", got, want)
	}
}
