package glasses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Result is the payload of result: either OK, with what the command asked for, or Error. Fields that a build does not
// know are kept on the wire.
type Result struct {
	OK    bool   `json:"ok,omitempty"`
	Error *Error `json:"error,omitempty"`

	// Media is what camera.photo or camera.video took. Its bytes came just before, in a binary media frame.
	Media *Media `json:"media,omitempty"`
	// State and View answer sim.state and every sim.* change.
	State *State `json:"state,omitempty"`
	View  *View  `json:"view,omitempty"`
	// Clock answers sim.advance.
	Clock *Clock `json:"clock,omitempty"`
}

// Media describes a picture, a clip or a sound by its content. Bytes travel apart from it.
type Media struct {
	// SHA256 of the bytes, in lower-case hex.
	SHA256 string `json:"sha256"`
	// MIME is image/jpeg, video/x-motion-jpeg, audio/wav or audio/L16.
	MIME  string `json:"mime"`
	Bytes int    `json:"bytes"`
	// Width and Height are pixels, of pictures and clips.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// DurationMs is of clips and sounds.
	DurationMs int64 `json:"durationMs,omitempty"`
	// SampleRate is Hz, of sounds.
	SampleRate int `json:"sampleRate,omitempty"`
}

// ParseResult reads a result's payload. The error is an *Error with code bad_payload.
func ParseResult(payload []byte) (Result, error) {
	var r Result
	if err := json.Unmarshal(payload, &r); err != nil {
		return Result{}, badPayload("result payload is neither {ok:true} nor {error:{code,message}}")
	}
	if r.OK == (r.Error != nil) || (r.Error != nil && r.Error.Code == "") {
		return Result{}, badPayload("result payload needs either ok:true or an error with a code")
	}
	return r, nil
}

// Codes of Error. The first two answer a frame, the others a command.
const (
	CodeBadFrame = "bad_frame"
	CodeIDReused = "id_reused"

	CodeBadPayload       = "bad_payload"       // the command's payload is not what its type asks for
	CodeNotConnected     = "not_connected"     // no glasses are attached, or their link is lost
	CodePermissionDenied = "permission_denied" // the person refused camera, microphone or speech
	CodeThermalCritical  = "thermal_critical"  // too hot for camera and display
	CodeHingeClosed      = "hinge_closed"      // folded
	CodeBusy             = "busy"              // a call is on, or the same thing runs already
	CodePaused           = "paused"            // not worn
	CodeDisabledByUser   = "disabled_by_user"  // switched off by the wearer
	CodeUnsupported      = "unsupported"       // the device model has no such part
	CodeTimeout          = "timeout"           // no answer in time
	CodePlatform         = "platform_error"    // the glasses or their platform failed
)

// CommandCodes lists the codes that can answer a command, as faults may be set to.
func CommandCodes() []string {
	return []string{CodeNotConnected, CodePermissionDenied, CodeThermalCritical, CodeHingeClosed, CodeBusy, CodePaused,
		CodeDisabledByUser, CodeUnsupported, CodeTimeout, CodePlatform}
}

func badPayload(format string, args ...any) *Error {
	return &Error{Code: CodeBadPayload, Message: fmt.Sprintf(format, args...)}
}

// plain says what is wrong with JSON without Go's own words for types.
func plain(err error) string {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		field := typed.Field
		if field == "" {
			field = "it"
		}
		return fmt.Sprintf("%s is a %s", field, strings.Fields(typed.Value)[0])
	}
	return "it is not JSON"
}
