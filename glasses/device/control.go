package device

import (
	"fmt"
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
	"github.com/service-dev/service/glasses/render"
)

// control executes a control frame and returns the state and the view after it.
func (d *Device) control(typ string, payload, body []byte) glasses.Result {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	r := glasses.Result{Error: d.change(typ, payload, body)}
	r.OK = r.Error == nil
	state, view := cloneState(d.state), d.view
	r.State, r.View, r.Unconfirmed, r.Confirmed = &state, &view, d.unconfirmed(), d.confirmed()
	return r
}

func (d *Device) change(typ string, payload, body []byte) *glasses.Error {
	parsed, err := glasses.ParseControl(typ, payload)
	if err != nil {
		return asError(err)
	}
	switch p := parsed.(type) {
	case *glasses.Input:
		return d.input(*p)
	case *glasses.Transcript:
		return d.hear(p)
	case *glasses.StatePatch:
		d.patch(*p)
	case *glasses.Motion:
		if !d.model.Motion {
			return refuse(glasses.CodeUnsupported, d.model.ID+" has no motion sensor")
		}
		d.motion = *p
	case *glasses.Fault:
		return d.setFault(*p)
	case *glasses.DeviceChoice:
		d.become(p.DeviceModel)
	case *glasses.Standing:
		d.stand(*p)
	case *glasses.Advance:
		return refuse(glasses.CodeUnsupported, "this session runs in real time")
	case *glasses.Microphone:
		return d.putBeforeMicrophone(body, p.Transcript)
	default:
		return d.putBeforeCamera(body)
	}
	return nil
}

// input performs an action of the wearer, which is an input or the selection of a target.
func (d *Device) input(in glasses.Input) *glasses.Error {
	if in.ByTarget() {
		return d.reach(in.Target)
	}
	if !d.model.HasInput(in.Kind) {
		return refuse(glasses.CodeUnsupported, fmt.Sprintf("%s has no %s, only %v", d.model.ID, in.Kind,
			d.model.Inputs))
	}
	if d.state.Link == glasses.LinkLost {
		return reason(glasses.CodeNotConnected)
	}
	d.perform(in)
	return nil
}

// perform applies an input to the panel and reports it.
func (d *Device) perform(in glasses.Input) {
	before := d.view
	d.view, in.Target = render.Use(d.model, d.view, in)
	d.event(glasses.TypeInput, in)
	if d.view.Focus != before.Focus || d.view.Scroll != before.Scroll {
		d.repaint()
	}
}

// reach performs all inputs that select target, before the app can respond.
func (d *Device) reach(target string) *glasses.Error {
	switch {
	case d.model.Panel == nil:
		return refuse(glasses.CodeUnsupported, d.model.ID+" has no panel with targets")
	case d.state.Link == glasses.LinkLost:
		return reason(glasses.CodeNotConnected)
	case d.state.Hinge == glasses.HingeFolded:
		return refuse(glasses.CodeHingeClosed, "the glasses are folded: the wearer sees no targets")
	case !d.state.Worn:
		return refuse(glasses.CodePaused, "the glasses are not worn: the wearer sees no targets")
	}
	inputs, err := render.Reach(d.model, d.view, target)
	for _, in := range inputs {
		d.perform(in)
	}
	return err
}

// setFault stores a fault and logs it.
func (d *Device) setFault(f glasses.Fault) *glasses.Error {
	if f.Clear {
		d.state.Faults = []glasses.Fault{}
	}
	if f.Code != "" || f.LatencyMs > 0 {
		if len(d.state.Faults) >= maxFaults {
			return refuse(glasses.CodeBusy, fmt.Sprintf("%d faults are already waiting", maxFaults))
		}
		kept := f
		kept.Clear = false
		d.state.Faults = append(d.state.Faults, kept)
	}
	d.event(glasses.TypeFault, f)
	return nil
}

// become switches to the model with this ID and clears the panel. It stops all activity. It does not stop transcription
// if the new model has a microphone.
func (d *Device) become(id string) {
	m, ok := glasses.Model(id)
	if !ok || m.ID == d.model.ID {
		return
	}
	d.model = m
	d.settleTranscription()
	d.event(glasses.TypeDevice, glasses.DeviceChange{DeviceModel: m})
	d.view, d.camera, d.sound, d.transcript = clearView(), nil, nil, nil
	d.dropPictures(refuse(glasses.CodePlatform, "the device model was changed"))
	d.repaint()
	d.hush()
	if d.playback != nil {
		reason := glasses.CodePlatform
		if !m.Speaker {
			reason = glasses.CodeUnsupported
		}
		d.stopPlayback(reason)
	}
	for _, s := range slices.Clone(d.streams) {
		if s.name != glasses.StreamTranscription {
			d.stop(s.name)
		}
	}
	if d.capture != nil {
		d.abandon(refuse(glasses.CodePlatform, "the device model was changed"))
	}
}

// putBeforeCamera sets the picture that the camera captures. An empty body switches back to the host's camera.
func (d *Device) putBeforeCamera(body []byte) *glasses.Error {
	if d.model.Camera == nil {
		return refuse(glasses.CodeUnsupported, d.model.ID+" has no camera")
	}
	if len(body) == 0 {
		d.camera = nil
		return nil
	}
	p, err := readPicture(body)
	if err == nil {
		d.camera = p
	}
	return err
}

// maxLateMs is how long after a sound its transcript may end. It is less than the silence that ends a turn.
const maxLateMs = 300

// putBeforeMicrophone sets the sound that the microphone captures once, starting now or at the next audio.start. An
// empty body switches back to the host's microphone.
func (d *Device) putBeforeMicrophone(body []byte, transcript []glasses.Words) *glasses.Error {
	if !d.model.Microphone {
		return refuse(glasses.CodeUnsupported, d.model.ID+" has no microphone")
	}
	if len(body) == 0 {
		d.sound, d.transcript = nil, nil
		return nil
	}
	sound, err := media.ParseWAV(body)
	if err != nil {
		return refuse(glasses.CodeBadPayload, err.Error())
	}
	// Speech recognisers often report an end that is slightly late.
	if n := len(transcript); n > 0 && transcript[n-1].EndMs > sound.Ms()+maxLateMs {
		return refuse(glasses.CodeBadPayload, fmt.Sprintf("the transcript ends at %d ms, over %d ms after the sound, "+
			"which ends at %d ms", transcript[n-1].EndMs, maxLateMs, sound.Ms()))
	}
	d.sound, d.transcript = sound, transcript
	if s := d.running(glasses.StreamAudio); s != nil {
		s.heard = 0
	}
	return nil
}
