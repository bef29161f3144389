package wire

import (
	"bytes"
	"crypto/rand"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/service-dev/service/internal/problem"
)

// serverEvents are the events of a provider that apps receive.
var serverEvents = map[string]bool{
	EventSessionCreated: true, EventSessionUpdated: true, EventError: true,
	"conversation.item.created": true, "conversation.item.added": true, "conversation.item.done": true,
	"conversation.item.retrieved": true, "conversation.item.truncated": true, "conversation.item.deleted": true,
	EventCommitted: true, "input_audio_buffer.cleared": true, "input_audio_buffer.speech_started": true,
	"input_audio_buffer.speech_stopped": true, EventResponseCreated: true, EventResponseDone: true,
	"response.output_item.added": true, "response.output_item.done": true, "response.content_part.added": true,
	"response.content_part.done": true, "response.output_text.delta": true, "response.output_text.done": true,
	EventAudioDelta: true, EventAudioDone: true, "response.output_audio_transcript.delta": true,
	"response.output_audio_transcript.done": true, "response.function_call_arguments.delta": true,
	"response.function_call_arguments.done": true,
}

// The events with the sound of an answer and at its end.
const (
	EventAudioDelta = "response.output_audio.delta"
	EventAudioDone  = "response.output_audio.done"
)

// DeltaAudio returns the sound in a part of an answer, as Base64.
func DeltaAudio(data []byte) []byte { return member(data, "delta") }

// WithDelta returns the part of an answer with other sound, in Base64. data may also be the event at its end.
func WithDelta(data, audio []byte) []byte {
	var event map[string]jsontext.Value
	if json.Unmarshal(data, &event, lenient...) != nil {
		return nil
	}
	event["type"] = jsontext.Value(`"` + EventAudioDelta + `"`)
	event["event_id"] = jsontext.Value(`"event_` + rand.Text() + `"`)
	event["delta"] = slices.Concat([]byte{'"'}, audio, []byte{'"'})
	out, err := json.Marshal(event, json.Deterministic(true))
	if err != nil {
		return nil
	}
	return out
}

// ServerEvent is an event of a provider.
type ServerEvent struct {
	Type     string
	Known    bool   // whether apps receive it
	Response string // ID of the response that it belongs to, or ""
	Status   string // of a response: completed, cancelled, failed or incomplete
	Code     string // of an error
	Event    string // event_id of the app's event that caused an error
	Kind     string // of an error
	Param    string // of an error
	Receipt  RealtimeReceipt
	// Text is the estimated number of tokens in a delta of an answer, and Sound the length of its sound, in characters of
	// Base64.
	Text, Sound int64
}

// Server parses an event of a provider. A count of more than most tokens is impossible. It returns false for text that
// is not an event.
func Server(data []byte, most int64) (e ServerEvent, ok bool) {
	v := jsontext.Value(bytes.TrimSpace(data))
	if v.Kind() != '{' || !v.IsValid(lenient...) {
		return e, false
	}
	delta := 0
	err := each(v, func(name string, v jsontext.Value) error {
		switch name {
		case "type":
			e.Type, _ = stringOf(v)
		case "response_id":
			e.Response, _ = stringOf(v)
		case "delta":
			delta = len(v) - len(`""`)
		case "response":
			e.response(v, most)
		case "error":
			if v.Kind() == '{' {
				return each(v, func(name string, v jsontext.Value) error {
					switch name {
					case "code":
						e.Code, _ = stringOf(v)
					case "type":
						e.Kind, _ = stringOf(v)
					case "param":
						e.Param, _ = stringOf(v)
					case "event_id":
						e.Event, _ = stringOf(v)
					}
					return nil
				}, lenient...)
			}
		}
		return nil
	}, lenient...)
	if e.Type == EventAudioDelta {
		e.Sound = int64(delta)
	} else if delta > 0 {
		e.Text = int64(delta/4) + 1
	}
	e.Known = serverEvents[e.Type]
	return e, err == nil
}

func (e *ServerEvent) response(v jsontext.Value, most int64) {
	if v.Kind() != '{' {
		return
	}
	_ = each(v, func(name string, v jsontext.Value) error {
		switch name {
		case "id":
			e.Response, _ = stringOf(v)
		case "status":
			e.Status, _ = stringOf(v)
		case "usage":
			e.Receipt = realtimeReceipt(v, most)
		}
		return nil
	}, lenient...)
}

// AppError returns an error event of a provider as the app receives it. id is the event_id that the app chose, or "".
// The provider's message may tell of the operator's account, and is left out.
func (e ServerEvent) AppError(id string) []byte {
	if e.Kind != "invalid_request_error" || !isTechnical(e.Code) {
		return RealtimeError(id, "server_error", problem.CodeProviderError, "the model's provider failed: try again", "", nil)
	}
	param := e.Param
	if !isTechnical(param) {
		param = ""
	}
	return RealtimeError(id, e.Kind, e.Code, "the model's provider refused the event: "+e.Code, param, nil)
}

// isTechnical reports whether a code or the name of a field tells nothing about the operator's account.
func isTechnical(code string) bool {
	if code == "" || len(code) > maxName {
		return false
	}
	for _, c := range []byte(code) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '[' && c != ']' {
			return false
		}
	}
	return !slices.ContainsFunc([]string{"key", "quota", "billing", "balance", "credit", "organization", "account",
		"project", "payment", "permission", "rate_limit", "tier"}, func(s string) bool { return strings.Contains(code, s) })
}

// RedactStatus removes what a provider says about the failure of an answer from its response.done.
func RedactStatus(data []byte) []byte {
	return edit(data, func(jsontext.Value) jsontext.Value {
		return jsontext.Value(`{"type":"server_error","code":"` + problem.CodeProviderError + `"}`)
	}, "response", "status_details", "error")
}

// NameModel replaces the provider's name of the model in an event about the session.
func NameModel(data []byte, model string) []byte {
	return edit(data, func(jsontext.Value) jsontext.Value {
		quoted, _ := jsontext.AppendQuote(nil, model) // the catalogue allows only valid text
		return quoted
	}, "session", "model")
}

// NameVoice replaces the provider's name of the voice in an event about a session or a response; of is the member with
// it. NameVoice removes the name of a voice that voices, the provider's names by ours, does not have.
func NameVoice(data []byte, of string, voices map[string]string) []byte {
	return edit(data, func(v jsontext.Value) jsontext.Value {
		theirs, _ := stringOf(v)
		for _, ours := range slices.Sorted(maps.Keys(voices)) {
			if voices[ours] == theirs {
				quoted, _ := jsontext.AppendQuote(nil, ours)
				return quoted
			}
		}
		return nil
	}, of, "audio", "output", "voice")
}

// edit replaces the member at a path of an object by what f returns for it, or removes it if that is nil. It returns an
// object without this member unchanged.
func edit(data []byte, f func(jsontext.Value) jsontext.Value, path ...string) []byte {
	var object map[string]jsontext.Value
	if jsontext.Value(data).Kind() != '{' || json.Unmarshal(data, &object, lenient...) != nil {
		return data
	}
	v, ok := object[path[0]]
	if !ok {
		return data
	}
	if len(path) > 1 {
		v = edit(v, f, path[1:]...)
	} else {
		v = f(v)
	}
	if object[path[0]] = v; v == nil {
		delete(object, path[0])
	}
	out, err := json.Marshal(object, append(lenient, json.Deterministic(true))...)
	if err != nil {
		return nil
	}
	return out
}
