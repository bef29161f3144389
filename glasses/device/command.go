package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// Limits. Times are in ms.
const (
	maxPending = 64 // commands without a result
	maxFaults  = 32
	maxSays    = 16       // texts waiting to be spoken
	maxTree    = 56 << 10 // bytes of a tree as JSON; the answer to sim.state must fit in a frame
	lossyDelay = 400
	// longestLate is the delay, including delays set by faults, after which a command times out.
	longestLate = 10_000
)

// command is one command waiting for its result.
type command struct {
	id, typ string
	late    int64           // delay caused by faults and a lossy link, in ms
	faults  []glasses.Fault // faults applied to the command
	arrived bool            // its delay has passed
	done    bool
}

func (d *Device) command(f glasses.Frame) {
	if d.pending >= maxPending && f.Type != glasses.TypeClockCancel { // cancelling a sleep frees capacity
		err := refuse(glasses.CodeBusy, fmt.Sprintf("%d commands are already waiting for their result", maxPending))
		d.put(glasses.TypeResult, f.ID, glasses.Result{Error: err})
		return
	}
	d.pending++
	c := &command{id: f.ID, typ: f.Type}
	if d.state.Link == glasses.LinkLossy && !d.panel.isReal {
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
	refused := d.fault(c, need)
	if c.late >= longestLate {
		c.late, refused = longestLate, reason(glasses.CodeTimeout)
	}
	if refused != nil {
		d.fail(c, refused)
		return
	}
	d.deliver(c, payload)
}

// deliver executes a command when it reaches the glasses. Each part of the glasses receives its commands in order, so
// that a show does not overtake an earlier, delayed one. Clock commands belong to no part, and only their answers are
// delayed.
func (d *Device) deliver(c *command, payload any) {
	part, _, _ := strings.Cut(c.typ, ".")
	at := max(d.now+c.late, d.arrivals[part])
	if part == "clock" || at == d.now {
		d.arrive(c, payload)
		return
	}
	c.late, d.arrivals[part] = at-d.now, at
	if p, ok := payload.(*glasses.PlaybackStart); ok && d.early == nil {
		d.early = newPlayback(c.id, p.SampleRate)
	}
	d.after(c.late, nil, func() {
		c.arrived = true
		d.arrive(c, payload)
	})
}

// arrive executes a command if the model and the state allow it.
func (d *Device) arrive(c *command, payload any) {
	need := needsOf(c.typ)
	err := need.lacks(d.model) // the model may have changed during the delay
	if err == nil {
		err = need.refused(d.state)
	}
	if err != nil {
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

// run executes a command that has passed all checks.
func (d *Device) run(c *command, payload any) {
	switch p := payload.(type) {
	case *glasses.Show:
		d.show(c, p)
	case *glasses.Say:
		d.say(c, p)
	case *glasses.Play:
		d.tell(Ask{Kind: AskPlay, Sound: p.Sound})
		d.ok(c)
	case *glasses.PlaybackStart:
		d.startPlayback(c, p)
	case *glasses.AudioStart:
		d.start(c, &stream{name: glasses.StreamAudio, rate: chunksPerSecond, sampleRate: p.SampleRate})
	case *glasses.TranscriptionStart:
		d.transcription = p
		d.transcribe()
		d.ok(c)
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
		d.sleep(c, p.Ms)
	case *glasses.Cancel:
		d.wake(p.ID)
		d.ok(c)
	default:
		d.plain(c)
	}
}

// sleep answers a command after ms milliseconds, or earlier if wake is called.
func (d *Device) sleep(c *command, ms int64) {
	if ms == 0 {
		d.ok(c)
		return
	}
	d.sleeping[c.id] = c
	d.after(ms, c, func() { d.wake(c.id) })
}

// wake answers the sleeping command with this ID immediately.
func (d *Device) wake(id string) {
	c := d.sleeping[id]
	if c == nil {
		return
	}
	delete(d.sleeping, id)
	d.queue.cancel(c)
	d.ok(c)
}

// plain executes a command that has no payload.
func (d *Device) plain(c *command) {
	switch c.typ {
	case glasses.TypeDisplayClear:
		d.view = clearView()
		d.paint(c, glasses.Result{OK: true})
		return
	case glasses.TypeSpeechStop:
		d.hush()
	case glasses.TypePlaybackEnd:
		d.ok(c)
		d.endPlayback()
		return
	case glasses.TypePlaybackFlush:
		d.flushPlayback(c)
		return
	case glasses.TypeTranscriptionStop:
		d.transcription = nil
		d.transcribe()
	case glasses.TypeAudioStop, glasses.TypeVideoStop, glasses.TypeMotionStop:
		d.stop(strings.TrimSuffix(c.typ, ".stop"))
	}
	d.ok(c)
}

func (d *Device) show(c *command, p *glasses.Show) {
	// The limit applies to the fields of the tree that this build defines, because the answer to sim.state contains
	// only these.
	if raw, _ := json.Marshal(p.Tree); len(raw) > maxTree {
		d.fail(c, refuse(glasses.CodeBadPayload, fmt.Sprintf("the tree is %d bytes long, over the limit of %d", len(raw),
			maxTree)))
		return
	}
	if err := render.CheckImages(p.Tree); err != nil {
		d.fail(c, err)
		return
	}
	d.view = render.Show(d.model, d.view, &p.Tree)
	r := glasses.Result{OK: true, Findings: render.Fit(d.model, d.view)}
	if r.MoreFindings = len(r.Findings) - glasses.MaxFindings; r.MoreFindings > 0 {
		r.Findings = r.Findings[:glasses.MaxFindings]
	} else {
		r.MoreFindings = 0
	}
	d.paint(c, r)
}

func (d *Device) ok(c *command) { d.finish(c, glasses.Result{OK: true}, nil) }

func (d *Device) fail(c *command, err *glasses.Error) {
	d.finish(c, glasses.Result{Error: err}, nil)
}

// finish answers a command after its delay. It must be called only once. body contains the bytes of the result's media.
func (d *Device) finish(c *command, r glasses.Result, body []byte) {
	if c.done {
		return
	}
	c.done = true
	if d.early != nil && d.early.id == c.id {
		d.early = nil
	}
	r.LateMs, r.Faults = c.late, c.faults
	answer := func() {
		d.pending--
		if r.Media != nil {
			d.putBinary(glasses.TypeMedia, c.id, *r.Media, body)
		}
		d.put(glasses.TypeResult, c.id, r)
	}
	if c.arrived || c.late == 0 {
		answer()
		return
	}
	d.after(c.late, nil, answer)
}

// fault applies the first fault that delays c and the first fault that fails c.
func (d *Device) fault(c *command, need needs) (err *glasses.Error) {
	late := false
	kept := []glasses.Fault{}
	take := func(f *glasses.Fault) {
		c.late += f.LatencyMs
		c.faults = append(c.faults, glasses.Fault{Command: f.Command, Code: f.Code, LatencyMs: f.LatencyMs})
		f.Times--
	}
	for _, f := range d.state.Faults {
		applies := f.Command == "" || f.Command == c.typ
		switch {
		case applies && f.Code != "" && err == nil:
			err = need.faultOf(f.Code)
			take(&f)
			if f.Code == glasses.CodeTimeout {
				c.late += longestLate
			}
		case applies && f.Code == "" && !late:
			late = true
			take(&f)
		}
		if f.Times > 0 {
			kept = append(kept, f)
		}
	}
	d.state.Faults = kept
	return err
}
