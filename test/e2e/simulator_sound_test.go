//go:build unix

package e2e

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
)

// recordSound keeps what a page plays: window.played has the samples, and window.playedRate their rate.
const recordSound = `{
	window.played = [];
	const connect = AudioNode.prototype.connect;
	const recorders = new WeakMap();
	AudioNode.prototype.connect = function (to, ...more) {
		if (to instanceof AudioDestinationNode && !(this instanceof ScriptProcessorNode)) {
			const context = this.context;
			let recorder = recorders.get(context);
			if (!recorder) {
				recorder = context.createScriptProcessor(4096, 1, 1);
				recorder.onaudioprocess = (e) => {
					window.playedRate = context.sampleRate;
					window.played.push(e.inputBuffer.getChannelData(0).slice());
				};
				recorders.set(context, recorder);
				connect.call(recorder, context.destination);
			}
			connect.call(this, recorder);
		}
		return connect.call(this, to, ...more);
	};
}`

// openToSound opens the simulator page in a browser whose microphone hears speech for a minute, and records what the
// page plays.
func openToSound(t *testing.T, model string) *simulated {
	t.Helper()
	wav := filepath.Join(t.TempDir(), "speech.wav")
	if err := os.WriteFile(wav, speechWAV(60_000), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSimulated(t, model, chromedp.Flag("use-file-for-fake-audio-capture", wav))
	if _, err := chromedp.Call(s.browser, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: recordSound}); err != nil {
		t.Fatal(err)
	}
	run(t, s.browser, "reload", chromedp.Reload(), until(`document.querySelector("#simulator")?.dataset.live === "yes"`),
		chromedp.Click("#tab-glasses")) // browsers play no sound before a click
	return s
}

// played returns the sound that the page has played since the last call, at 24,000 Hz and without the silence around
// it, once ms of silence follow.
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
	var all []float64
	first, end := -1, 0
	for i := 0; i < len(data); i += 4 {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i:])))
		if all = append(all, v); v != 0 {
			end = len(all)
			if first < 0 {
				first = len(all) - 1
			}
		}
	}
	return resampled(all[first:end], evaluate[float64](s.t, s.browser, `window.playedRate`), 24000)
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
	s := openToSound(t, "system_audio")
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
	if like := likeness(heard, floats(tune(2000))); len(heard) < 24*1980 || len(heard) > 24*2020 || like < 0.95 {
		t.Errorf("the page played %d ms with a likeness of %.3f, want 2000 ms and 0.95", len(heard)/24, like)
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
	if ms := int64(len(heard) / 24); ms > stopped.PlayedMs+1000 || like < 0.95 {
		t.Errorf("the page played %d ms with a likeness of %.3f, want the %d ms of the event", ms, like, stopped.PlayedMs)
	}
}
