//go:build unix

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
	"github.com/service-dev/service/proto/backendapi"
)

// recordSound keeps what a page plays once window.records is true: window.played has the samples, and
// window.playedRate their rate. A worklet loses no samples however busy the page is.
const recordSound = `{
	window.played = [];
	const worklet = "data:text/javascript," + encodeURIComponent(` + "`" + `
	registerProcessor("recorder", class extends AudioWorkletProcessor {
		all = [];
		process([[sound]]) {
			this.all.push(...(sound ?? new Float32Array(128)));
			if (this.all.length >= 4096) this.port.postMessage(Float32Array.from(this.all.splice(0)));
			return true;
		}
	})` + "`" + `);
	const connect = AudioNode.prototype.connect;
	const recorders = new WeakMap();
	AudioNode.prototype.connect = function (to, ...more) {
		const context = this.context;
		if (to instanceof AudioDestinationNode && !recorders.has(context)) {
			recorders.set(context, null);
			context.audioWorklet.addModule(worklet).then(() => {
				const recorder = new AudioWorkletNode(context, "recorder", { channelCount: 1, channelCountMode: "explicit" });
				recorder.port.onmessage = (e) => window.played.push(e.data);
				connect.call(recorder, context.destination);
				recorders.set(context, recorder);
				window.playedRate = context.sampleRate;
				window.records = true;
			});
		} else if (to instanceof AudioDestinationNode && recorders.get(context)) connect.call(this, recorders.get(context));
		return connect.call(this, to, ...more);
	};
}`

// openToSound opens the simulator page in a browser whose microphone hears a WAV file again and again, and records what
// the page plays.
func openToSound(t *testing.T, model string, sound []byte) *simulated {
	t.Helper()
	wav := filepath.Join(t.TempDir(), "speech.wav")
	if err := os.WriteFile(wav, sound, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSimulated(t, model, chromedp.Flag("use-file-for-fake-audio-capture", wav))
	if _, err := chromedp.Call(s.browser, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: recordSound}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(s.browser, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	run(t, s.browser, "reload", chromedp.Reload(), until(`document.querySelector("#simulator")?.dataset.live === "yes"`),
		chromedp.Click("#tab-glasses")) // browsers play no sound before a click
	s.must(s.result(s.send(glasses.TypeSoundPlay, glasses.Play{Sound: "tick"})))
	run(t, s.browser, "record", until(`window.records`), chromedp.Evaluate[chromedp.Void](`{ window.played.length = 0 }`))
	return s
}

// played returns the sound that the page has played since the last call, at 24,000 Hz and without the pauses that it
// made on a busy machine, once ms of silence follow.
func (s *simulated) played(silence int) []float64 {
	s.t.Helper()
	run(s.t, s.browser, "hear silence", until(fmt.Sprintf(`(() => {
		let quiet = 0;
		for (const p of window.played) quiet = p.some((v) => v !== 0) ? 0 : quiet + p.length;
		return window.played.some((p) => p.some((v) => v !== 0)) && quiet > %d * window.playedRate / 1000;
	})()`, silence)))
	text := evaluate[string](s.t, s.browser, `(() => {
		const all = new Float32Array(window.played.reduce((n, p) => n + p.length, 0));
		let at = 0;
		for (const p of window.played.splice(0)) { all.set(p, at); at += p.length; }
		const bytes = new Uint8Array(all.buffer);
		let t = "";
		for (let i = 0; i < bytes.length; i += 8192) t += String.fromCharCode(...bytes.subarray(i, i + 8192));
		return btoa(t);
	})()`)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		s.t.Fatal(err)
	}
	const pause = 100 // samples, more than the zero crossing of a tone has
	var all []float64
	zeros := pause
	for i := 0; i < len(data); i += 4 {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
		switch {
		case v != 0 && zeros < pause:
			all = append(all, make([]float64, zeros)...)
			fallthrough
		case v != 0:
			all, zeros = append(all, v), 0
		default:
			zeros++
		}
	}
	return resampled(all, evaluate[float64](s.t, s.browser, `window.playedRate`), 24000)
}

// resampled returns samples at another rate, interpolated between the two nearest.
func resampled(samples []float64, from, to float64) []float64 {
	var out []float64
	for i := 0; ; i++ {
		k, part := math.Modf(float64(i) * from / to)
		if int(k)+1 >= len(samples) {
			return out
		}
		out = append(out, samples[int(k)]*(1-part)+samples[int(k)+1]*part)
	}
}

// likeness is the greatest correlation of two sounds, of which one may begin up to 10 ms after the other. Equal sounds
// have a likeness of 1, whatever their volume.
func likeness(got, want []float64) (best float64) {
	for lag := -240; lag <= 240; lag++ {
		var both, first, second float64
		for i := max(0, -lag); i < min(len(got)-lag, len(want)) && i+lag < len(got); i++ {
			both += got[i+lag] * want[i]
			first += got[i+lag] * got[i+lag]
			second += want[i] * want[i]
		}
		if first > 0 && second > 0 {
			best = max(best, both/math.Sqrt(first*second))
		}
	}
	return best
}

func floats(pcm []byte) []float64 {
	var out []float64
	for i := 0; i+1 < len(pcm); i += 2 {
		out = append(out, float64(int16(binary.LittleEndian.Uint16(pcm[i:]))))
	}
	return out
}

// tune is ms of sound at 24,000 Hz: a new tone every 100 ms.
func tune(ms int) []byte {
	const rate = 24000
	var pcm []byte
	for i := range rate * ms / 1000 {
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(3*media.Tone(int64(i), rate, 300+100*(i/2400*7%10))))
	}
	return pcm
}

