package glasses

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Result is the payload of result. It contains either OK with the data requested by the command, or Error. Unknown
// fields are preserved when a result is relayed.
type Result struct {
	OK    bool   `json:"ok,omitempty"`
	Error *Error `json:"error,omitempty"`

	// Media describes the result of camera.photo or camera.video. Its bytes precede the result, in a binary media frame.
	Media *Media `json:"media,omitempty"`
	// State and View are set in the results of control frames (sim.*).
	State *State `json:"state,omitempty"`
	View  *View  `json:"view,omitempty"`
	// Unconfirmed explains why the panel may not show View: real glasses have not confirmed the picture, or a slow
	// panel is still drawing it. It is empty once the panel shows View.
	Unconfirmed string `json:"unconfirmed,omitempty"`
	// Confirmed is the view that the panel shows while the picture of View is being sent; nil if it is unknown.
	Confirmed *View `json:"confirmed,omitempty"`
	// Clock is set in the result of sim.advance.
	Clock *Clock `json:"clock,omitempty"`
	// Findings lists the parts of a display.show that the wearer cannot see or reach on this model, at most
	// MaxFindings. MoreFindings is the number of further ones.
	Findings     []Finding `json:"findings,omitempty"`
	MoreFindings int       `json:"moreFindings,omitempty"`
	// PlayedMs is how much of the latest playback was played, in the result of playback.flush.
	PlayedMs *int64 `json:"playedMs,omitempty"`
	// Superseded reports that a later change of the panel replaced this one before real glasses could show it.
	Superseded bool `json:"superseded,omitempty"`
	// LateMs is how late the command reached the glasses because of faults, a lossy link or an earlier late command.
	// Faults lists the injected faults that applied to it. Both are for readers of the log. Apps must not depend on
	// them, because real glasses send neither.
	LateMs int64   `json:"lateMs,omitempty"`
	Faults []Fault `json:"faults,omitempty"`
}

// MaxFindings is the maximum number of findings in a result.
const MaxFindings = 20

// Finding is a part of a tree that does not fit the device model at any scroll position.
type Finding struct {
	// Kind is one of the Finding constants.
	Kind string `json:"kind"`
	// Type is the type of a node that is drawn without a text, such as icon.
	Type string `json:"type,omitempty"`
	// Path is the path of the node in its tree, e.g. tree.children[0]. ID is the node's ID, if it has one.
	Path string `json:"path"`
	ID   string `json:"id,omitempty"`
	// Text is the node's text, the alt of an image, or the name of an icon.
	Text string `json:"text,omitempty"`
	// Missing lists the characters of a missing_glyph, e.g. "ሀ U+1200 ETHIOPIC SYLLABLE HA". Pages omit the names.
	Missing string `json:"missing,omitempty"`
}

// Message describes the finding in a few words.
func (f Finding) Message() string {
	words := map[string]string{
		FindingClipped: "is never completely on the panel", FindingCut: "is a target that is never completely on the panel",
		FindingBrokenWord:   "is a button with a broken word",
		FindingUnreachable:  "is a target that the wearer's inputs do not reach",
		FindingUnknownIcon:  "is an icon with an unknown name, drawn as an empty box",
		FindingMissingGlyph: "contains characters that no font here contains: " + f.Missing,
	}[f.Kind]
	name := f.ID
	if f.Text != "" {
		name = strings.ToValidUTF8(f.Text[:min(len(f.Text), 60)], "")
	}
	if name != "" {
		name = fmt.Sprintf("%q", name)
	}
	parts := []string{f.Type, name, "(" + f.Path + ")", words}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

// Kinds of a Finding.
const (
	FindingClipped      = "clipped"       // a text, image, icon or progress bar is never completely on the panel
	FindingCut          = "cut"           // a target is never completely on the panel
	FindingBrokenWord   = "broken_word"   // a word in a button's label is split across lines
	FindingUnreachable  = "unreachable"   // the inputs of the model cannot move the focus to a target
	FindingUnknownIcon  = "unknown_icon"  // no icon has this name, so the wearer sees an empty box
	FindingMissingGlyph = "missing_glyph" // no font has a character of a text, so the wearer sees a box
)

// Media describes a picture, a clip or a sound, whose bytes are sent separately.
type Media struct {
	// SHA256 is the digest of the bytes in lower-case hex.
	SHA256 string `json:"sha256"`
	// MIME is image/jpeg, video/x-motion-jpeg, audio/wav or audio/L16.
	MIME  string `json:"mime"`
	Bytes int    `json:"bytes"`
	// Width and Height are pixels of pictures and clips.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// DurationMs is the length of clips and sounds.
	DurationMs int64 `json:"durationMs,omitempty"`
	// SampleRate is in Hz, for sounds.
	SampleRate int `json:"sampleRate,omitempty"`
	// Transcript is what was said up to the end of an audio.chunk and not in an earlier one. Only simulated glasses know
	// it, from sim.microphone.
	Transcript string `json:"transcript,omitempty"`
}

// ParseResult decodes the payload of a result. On failure it returns an *Error with code bad_payload.
func ParseResult(payload []byte) (Result, error) {
	var r Result
	if err := json.Unmarshal(payload, &r); err != nil {
		return Result{}, badPayload("result payload must be {ok:true} or {error:{code,message}}")
	}
	if r.OK == (r.Error != nil) || (r.Error != nil && r.Error.Code == "") {
		return Result{}, badPayload("result payload must contain either ok:true or an error with a code")
	}
	return r, nil
}

// Codes of an Error. The first two are for a refused frame, the third is for a refused sim.input, and the others are
// for a refused command.
const (
	CodeBadFrame = "bad_frame"
	CodeIDReused = "id_reused"

	CodeUnreachable = "unreachable" // no inputs of the wearer lead to the target

	CodeBadPayload       = "bad_payload"       // the command's payload is not valid for its type
	CodeNotConnected     = "not_connected"     // no glasses are attached, or their connection is lost
	CodePermissionDenied = "permission_denied" // the user refused camera, microphone or speech
	CodeThermalCritical  = "thermal_critical"  // too hot for camera and display
	CodeHingeClosed      = "hinge_closed"      // folded
	CodeBusy             = "busy"              // a phone call, the same function already running, or too many commands
	CodePaused           = "paused"            // not worn
	CodeDisabledByUser   = "disabled_by_user"  // switched off by the wearer
	CodeUnsupported      = "unsupported"       // the device model has no such part
	CodeTimeout          = "timeout"           // no answer in time
	CodePlatform         = "platform_error"    // the glasses or their platform failed
)

// CommandCodes returns the codes with which a command can fail. Faults use the same codes.
func CommandCodes() []string {
	return []string{CodeNotConnected, CodePermissionDenied, CodeThermalCritical, CodeHingeClosed, CodeBusy, CodePaused,
		CodeDisabledByUser, CodeUnsupported, CodeTimeout, CodePlatform}
}

func badPayload(format string, args ...any) *Error {
	return &Error{Code: CodeBadPayload, Message: fmt.Sprintf(format, args...)}
}

// plain describes a JSON error without naming Go types.
func plain(err error) string {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		field := typed.Field
		if field == "" {
			field = "it"
		}
		return fmt.Sprintf("%s is a %s", field, strings.Fields(typed.Value)[0])
	}
	return "not JSON"
}
