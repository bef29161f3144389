package device

import (
	"slices"

	"github.com/service-dev/service/proto/glasses"
)

const (
	chunksPerSecond = 10
	// mostBehind is how far a stream may be behind, in ms, before it leaves out what it missed (a machine that slept).
	mostBehind = 1000
)

// stream is one that runs.
type stream struct {
	name       string
	rate       int // frames a second; 0 for transcription, which has none of its own
	width      int
	sampleRate int
	language   string

	begin, n int64 // frame n is due at begin + n*1000/rate
	waiting  bool  // an ask for a frame is out
	heard    int   // chunks that were played of sim.microphone's sound
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
		d.fail(c, refuse(glasses.CodeBusy, s.name+" runs already"))
		return
	}
	d.ok(c)
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
	d.state.Running = inOrder([]string{glasses.StreamAudio, glasses.StreamTranscription, glasses.StreamVideo, glasses.StreamMotion}, names)
}

// schedule puts the next frame of a stream into the queue.
func (d *Device) schedule(s *stream) {
	if s.rate == 0 {
		return
	}
	s.n++
	if missed := (d.goal - s.begin) * int64(s.rate) / 1000; d.goal-d.due(s) > mostBehind {
		s.n = missed
	}
	d.queue.add(d.due(s), s, func() {
		d.beat(s)
		d.schedule(s)
	})
}

func (d *Device) due(s *stream) int64 { return s.begin + s.n*1000/int64(s.rate) }

// beat lets one frame of a stream out. A host that still owes the last one is not asked for another.
func (d *Device) beat(s *stream) {
	switch {
	case s.name == glasses.StreamMotion:
		d.event(glasses.TypeMotion, d.motion)
	case s.name == glasses.StreamVideo && d.camera != nil:
		d.frame(Material{Bytes: d.camera.at(s.width)}, s.width)
	case s.name == glasses.StreamAudio && d.sound != nil:
		d.chunk(d.sound.Chunk(s.heard, s.sampleRate), s.sampleRate)
		s.heard++
	case s.waiting:
	case s.name == glasses.StreamVideo:
		s.waiting = true
		d.ask(Ask{Kind: AskFrame, Width: s.width}, s, func(m Material, err *glasses.Error) {
			s.waiting = false
			if err == nil {
				d.frame(m, s.width)
			}
		})
	case s.name == glasses.StreamAudio:
		s.waiting = true
		d.ask(Ask{Kind: AskChunk, SampleRate: s.sampleRate}, s, func(m Material, err *glasses.Error) {
			s.waiting = false
			if err == nil {
				d.chunk(m.Bytes[:min(len(m.Bytes), maxChunk)&^1], s.sampleRate)
			}
		})
	}
}
