package device

import (
	"bytes"
	"encoding/json"

	"github.com/service-dev/service/glasses"
)

// maxUnplayed bounds the sound that waits to be played, in seconds.
const maxUnplayed = 60

// playback is the sound of one playback.start. Sound is counted in samples. It plays in runs: a run begins when a
// chunk arrives while nothing is playing, and ends when everything that has arrived was played.
type playback struct {
	id       string
	rate     int64
	received int64
	begin    int64    // when the current run began, in ms
	before   int64    // what was played before this run
	running  bool     // whether a run is in progress
	begun    bool     // whether there has been a run
	ended    bool     // whether the app has sent everything
	waiting  [][]byte // chunks that arrived before their playback.start
}

func newPlayback(id string, rate int) *playback { return &playback{id: id, rate: int64(rate)} }

// played returns the number of samples that were played at the time now.
func (p *playback) played(now int64) int64 {
	if !p.running {
		return p.received
	}
	return min(p.before+(now-p.begin)*p.rate/1000, p.received)
}

func (p *playback) playedMs(now int64) int64 { return p.played(now) * 1000 / p.rate }

func (d *Device) startPlayback(c *command, start *glasses.PlaybackStart) {
	if d.playback != nil {
		d.fail(c, refuse(glasses.CodeBusy, "playback is already running"))
		return
	}
	p := newPlayback(c.id, start.SampleRate)
	if d.early != nil && d.early.id == c.id {
		p = d.early
	}
	d.playback, d.played = p, 0
	d.ok(c)
	waiting := p.waiting
	p.received, p.waiting = 0, nil
	for _, pcm := range waiting {
		d.playChunk(pcm)
	}
}

// takeChunk plays a chunk of the running playback, or keeps it for a playback.start that is on its way. It ignores any
// other chunk.
func (d *Device) takeChunk(payload, body []byte) {
	var chunk glasses.PlaybackChunk
	if glasses.CheckPlaybackChunk(payload, body) != nil || json.Unmarshal(payload, &chunk) != nil {
		return
	}
	switch p, early := d.playback, d.early; {
	case p != nil && p.id == chunk.Playback && !p.ended:
		d.playChunk(body)
	case early != nil && early.id == chunk.Playback && early.received <= maxUnplayed*early.rate:
		// One chunk more than allowed is kept, so that playback stops as soon as it starts.
		early.waiting = append(early.waiting, bytes.Clone(body))
		early.received += int64(len(body) / 2)
	}
}

// playChunk plays a chunk of the running playback, if there still is one.
func (d *Device) playChunk(pcm []byte) {
	p := d.playback
	if p == nil {
		return
	}
	samples := int64(len(pcm) / 2)
	if p.received-p.played(d.now)+samples > maxUnplayed*p.rate {
		d.stopPlayback(glasses.CodeBusy)
		return
	}
	d.tell(Ask{Kind: AskSound, SampleRate: int(p.rate), PCM: pcm})
	if !p.running {
		p.running, p.begin, p.before = true, d.now, p.received
	}
	if !p.begun {
		p.begun = true
		d.playbackEvent(p, glasses.PlaybackStarted, "")
	}
	p.received += samples
	d.queue.cancel(p)
	length := ((p.received-p.before)*1000 + p.rate - 1) / p.rate
	d.queue.add(p.begin+length, p, func() {
		p.running = false
		if p.ended {
			d.finishPlayback(glasses.PlaybackFinished, "")
		}
	})
}

// endPlayback ends playback once everything that has arrived was played.
func (d *Device) endPlayback() {
	p := d.playback
	if p == nil {
		return
	}
	p.ended = true
	if !p.running {
		d.finishPlayback(glasses.PlaybackFinished, "")
	}
}

// flushPlayback ends playback at once. The result contains what was played, also if playback has just ended by itself.
func (d *Device) flushPlayback(c *command) {
	played := d.played
	if d.playback != nil {
		played = d.playback.playedMs(d.now)
	}
	d.finish(c, glasses.Result{OK: true, PlayedMs: &played}, nil)
	if d.playback != nil {
		d.stopPlayback("")
	}
}

// stopPlayback discards what was not played. reason is "" if the app has asked for it.
func (d *Device) stopPlayback(reason string) {
	d.tell(Ask{Kind: AskSilence})
	d.finishPlayback(glasses.PlaybackStopped, reason)
}

func (d *Device) finishPlayback(state, reason string) {
	p := d.playback
	d.queue.cancel(p)
	d.playback, d.played = nil, p.playedMs(d.now)
	d.playbackEvent(p, state, reason)
}

func (d *Device) playbackEvent(p *playback, state, reason string) {
	d.event(glasses.TypePlayback, glasses.PlaybackState{
		ID: p.id, State: state, PlayedMs: p.playedMs(d.now), Reason: reason,
	})
}
