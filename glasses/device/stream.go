package device

import (
	"slices"
	"strings"

	"github.com/service-dev/service/glasses"
)

const (
	chunksPerSecond = 10
	// maxLag is how far a stream may lag before it skips missed frames, in ms. Streams lag, for example, after the
	// machine was asleep.
	maxLag = 1000
)

// stream is an active stream.
type stream struct {
	name       string
	rate       int // frames per second; 0 for transcription
	width      int
	sampleRate int
	language   string

	begin, n int64 // frame n is due at begin + n*1000/rate
	waiting  bool  // the host has been asked for a frame
	heard    int   // number of chunks already sent from the sound of sim.microphone
}

func (d *Device) running(name string) *stream {
	for _, s := range d.streams {
		if s.name == name {
			return s
		}
	}
	return nil
}

func (d *Device) start(c *command, s *stream) {
	if d.running(s.name) != nil {
		d.fail(c, refuse(glasses.CodeBusy, s.name+" is already running"))
		return
	}
	d.ok(c)
	d.begin(s)
}

// begin starts a stream that is not running.
func (d *Device) begin(s *stream) {
	d.streams = append(d.streams, s)
	d.listRunning()
	switch s.name {
	case glasses.StreamAudio:
		d.tell(Ask{Kind: AskMicOn, SampleRate: s.sampleRate})
	case glasses.StreamTranscription:
		d.tell(Ask{Kind: AskListen, Language: s.language})
	case glasses.StreamVideo:
		d.tell(Ask{Kind: AskCameraOn, Width: s.width, FPS: s.rate})
	}
	s.begin = d.now
	d.schedule(s)
}

func (d *Device) stop(name string) {
	s := d.running(name)
	if s == nil {
		return
	}
	d.queue.cancel(s)
	d.forget(s)
	d.streams = slices.DeleteFunc(d.streams, func(other *stream) bool { return other == s })
	d.listRunning()
	switch name {
	case glasses.StreamAudio:
		d.tell(Ask{Kind: AskMicOff})
	case glasses.StreamTranscription:
		d.tell(Ask{Kind: AskUnlisten})
	case glasses.StreamVideo:
		d.tell(Ask{Kind: AskCameraOff})
	}
}

func (d *Device) listRunning() {
	names := []string{}
	for _, s := range d.streams {
		names = append(names, s.name)
	}
	order := []string{glasses.StreamAudio, glasses.StreamTranscription, glasses.StreamVideo, glasses.StreamMotion}
	d.state.Running = inOrder(order, names)
}

// schedule queues the next frame of a stream.
func (d *Device) schedule(s *stream) {
	if s.rate == 0 {
		return
	}
	s.n++
	if missed := (d.goal - s.begin) * int64(s.rate) / 1000; d.goal-d.due(s) > maxLag {
		s.n = missed
	}
	d.queue.add(d.due(s), s, func() {
		d.emit(s)
		d.schedule(s)
	})
}

func (d *Device) due(s *stream) int64 { return s.begin + s.n*1000/int64(s.rate) }

// emit sends one frame of a stream. It does not ask the host for a frame while an earlier request is outstanding.
func (d *Device) emit(s *stream) {
	switch {
	case s.name == glasses.StreamMotion:
		d.event(glasses.TypeMotion, d.motion)
	case s.name == glasses.StreamVideo && d.camera != nil:
		d.frame(Material{Bytes: d.camera.at(s.width)}, s.width)
	case s.name == glasses.StreamAudio && d.sound != nil:
		s.heard++
		d.chunk(d.sound.Chunk(s.heard-1, s.sampleRate), s.sampleRate, d.saidBetween(s.heard-1, s.heard))
	case s.waiting:
	case s.name == glasses.StreamVideo:
		d.askFrame(s, Ask{Kind: AskFrame, Width: s.width}, func(m Material) { d.frame(m, s.width) })
	case s.name == glasses.StreamAudio:
		d.askFrame(s, Ask{Kind: AskChunk, SampleRate: s.sampleRate}, func(m Material) {
			d.chunk(m.Bytes[:min(len(m.Bytes), maxChunk)&^1], s.sampleRate, "")
		})
	}
}

func (d *Device) askFrame(s *stream, a Ask, send func(Material)) {
	s.waiting = true
	d.ask(a, s, func(m Material, err *glasses.Error) {
		s.waiting = false
		if err == nil {
			send(m)
		}
	})
}

// saidBetween returns what is said in the sound of sim.microphone and ends in these chunks.
func (d *Device) saidBetween(first, end int) string {
	const chunkMs = 1000 / chunksPerSecond
	var said []string
	for _, w := range d.transcript {
		if int64(first)*chunkMs < w.EndMs && w.EndMs <= int64(end)*chunkMs {
			said = append(said, w.Text)
		}
	}
	return strings.Join(said, " ")
}
