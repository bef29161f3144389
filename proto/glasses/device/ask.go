package device

import (
	"slices"

	"github.com/service-dev/service/proto/glasses"
)

// Kinds of Ask. The first four must be answered by Answer, sooner or later; the others are for the host to do.
const (
	AskPhoto = "photo" // a picture of Width
	AskVideo = "video" // a clip of DurationMs at FPS and Width
	AskFrame = "frame" // the next picture of the stream, of Width
	AskChunk = "chunk" // the next 100 ms of sound at SampleRate

	AskSay       = "say"      // speak Text in Language
	AskHush      = "hush"     // stop speaking
	AskPlay      = "play"     // play Sound
	AskListen    = "listen"   // hear speech in Language: give what was said by Control with sim.transcript
	AskUnlisten  = "unlisten" // no longer
	AskCameraOn  = "camera.on"
	AskCameraOff = "camera.off"
	AskMicOn     = "mic.on"
	AskMicOff    = "mic.off"
)

// Ask is what the host is to do.
type Ask struct {
	ID         int    `json:"id"`
	Kind       string `json:"kind"`
	Text       string `json:"text,omitempty"`
	Language   string `json:"language,omitempty"`
	Sound      string `json:"sound,omitempty"` // one of glasses.Sounds
	Width      int    `json:"width,omitempty"` // pixels at most; a wider picture is scaled down
	FPS        int    `json:"fps,omitempty"`
	SampleRate int    `json:"sampleRate,omitempty"` // Hz
	DurationMs int64  `json:"durationMs,omitempty"`
}

// Material is what the host answers with: a JPEG or PNG of at most MaxPixels; a clip (video/x-motion-jpeg: JPEGs one
// after the other); or sound (16-bit little-endian PCM, one channel). Only Bytes counts: the glasses look for themselves.
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

// ask lets an Ask out that must be answered.
func (d *Device) ask(a Ask, owner any, answer func(Material, *glasses.Error)) {
	d.tell(a)
	d.asks = append(d.asks, ask{d.lastAsk, owner, answer})
}

// tell lets an Ask out.
func (d *Device) tell(a Ask) {
	d.lastAsk++
	a.ID = d.lastAsk
	d.outs = append(d.outs, Out{Ask: &a})
}

// forget makes the answers to owner's asks unwanted.
func (d *Device) forget(owner any) {
	d.asks = slices.DeleteFunc(d.asks, func(a ask) bool { return a.owner == owner })
}

// Answer is the host's answer to the Ask of this id: material, or why there is none. An answer that nobody waits for any
// more is ignored.
func (d *Device) Answer(now int64, id int, m Material, err *glasses.Error) {
	d.Tick(now)
	i := slices.IndexFunc(d.asks, func(a ask) bool { return a.id == id })
	if i < 0 {
		return
	}
	a := d.asks[i]
	d.asks = slices.Delete(d.asks, i, i+1)
	a.answer(m, err)
}
