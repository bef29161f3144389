package device

import (
	"slices"

	"github.com/service-dev/service/proto/glasses"
)

// needs is what a command needs of the model and of the state, in the order in which it is refused.
type needs struct {
	part   string // panel, camera, microphone, speaker, motion
	link   bool
	open   bool     // not folded
	cool   bool     // not thermal_critical
	worn   bool     // on the nose
	grants []string // permissions, and parts that must not be switched off
	calm   bool     // no call
}

// needsOf is the table of commands. Those that stop something need only the link: what does not run is stopped already.
func needsOf(typ string) needs {
	camera, mic, speech := glasses.PartCamera, glasses.PartMicrophone, glasses.PartSpeech
	switch typ {
	case glasses.TypeDisplayShow:
		return needs{part: "panel", link: true, open: true, cool: true, worn: true}
	case glasses.TypeSpeechSay:
		return needs{part: "speaker", link: true, open: true, worn: true, grants: []string{speech}, calm: true}
	case glasses.TypeSoundPlay:
		return needs{part: "speaker", link: true, open: true, worn: true, calm: true}
	case glasses.TypeAudioStart:
		return needs{part: mic, link: true, open: true, grants: []string{mic}, calm: true}
	case glasses.TypeTranscriptionStart:
		return needs{part: mic, link: true, open: true, grants: []string{mic, speech}, calm: true}
	case glasses.TypeVideoStart, glasses.TypeCameraPhoto, glasses.TypeCameraVideo:
		return needs{part: camera, link: true, open: true, cool: true, grants: []string{camera}}
	case glasses.TypeMotionStart:
		return needs{part: "motion", link: true}
	case glasses.TypePhrasesAnnounce, glasses.TypeClockSleep:
		return needs{}
	}
	return needs{link: true}
}

// lacks tells that the model has no such part.
func (n needs) lacks(m glasses.DeviceModel) *glasses.Error {
	has := true
	switch n.part {
	case "panel":
		has = m.Panel != nil
	case "camera":
		has = m.Camera != nil
	case "microphone":
		has = m.Microphone
	case "speaker":
		has = m.Speaker
	case "motion":
		has = m.Motion
	}
	if has {
		return nil
	}
	return refuse(glasses.CodeUnsupported, m.ID+" has no "+n.part)
}

// refused tells what in the state stands against it.
func (n needs) refused(s glasses.State) *glasses.Error {
	switch {
	case n.link && s.Link == glasses.LinkLost:
		return reason(glasses.CodeNotConnected)
	case n.open && s.Hinge == glasses.HingeFolded:
		return reason(glasses.CodeHingeClosed)
	case n.cool && s.Thermal == glasses.ThermalCritical:
		return reason(glasses.CodeThermalCritical)
	case n.worn && !s.Worn:
		return reason(glasses.CodePaused)
	}
	for _, part := range n.grants {
		if s.Permissions[part] == glasses.PermissionDenied {
			return refuse(glasses.CodePermissionDenied, "the wearer did not allow "+part)
		}
	}
	for _, part := range n.grants {
		if slices.Contains(s.Disabled, part) {
			return refuse(glasses.CodeDisabledByUser, "the wearer switched "+part+" off")
		}
	}
	if n.calm && s.Call {
		return reason(glasses.CodeBusy)
	}
	return nil
}

// reason is the refusal of a code in words; faults use the same, so that an app cannot tell them from the real thing.
func reason(code string) *glasses.Error {
	words := map[string]string{
		glasses.CodeNotConnected: "the glasses are out of reach", glasses.CodePermissionDenied: "the wearer did not allow it",
		glasses.CodeThermalCritical: "the glasses are too hot", glasses.CodeHingeClosed: "the glasses are folded",
		glasses.CodeBusy: "a call is on", glasses.CodePaused: "the glasses are not worn",
		glasses.CodeDisabledByUser: "the wearer switched it off", glasses.CodeUnsupported: "the glasses have no such part",
		glasses.CodeTimeout: "the glasses did not answer in time", glasses.CodePlatform: "the glasses had an error of their own",
	}
	return refuse(code, words[code])
}

func refuse(code, message string) *glasses.Error {
	return &glasses.Error{Code: code, Message: message}
}
