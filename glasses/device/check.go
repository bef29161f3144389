package device

import (
	"slices"

	"github.com/service-dev/service/glasses"
)

// needs lists the model's parts and the state that a command requires, in the order of the checks.
type needs struct {
	part   string // panel, camera, microphone, speaker, motion
	link   bool
	open   bool     // not folded
	cool   bool     // not thermal_critical
	worn   bool     // the glasses are worn
	grants []string // parts that must be permitted and switched on
	noCall bool     // no active phone call
}

// needsOf returns the requirements of a command type. Stop commands need only the link, because stopping an inactive
// stream succeeds. Announcing phrases and stopping transcription do not need the link either: they take effect while
// the glasses are out of reach.
func needsOf(typ string) needs {
	camera, mic, speech := glasses.PartCamera, glasses.PartMicrophone, glasses.PartSpeech
	switch typ {
	case glasses.TypeDisplayShow:
		return needs{part: "panel", link: true, open: true, cool: true, worn: true}
	case glasses.TypeSpeechSay:
		return needs{part: "speaker", link: true, open: true, worn: true, grants: []string{speech}, noCall: true}
	case glasses.TypeSoundPlay, glasses.TypePlaybackStart:
		return needs{part: "speaker", link: true, open: true, worn: true, noCall: true}
	case glasses.TypeAudioStart:
		return needs{part: mic, link: true, open: true, grants: []string{mic}, noCall: true}
	case glasses.TypeTranscriptionStart:
		return needs{part: mic, link: true, open: true, grants: []string{mic, speech}, noCall: true}
	case glasses.TypeVideoStart, glasses.TypeCameraPhoto, glasses.TypeCameraVideo:
		return needs{part: camera, link: true, open: true, cool: true, grants: []string{camera}}
	case glasses.TypeMotionStart:
		return needs{part: "motion", link: true}
	case glasses.TypePhrasesAnnounce, glasses.TypeTranscriptionStop, glasses.TypeClockSleep, glasses.TypeClockCancel:
		return needs{}
	}
	return needs{link: true}
}

// lacks returns an error if m does not have the required part.
func (n needs) lacks(m glasses.DeviceModel) *glasses.Error {
	has, isPart := map[string]bool{
		"panel": m.Panel != nil, "camera": m.Camera != nil, "microphone": m.Microphone, "speaker": m.Speaker,
		"motion": m.Motion,
	}[n.part]
	if has || !isPart {
		return nil
	}
	return refuse(glasses.CodeUnsupported, m.ID+" has no "+n.part)
}

// refused returns the error for the first reason in s that prevents the command, or nil.
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
			return partRefused(glasses.CodePermissionDenied, part)
		}
	}
	for _, part := range n.grants {
		if slices.Contains(s.Disabled, part) {
			return partRefused(glasses.CodeDisabledByUser, part)
		}
	}
	if n.noCall && s.Call {
		return reason(glasses.CodeBusy)
	}
	return nil
}

// partRefused returns the error for a part that the wearer has not permitted or has switched off, depending on code.
func partRefused(code, part string) *glasses.Error {
	if code == glasses.CodePermissionDenied {
		return &glasses.Error{
			Code: code, Message: "the wearer did not allow " + part, Part: part, By: glasses.ByPermission,
		}
	}
	return &glasses.Error{Code: code, Message: "the wearer switched " + part + " off", Part: part, By: glasses.BySwitch}
}

// faultOf returns the error for an injected fault. An app cannot distinguish this error from the real one.
func (n needs) faultOf(code string) *glasses.Error {
	isAboutPart := code == glasses.CodePermissionDenied || code == glasses.CodeDisabledByUser
	if isAboutPart && len(n.grants) > 0 {
		return partRefused(code, n.grants[0])
	}
	return reason(code)
}

// messages maps error codes to their standard messages.
var messages = map[string]string{
	glasses.CodeNotConnected:     "the glasses are out of reach",
	glasses.CodePermissionDenied: "the wearer did not allow it",
	glasses.CodeThermalCritical:  "the glasses are too hot",
	glasses.CodeHingeClosed:      "the glasses are folded",
	glasses.CodeBusy:             "a phone call is active",
	glasses.CodePaused:           "the glasses are not worn",
	glasses.CodeDisabledByUser:   "the wearer switched it off",
	glasses.CodeUnsupported:      "the glasses have no such part",
	glasses.CodeTimeout:          "the glasses did not answer in time",
	glasses.CodePlatform:         "the glasses had an internal error",
}

// reason returns an error with the standard message of code.
func reason(code string) *glasses.Error { return refuse(code, messages[code]) }

func refuse(code, message string) *glasses.Error {
	return &glasses.Error{Code: code, Message: message}
}
