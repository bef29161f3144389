package tools

import (
	"embed"
	"encoding/json"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
)

// Guides are JSON in the form for agents. Tests compare them with the protocol's package, its parsers and its simulated
// glasses.

//go:embed guides/*.json
var guideFiles embed.FS

// readGuide decodes a file of guides. It panics on failure, because the files are part of the program and tests read
// each of them.
func readGuide[T any](name string) T {
	var value T
	data, err := guideFiles.ReadFile("guides/" + name + ".json")
	if err == nil {
		err = json.Unmarshal(data, &value)
	}
	if err != nil {
		panic("read guide " + name + ": " + err.Error())
	}
	return value
}

// capabilityGuide is the part of a capability's guide that is not computed.
type capabilityGuide struct {
	Example  example    `json:"example"`
	Pitfalls []string   `json:"pitfalls"`
	Next     []nextCall `json:"nextCalls"`
}

// example is an exchange of frames between an app and its glasses.
type example struct {
	App     []json.RawMessage `json:"app"`
	Glasses []json.RawMessage `json:"glasses"`
}

func capabilityGuideOf(id string) capabilityGuide {
	return readGuide[map[string]capabilityGuide]("capabilities")[id]
}

// Environment variables that tell an app where its glasses are. A generated module needs only the third.
const (
	envGlassesURL       = "SERVICE_GLASSES_URL"
	envGlassesSecret    = "SERVICE_GLASSES_SECRET_FILE"
	envGlassesTransport = "SERVICE_GLASSES_TRANSPORT"
)

// appEnvironment returns the environment variables for the app of a session.
func appEnvironment(s session.Opened) map[string]string {
	return map[string]string{envGlassesURL: s.AppEndpoint, envGlassesSecret: s.AppTokenFile,
		envGlassesTransport: "simulator"}
}

// manifestName is the file that contains a project's app ID.
const manifestName = "service.json"

// errorGuide describes an error code of commands.
type errorGuide struct {
	Code      string `json:"code"`
	When      string `json:"when"`
	Do        string `json:"do"`
	Retryable bool   `json:"retryable"`
	Any       bool   `json:"any,omitempty"`
}

// errorGuides lists the error codes in the order in which the glasses check for them.
func errorGuides() []errorGuide { return readGuide[[]errorGuide]("errors") }

// ofTypes returns the elements of all whose type is in types, in the order of types.
func ofTypes[T any](all []T, types []string, typeOf func(T) string) []T {
	some := []T{}
	for _, typ := range types {
		for _, one := range all {
			if typeOf(one) == typ {
				some = append(some, one)
			}
		}
	}
	return some
}

// field is a field of a payload or a node. Its limits apply to the characters of a text and the elements of an array.
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

// commandGuide describes a command.
type commandGuide struct {
	Type    string   `json:"type"`
	Payload []field  `json:"payload"`
	Answer  string   `json:"answer"`
	Errors  []string `json:"errors"`
}

// commandGuides lists every command, in the protocol's order.
func commandGuides() []commandGuide { return readGuide[[]commandGuide]("commands") }

func commandGuidesOf(types []string) []commandGuide {
	return ofTypes(commandGuides(), types, func(c commandGuide) string { return c.Type })
}

// eventGuide describes an event.
type eventGuide struct {
	Type    string  `json:"type"`
	Payload []field `json:"payload"`
	When    string  `json:"when"`
	// Binary is set for frames with a body. Stream frames are only counted in the event log.
	Binary bool `json:"binary"`
	Stream bool `json:"stream"`
}

// eventGuides lists every event of the glasses.
func eventGuides() []eventGuide {
	list := readGuide[[]eventGuide]("events")
	for i := range list {
		list[i].Stream = glasses.IsStream(list[i].Type)
	}
	return list
}

func eventGuidesOf(types []string) []eventGuide {
	return ofTypes(eventGuides(), types, func(e eventGuide) string { return e.Type })
}

// nodeGuide describes a node type of a display tree.
type nodeGuide struct {
	Type   string  `json:"type"`
	About  string  `json:"about"`
	Fields []field `json:"fields"`
}

// nodeGuides lists every node type with its own fields. The type "any" has the fields of all nodes.
func nodeGuides() []nodeGuide { return readGuide[[]nodeGuide]("nodes") }

// partNames lists the names of the parts that a wearer may deny or switch off.
func partNames() []string {
	return []string{glasses.PartCamera, glasses.PartMicrophone, glasses.PartSpeech}
}

// nextCall is a call that the agent may make next. Its arguments can be used unchanged.
type nextCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Why       string          `json:"why"`
}

func suggest(tool, arguments, why string) nextCall {
	return nextCall{Tool: tool, Arguments: json.RawMessage(arguments), Why: why}
}
