package device

import "github.com/service-dev/service/proto/glasses"

// Transcription stands from transcription.start to transcription.stop. It runs while nothing prevents it: the glasses
// resume it when they are unfolded, back in reach, allowed to, or of a model that can.

// stand restores what apps set, as the service remembers it.
func (d *Device) stand(p glasses.Standing) {
	d.state.Phrases = append([]string{}, p.Phrases...)
	d.transcription = p.Transcription
	if p.Transcription == nil {
		d.transcribe() // no app is left to be told
		return
	}
	d.settleTranscription()
}

// prevented returns why transcription cannot run now, as transcription.start would be refused; nil if it can.
func (d *Device) prevented() *glasses.Error {
	need := needsOf(glasses.TypeTranscriptionStart)
	if err := need.lacks(d.model); err != nil {
		return err
	}
	return need.refused(d.state)
}

// settleTranscription resumes or ends transcription as the state says, and reports a change to the apps. The event must
// come before those that caused it, so that an app which reacts to one of them knows already.
func (d *Device) settleTranscription() {
	if d.transcription == nil {
		return
	}
	was := d.running(glasses.StreamTranscription) != nil
	d.transcribe()
	err := d.prevented()
	switch {
	case was && err != nil:
		d.event(glasses.TypeTranscription, glasses.TranscriptionState{Reason: err.Code, Part: err.Part, By: err.By})
	case !was && err == nil:
		d.event(glasses.TypeTranscription, glasses.TranscriptionState{Running: true})
	}
}

// transcribe makes the stream agree with what stands and with the state.
func (d *Device) transcribe() {
	s := d.running(glasses.StreamTranscription)
	shouldRun := d.transcription != nil && d.prevented() == nil
	if s != nil && (!shouldRun || s.language != d.transcription.Language) {
		d.stop(s.name)
		s = nil
	}
	if s == nil && shouldRun {
		d.begin(&stream{name: glasses.StreamTranscription, language: d.transcription.Language})
	}
}

// hear passes on what somebody says, or returns why nobody listens.
func (d *Device) hear(t *glasses.Transcript) *glasses.Error {
	if d.running(glasses.StreamTranscription) != nil {
		d.event(glasses.TypeTranscript, t)
		return nil
	}
	if err := d.prevented(); err != nil {
		heard := *err
		heard.Message = "nobody listens: " + err.Message
		return &heard
	}
	return refuse(glasses.CodePaused, "nobody listens: the app has not started transcription")
}