// play sends sound to the glasses in chunks of 100 ms and returns the id of the playback.
func (s *simulated) play(pcm []byte) string {
	s.t.Helper()
	id := s.send(glasses.TypePlaybackStart, glasses.PlaybackStart{SampleRate: 24000})
	for at := 0; at < len(pcm); at += glasses.MaxPlaybackChunk {
		f, err := glasses.New(glasses.TypePlaybackChunk, fmt.Sprintf("chunk-%d", at), 0, glasses.PlaybackChunk{Playback: id})
		if err != nil {
			s.t.Fatal(err)
		}
		data, err := glasses.EncodeBinary(f, pcm[at:min(at+glasses.MaxPlaybackChunk, len(pcm))])
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.app.Write(s.t.Context(), websocket.MessageBinary, data); err != nil {
			s.t.Fatal(err)
		}
	}
	return id
}

// The simulator page sends the sound of its microphone to the app, and plays the app's sound until the app stops it.
func TestSimulatorPage_Sound(t *testing.T) {
	t.Parallel()
	s := openToSound(t, "system_audio", speechWAV(60_000))
	s.must(s.result(s.send(glasses.TypeAudioStart, glasses.AudioStart{SampleRate: 16000})))
	file := resampled(floats(speechWAV(100)[44:3244]), 16000, 24000)
	for like, chunks := 0.0, 0; like < 0.95; chunks++ { // browsers adapt the volume at first
		like = max(like, likeness(resampled(floats(s.next(glasses.TypeAudioChunk, "").body), 16000, 24000), file))
		if chunks == 100 {
			t.Fatalf("sound of the microphone: got a likeness of %.3f to the file at most, want 0.95", like)
		}
	}
	s.must(s.result(s.send(glasses.TypeAudioStop, struct{}{})))

	state := func(want string) glasses.PlaybackState {
		t.Helper()
		var got glasses.PlaybackState
		if err := json.Unmarshal(s.next(glasses.TypePlayback, "").Payload, &got); err != nil || got.State != want {
			t.Fatalf("playback: got %+v, %v, want %s", got, err, want)
		}
		return got
	}
	s.must(s.result(s.play(tune(2000))))
	s.must(s.result(s.send(glasses.TypePlaybackEnd, struct{}{})))
	state(glasses.PlaybackStarted)
	if finished := state(glasses.PlaybackFinished); finished.PlayedMs != 2000 {
		t.Errorf("playback finished after %d ms, want 2000", finished.PlayedMs)
	}
	heard := s.played(300)
	if like := likeness(heard, floats(tune(2000))); len(heard) < 24*1980 || len(heard) > 24*2020 || like < 0.85 {
		t.Errorf("the page played %d ms with a likeness of %.3f, want 2000 ms and 0.85", len(heard)/24, like)
	}

	s.must(s.result(s.play(tune(20_000))))
	state(glasses.PlaybackStarted)
	flushed := s.must(s.result(s.send(glasses.TypePlaybackFlush, struct{}{})))
	stopped := state(glasses.PlaybackStopped)
	heard = s.played(300)
	if flushed.PlayedMs == nil || *flushed.PlayedMs != stopped.PlayedMs {
		t.Errorf("flush: got %+v, then %+v, want the same playedMs", flushed, stopped)
	}
	like := likeness(heard, floats(tune(20_000))[:len(heard)])
	t.Logf("stopped after %d ms, heard %d ms, likeness %.3f", stopped.PlayedMs, len(heard)/24, like)
	if ms := int64(len(heard) / 24); ms > stopped.PlayedMs+1000 || like < 0.85 {
		t.Errorf("the page played %d ms with a likeness of %.3f, want the %d ms of the event", ms, like, stopped.PlayedMs)
	}
}

