package device

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
)

// Bounds and times, in ms where they are times.
const (
	maxPending = 64 // commands whose result is still to come
	maxFaults  = 32
	maxSays    = 16       // that wait to be spoken
	maxTree    = 56 << 10 // bytes of a tree as JSON: what sim.state answers must fit a frame
	lossyDelay = 400
	// longestLate is when an answer that has not come is a timeout: also what a fault makes later never comes.
	longestLate = 10_000
)

// command is one command that waits for its result.
type command struct {
	id, typ string
	late    int64 // ms by which its result comes late
	done    bool
}

func (d *Device) command(f glasses.Frame) {
	if d.pending >= maxPending {
		d.put(glasses.TypeResult, f.ID, glasses.Result{Error: refuse(glasses.CodeBusy, fmt.Sprintf("%d commands wait for their result already", maxPending))})
		return
	}
	d.pending++
	c := &command{id: f.ID, typ: f.Type}
	if d.state.Link == glasses.LinkLossy {
		c.late = lossyDelay
	}
	payload, err := glasses.ParseCommand(f.Type, f.Payload)
	if err != nil {
		d.fail(c, asError(err))
		return
	}
	need := needsOf(f.Type)
	if err := need.lacks(d.model); err != nil {
		d.fail(c, err)
		return
	}
	refused := d.fault(c)
	if c.late >= longestLate {
		c.late, refused = longestLate, reason(glasses.CodeTimeout)
	}
	if refused != nil {
		d.fail(c, refused)
		return
	}
	if err := need.refused(d.state); err != nil {
		d.fail(c, err)
		return
	}
	d.run(c, payload)
}

func asError(err error) *glasses.Error {
	var e *glasses.Error
	if errors.As(err, &e) {
		return e
	}
	return refuse(glasses.CodePlatform, err.Error())
}

// run does a command that nothing stands against.
func (d *Device) run(c *command, payload any) {
	switch p := payload.(type) {
	case *glasses.Show:
		d.show(c, p)
	case *glasses.Say:
		d.say(c, p)
	case *glasses.Play:
		d.tell(Ask{Kind: AskPlay, Sound: p.Sound})
		d.ok(c)
	case *glasses.AudioStart:
		d.start(c, &stream{name: glasses.StreamAudio, rate: chunksPerSecond, sampleRate: p.SampleRate})
	case *glasses.TranscriptionStart:
		d.start(c, &stream{name: glasses.StreamTranscription, language: p.Language})
	case *glasses.VideoStart:
		d.start(c, &stream{name: glasses.StreamVideo, rate: p.FPS, width: min(p.Width, d.model.Camera.Width)})
	case *glasses.MotionStart:
		d.start(c, &stream{name: glasses.StreamMotion, rate: p.Hz})
	case *glasses.Photo:
		d.photo(c, p)
	case *glasses.Video:
		d.video(c, p)
	case *glasses.Announce:
		d.state.Phrases = append([]string{}, p.Phrases...)
		d.ok(c)
	case *glasses.Sleep:
		d.after(p.Ms, nil, func() { d.ok(c) })
	default:
		d.plain(c)
	}
}

// plain does a command without payload.
func (d *Device) plain(c *command) {
	switch c.typ {
	case glasses.TypeDisplayClear:
		d.view = clearView()
	case glasses.TypeSpeechStop:
		d.hush()
	case glasses.TypeAudioStop:
		d.stop(glasses.StreamAudio)
	case glasses.TypeTranscriptionStop:
		d.stop(glasses.StreamTranscription)
	case glasses.TypeVideoStop:
		d.stop(glasses.StreamVideo)
	case glasses.TypeMotionStop:
		d.stop(glasses.StreamMotion)
	}
	d.ok(c)
}

func (d *Device) show(c *command, p *glasses.Show) {
	// It is measured as it is told: the JSON of what this build knows of the tree.
	if raw, _ := json.Marshal(p.Tree); len(raw) > maxTree {
		d.fail(c, refuse(glasses.CodeBadPayload, fmt.Sprintf("the tree is %d bytes, the limit is %d", len(raw), maxTree)))
		return
	}
	if err := render.CheckImages(p.Tree); err != nil {
		d.fail(c, err)
		return
	}
	d.view = render.Clamp(d.model, glasses.View{Tree: &p.Tree})
	d.ok(c)
}

func (d *Device) ok(c *command) { d.finish(c, glasses.Result{OK: true}, nil) }

func (d *Device) fail(c *command, err *glasses.Error) {
	d.finish(c, glasses.Result{Error: err}, nil)
}

// finish answers a command, once, after what makes it late; body are the bytes of the result's media.
func (d *Device) finish(c *command, r glasses.Result, body []byte) {
	if c.done {
		return
	}
	c.done = true
	answer := func() {
		d.pending--
		if r.Media != nil {
			d.putBinary(glasses.TypeMedia, c.id, *r.Media, body)
		}
		d.put(glasses.TypeResult, c.id, r)
	}
	if c.late == 0 {
		answer()
		return
	}
	d.after(c.late, nil, answer)
}

// fault applies the faults that were set for a command: the first that makes it late, and the first that refuses it.
func (d *Device) fault(c *command) (err *glasses.Error) {
	late := false
	kept := []glasses.Fault{}
	for _, f := range d.state.Faults {
		applies := f.Command == "" || f.Command == c.typ
		switch {
		case applies && f.Code != "" && err == nil:
			err = reason(f.Code)
			c.late += f.LatencyMs
			if f.Code == glasses.CodeTimeout {
				c.late += longestLate
			}
			f.Times--
		case applies && f.Code == "" && !late:
			late = true
			c.late += f.LatencyMs
			f.Times--
		}
		if f.Times > 0 {
			kept = append(kept, f)
		}
	}
	d.state.Faults = kept
	return err
}
