package device

import (
	"fmt"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/media"
	"github.com/service-dev/service/proto/glasses/render"
)

// control does a control frame and tells the state and view after it.
func (d *Device) control(typ string, payload, body []byte) glasses.Result {
	if len(payload) == 0 {
		payload = []byte("{}")
	}
	r := glasses.Result{Error: d.change(typ, payload, body)}
	r.OK = r.Error == nil
	state, view := cloneState(d.state), d.view
	r.State, r.View = &state, &view
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
		if d.running(glasses.StreamTranscription) == nil {
			return refuse(glasses.CodePaused, "the app has not started transcription: nobody listens")
		}
		d.event(glasses.TypeTranscript, p)
	case *glasses.StatePatch:
		d.patch(*p)
	case *glasses.Motion:
		if !d.model.Motion {
			return refuse(glasses.CodeUnsupported, d.model.ID+" has no motion")
		}
		d.motion = *p
	case *glasses.Fault:
		return d.setFault(*p)
	case *glasses.DeviceChoice:
		d.become(p.DeviceModel)
	case *glasses.Advance:
		return refuse(glasses.CodeUnsupported, "the clock of this session is the machine's own")
	default:
		if typ == glasses.SimCamera {
			return d.putBeforeCamera(body)
		}
		return d.putBeforeMicrophone(body)
	}
	return nil
}

// input lets the wearer do something.
func (d *Device) input(in glasses.Input) *glasses.Error {
	if !d.model.HasInput(in.Kind) {
		return refuse(glasses.CodeUnsupported, fmt.Sprintf("%s has no %s, only %v", d.model.ID, in.Kind, d.model.Inputs))
	}
	if d.state.Link == glasses.LinkLost {
		return reason(glasses.CodeNotConnected)
	}
	in.Target = ""
	if d.view.Tree != nil && d.model.Panel != nil {
		in.Target = d.touch(in)
	}
	d.event(glasses.TypeInput, in)
	return nil
}

// touch does to the panel what an input does, and names the node that it meant. Models without select or navigate make
// do with what they have: a tap without a place selects, a swipe navigates.
func (d *Device) touch(in glasses.Input) string {
	placed := in.X != 0 || in.Y != 0
	switch {
	case in.Kind == glasses.InputTap && placed:
		hit, ok := render.Hit(d.model, d.view, in.X, in.Y)
		if !ok {
			return ""
		}
		for i, t := range render.Targets(d.model, d.view) {
			if t.Path == hit.Path {
				d.view = render.Clamp(d.model, glasses.View{Tree: d.view.Tree, Focus: i, Scroll: d.view.Scroll})
			}
		}
		return hit.ID
	case in.Kind == glasses.InputNavigate, in.Kind == glasses.InputSwipe && !d.model.HasInput(glasses.InputNavigate):
		d.view = render.Navigate(d.model, d.view, in.Direction)
		return d.focused()
	case in.Kind == glasses.InputSelect, in.Kind == glasses.InputTap && !d.model.HasInput(glasses.InputSelect):
		return d.focused()
	}
	return ""
}

// focused is the id of the node that has the focus.
func (d *Device) focused() string {
	targets := render.Targets(d.model, d.view)
	if d.view.Focus < 0 || d.view.Focus >= len(targets) {
		return ""
	}
	return targets[d.view.Focus].ID
}

// setFault remembers a fault and tells of it.
func (d *Device) setFault(f glasses.Fault) *glasses.Error {
	if f.Clear {
		d.state.Faults = []glasses.Fault{}
	}
	if f.Code != "" || f.LatencyMs > 0 {
		if len(d.state.Faults) >= maxFaults {
			return refuse(glasses.CodeBusy, fmt.Sprintf("%d faults wait already", maxFaults))
		}
		kept := f
		kept.Clear = false
		d.state.Faults = append(d.state.Faults, kept)
	}
	d.event(glasses.TypeFault, f)
	return nil
}

// become makes other glasses of these: nothing runs on them and they show nothing.
func (d *Device) become(id string) {
	m, ok := glasses.Model(id)
	if !ok || m.ID == d.model.ID {
		return
	}
	d.model = m
	d.event(glasses.TypeDevice, glasses.DeviceChange{DeviceModel: m})
	d.view, d.camera, d.sound = clearView(), nil, nil
	d.hush()
	for len(d.streams) > 0 {
		d.stop(d.streams[0].name)
	}
	if d.capture != nil {
		d.abandon(refuse(glasses.CodePlatform, "other glasses were put on"))
	}
}

// putBeforeCamera takes what sim.camera shows; no bytes give the camera back to the host.
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

// putBeforeMicrophone takes what sim.microphone plays, once, from now on or from the next audio.start on.
func (d *Device) putBeforeMicrophone(body []byte) *glasses.Error {
	if !d.model.Microphone {
		return refuse(glasses.CodeUnsupported, d.model.ID+" has no microphone")
	}
	if len(body) == 0 {
		d.sound = nil
		return nil
	}
	sound, err := media.ParseWAV(body)
	if err != nil {
		return refuse(glasses.CodeBadPayload, err.Error())
	}
	d.sound = sound
	if s := d.running(glasses.StreamAudio); s != nil {
		s.heard = 0
	}
	return nil
}
