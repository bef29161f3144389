package device

import "github.com/service-dev/service/glasses"

// Transcription is in effect from transcription.start to transcription.stop. It is active only while the state and the
// model allow it. The glasses resume it when they are unfolded, reconnect, get the permission, or change to a model
// with a microphone.

// stand restores the standing state of the apps, which the service stores.
func (d *Device) stand(p glasses.Standing) {
	d.state.Phrases = append([]string{}, p.Phrases...)
	d.transcription = p.Transcription
	if p.Transcription == nil {
		d.transcribe() // no app is attached that needs a notification
		return
	}
	d.settleTranscription()
}

// prevented returns the error with which transcription.start would fail now, or nil if transcription can run.
func (d *Device) prevented() *glasses.Error {
	need := needsOf(glasses.TypeTranscriptionStart)
	if err := need.lacks(d.model); err != nil {
		return err
	}
	return need.refused(d.state)
}

// settleTranscription resumes or ends transcription as the state requires, and sends an event if it did. It is called
// before the events of the cause are sent, so that an app that reacts to the cause has already received the
// transcription event.
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

// transcribe starts or stops the stream, depending on the standing transcription and the state.
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

// hear passes speech to the app. It returns an error if no app can receive it.
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
	return refuse(glasses.CodePaused, "no app listens: the app has not started transcription")
}