// syllables is a WAV file: two thirds of a second of sound that browsers do not mistake for noise, and silence up to
// ms.
func syllables(ms int) []byte {
	const rate = 16000
	wav := speechWAV(ms - 1000) // it adds a second of silence
	for i := range (len(wav) - 44) / 2 {
		sample := int16(0)
		if at := i * 1000 / rate; at < 660 && at%220 < 160 {
			sample = 9 * media.Tone(int64(i), rate, 200+at/220*70)
		}
		binary.LittleEndian.PutUint16(wav[44+2*i:], uint16(sample))
	}
	return wav
}

// scriptVoice is the sound with which a script says a text without spaces, at 24,000 Hz.
func scriptVoice(text string) []float64 {
	const rate, msPerCharacter = 16000, 60
	var sound []float64
	for k, r := range text {
		for i := range int64(rate * msPerCharacter / 1000) {
			at := int64(k)*rate*msPerCharacter/1000 + i
			sound = append(sound, float64(3*media.Tone(at, rate, 200+20*(int(r)%40))))
		}
	}
	return resampled(sound, rate, 24000)
}

// rowOf waits until the session's event log has a row of this type, and returns its payload.
func (s *simulated) rowOf(typ string) map[string]any {
	s.t.Helper()
	for since := int64(0); ; {
		var rows backendapi.EventPage
		s.call("GET", fmt.Sprintf("%s/%s/events?since=%d&waitMs=20000", backendapi.PathSessions, s.id, since), nil, &rows)
		if len(rows.Events) == 0 {
			s.t.Fatalf("the event log has no %s", typ)
		}
		since = rows.Next
		for _, data := range rows.Events {
			var e struct {
				Type    string         `json:"type"`
				Payload map[string]any `json:"payload"`
			}
			if err := json.Unmarshal(data, &e); err != nil {
				s.t.Fatal(err)
			}
			if e.Type == typ {
				return e.Payload
			}
		}
	}
}

// An app answers what the simulator page's microphone hears. When the wearer speaks again, the page falls silent, and
// the model learns how much of the answer was heard.
func TestSimulatorPage_Conversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	needAgent(t)
	a := startAgent(w, "modern", false)
	defer func() { a.t = t }()
	for _, language := range []string{"typescript", "python"} {
		t.Run(language, func(t *testing.T) {
			a.t = t
			dir := exampleInto(t, a, language, "assistant")
			talkInPage(t, w, dir, talkingApp(t, dir, language))
		})
	}
}

// talkInPage runs an app of dir in a browser session whose microphone hears somebody speak every six seconds.
func talkInPage(t *testing.T, w *world, dir string, command []string) {
	t.Helper()
	s := openToSound(t, "rayban_display", syllables(6000))
	answer := strings.Repeat("Hello!", 30) // 10.8 s, without pauses
	s.call("POST", backendapi.PathSessions+"/"+s.id+backendapi.PathAssistantScript, json.RawMessage(
		`{"rules":[{"when":{"always":true},"reply":{"text":"`+answer+`"}}]}`), &struct{}{})
	secret := filepath.Join(dir, "secret")
	writeInto(t, secret, s.secret)
	app := exec.Command(command[0], command[1:]...)
	app.Env = append(slices.Clone(w.env), "SERVICE_GLASSES_TRANSPORT=simulator", "SERVICE_GLASSES_SECRET_FILE="+secret,
		"SERVICE_GLASSES_URL=ws"+strings.TrimPrefix(s.b.url, "http")+backendapi.PathSessions+"/"+s.id+"/app")
	var said bytes.Buffer
	app.Stdout, app.Stderr = &said, &said
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = app.Process.Kill()
		_ = app.Wait()
		if t.Failed() {
			t.Logf("the app said: %s", &said)
		}
	})
	heard := s.rowOf(glasses.RowAssistantHeard)
	if ms, _ := heard["audioMs"].(float64); ms < 500 {
		t.Errorf("assistant.heard: got %v, want at least half a second", heard)
	}
	cut := s.rowOf(glasses.RowAssistantInterrupted)
	sound := s.played(300)
	playedMs, _ := cut["playedMs"].(float64)
	ms := float64(len(sound)) / 24
	like := likeness(sound, scriptVoice(answer)[:len(sound)])
	t.Logf("interrupted after %v ms, heard %.0f ms with a likeness of %.3f", playedMs, ms, like)
	if ms < 500 || math.Abs(ms-playedMs) > 1000 || like < 0.9 {
		t.Errorf("the page played %.0f ms with a likeness of %.3f, want the %.0f ms of the truncation", ms, like, playedMs)
	}
}
