package tools

import (
	"encoding/json"
	"slices"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses"
)

// The words that several tools use stand here and in the words_*.go files once. What can be computed from the protocol's
// own package is; the rest is held against it by words_test.go, so that no two tools can contradict each other.

// Environment variables by which an app learns where its glasses are. The third is the one setting of a generated module.
const (
	envGlassesURL       = "SERVICE_GLASSES_URL"
	envGlassesSecret    = "SERVICE_GLASSES_SECRET_FILE"
	envGlassesTransport = "SERVICE_GLASSES_TRANSPORT"
)

// appEnvironment is what an app of a session is started with.
func appEnvironment(s session.Opened) map[string]string {
	return map[string]string{envGlassesURL: s.AppEndpoint, envGlassesSecret: s.AppTokenFile, envGlassesTransport: "simulator"}
}

// manifestName is the file in which a project says its app id.
const manifestName = "service.json"

// wordError is a code that can answer a command.
type wordError struct {
	Code      string `json:"code"`
	When      string `json:"when"`
	Do        string `json:"do"`
	Retryable bool   `json:"retryable"`
}

// wordErrors lists the codes in the order in which the glasses look for them.
func wordErrors() []wordError {
	return []wordError{
		{glasses.CodeBadPayload, "the payload is not what its type asks for; the message names the field", "correct the app; repeating it does not help", false},
		{glasses.CodeUnsupported, "the device model has no such part, or the type is no command", "look at deviceModel in the welcome frame and leave out what it lacks", false},
		{glasses.CodeNotConnected, "no glasses are attached, or their link is lost", "keep the state, wait for the link event with state connected, then show it again", true},
		{glasses.CodeHingeClosed, "the glasses are folded", "stop; go on at the hinge event with state open", true},
		{glasses.CodeThermalCritical, "too hot for display and camera", "stop streams, use speech or wait for the thermal event", true},
		{glasses.CodePaused, "the glasses are not worn", "keep what to show and show it at the wear event with worn true", true},
		{glasses.CodePermissionDenied, "the person refused camera, microphone or speech", "say what will not work and offer another way; do not ask again by yourself", false},
		{glasses.CodeDisabledByUser, "the wearer switched the part off", "respect it; go on at the disabled event without the part in parts", false},
		{glasses.CodeBusy, "a phone call holds microphone and speaker, or the same stream or capture runs already", "wait for the call event or for the running one to end", true},
		{glasses.CodeTimeout, "no answer in 10 seconds", "try once more, then tell the person", true},
		{glasses.CodePlatform, "the glasses or their platform failed", "try once more, then tell the person", true},
	}
}

// wordErrorsOf picks those of some codes, in the same order.
func wordErrorsOf(codes []string) []wordError {
	var some []wordError
	for _, e := range wordErrors() {
		if slices.Contains(codes, e.Code) {
			some = append(some, e)
		}
	}
	return some
}

// field tells of one field of a payload.
type field struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"` // string, integer, boolean, object or array
	About    string   `json:"about,omitempty"`
	Required bool     `json:"required,omitempty"`
	Default  any      `json:"default,omitempty"`
	Min      *int64   `json:"min,omitempty"`
	Max      *int64   `json:"max,omitempty"`
	OneOf    []string `json:"oneOf,omitempty"`
}

func text(name, about string) field  { return field{Name: name, Type: "string", About: about} }
func truth(name, about string) field { return field{Name: name, Type: "boolean", About: about} }
func other(name, typ, about string) field {
	return field{Name: name, Type: typ, About: about}
}

// number has bounds; for a text they are its characters, for an array its elements.
func number(name, about string, low, high int64) field {
	return field{Name: name, Type: "integer", About: about, Min: &low, Max: &high}
}

func choice(name, about string, words ...string) field {
	return field{Name: name, Type: "string", About: about, OneOf: words}
}

func (f field) must() field        { f.Required = true; return f }
func (f field) or(def any) field   { f.Default = def; return f }
func (f field) as(t string) field  { f.Type = t; return f }
func fields(list ...field) []field { return list }

const fieldSchema = `{"type":"object","properties":{
	"name":{"type":"string"},"type":{"type":"string"},"about":{"type":"string"},"required":{"type":"boolean"},
	"default":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"boolean"}]},
	"min":{"type":"integer","description":"Of a string: characters. Of an array: elements."},"max":{"type":"integer"},
	"oneOf":{"type":"array","items":{"type":"string"}}}}`

const wordErrorSchema = `{"type":"object","properties":{
	"code":{"type":"string"},"when":{"type":"string"},"do":{"type":"string","description":"What the app does about it."},"retryable":{"type":"boolean"}}}`

// nextCall is a call that the agent may make next; Arguments can be used as they are.
type nextCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Why       string          `json:"why"`
}

func call1(tool, arguments, why string) nextCall {
	return nextCall{Tool: tool, Arguments: json.RawMessage(arguments), Why: why}
}

const nextProperty = `"nextCalls":{"type":"array","items":{"type":"object","properties":{
	"tool":{"type":"string"},"arguments":{"type":"object"},"why":{"type":"string"}}},"description":"Calls that make sense now; their arguments can be used as they are."}`

// modelIDs lists the device models.
func modelIDs() []string {
	var ids []string
	for _, m := range glasses.Models() {
		ids = append(ids, m.ID)
	}
	return ids
}

// quoted makes the inside of a JSON array of words, for schemas.
func quoted(words []string) string {
	data, err := json.Marshal(words)
	if err != nil || len(data) < 2 {
		return ""
	}
	return string(data[1 : len(data)-1])
}
