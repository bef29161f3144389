package device

import (
	"slices"

	"github.com/service-dev/service/glasses"
)

// Kinds of Ask. The host must eventually answer the first six through Answer. The others need no answer. AskShow and
// AskDark are sent only with Options.Hardware, and at most one of them is outstanding at a time.
const (
	AskPhoto = "photo" // a picture with Width
	AskVideo = "video" // a clip of DurationMs at FPS and Width
	AskFrame = "frame" // the next picture of the video stream, with Width
	AskChunk = "chunk" // the next 100 ms of sound at SampleRate
	AskShow  = "show"  // show the view of the latest Snapshot on the panel
	AskDark  = "dark"  // clear the panel

	AskSay       = "say"      // speak Text in Language
	AskHush      = "hush"     // stop speaking
	AskPlay      = "play"     // play Sound
	AskSound     = "sound"    // play PCM at SampleRate, after the sound that is already playing
	AskSilence   = "silence"  // discard the PCM that was not played
	AskListen    = "listen"   // recognise speech in Language; pass it to Control as sim.transcript
	AskUnlisten  = "unlisten" // stop recognising speech
	AskCameraOn  = "camera.on"
	AskCameraOff = "camera.off"
	AskMicOn     = "mic.on"
	AskMicOff    = "mic.off"
)

// Ask is a request to the host.
type Ask struct {
	ID         int    `json:"id"`
	Kind       string `json:"kind"`
	Text       string `json:"text,omitempty"`
	Language   string `json:"language,omitempty"`
	Sound      string `json:"sound,omitempty"` // one of glasses.Sounds
	Width      int    `json:"width,omitempty"` // maximum in pixels; the host scales down a wider picture
	FPS        int    `json:"fps,omitempty"`
	SampleRate int    `json:"sampleRate,omitempty"` // Hz
	DurationMs int64  `json:"durationMs,omitempty"`
	PCM        []byte `json:"-"` // 16-bit little-endian, one channel
}

// Material is the host's answer: a JPEG or PNG of at most MaxPixels, a clip (video/x-motion-jpeg, which is concatenated
// JPEGs), or sound (16-bit little-endian PCM, one channel). Set only Bytes; the device derives the other fields from
// it.
type Material struct {
	Bytes         []byte
	MIME          string
	Width, Height int
	DurationMs    int64
}

type ask struct {
	id     int
	owner  any
	answer func(Material, *glasses.Error)
}

// ask sends an Ask. The host's answer is passed to answer.
func (d *Device) ask(a Ask, owner any, answer func(Material, *glasses.Error)) {
	d.tell(a)
	d.asks = append(d.asks, ask{d.lastAsk, owner, answer})
}

// tell sends an Ask that needs no answer.
func (d *Device) tell(a Ask) {
	d.lastAsk++
	a.ID = d.lastAsk
	d.outs = append(d.outs, Out{Ask: &a})
}

// forget drops the pending asks of owner. Later answers to them are ignored.
func (d *Device) forget(owner any) {
	d.asks = slices.DeleteFunc(d.asks, func(a ask) bool { return a.owner == owner })
}

// Answer passes the host's answer to the Ask with this ID, which is material or an error. An answer that is no longer
// expected is ignored.
func (d *Device) Answer(now int64, id int, m Material, err *glasses.Error) {
	d.catchUp(now)
	i := slices.IndexFunc(d.asks, func(a ask) bool { return a.id == id })
	if i < 0 {
		return
	}
	a := d.asks[i]
	d.asks = slices.Delete(d.asks, i, i+1)
	a.answer(m, err)
}
