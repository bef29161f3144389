package assistantscript

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/service-dev/service/internal/problem"
)

// settings contains the settings of a realtime session that scripts use. Other settings are accepted and ignored.
type settings struct {
	Type       string         `json:"type"` // realtime
	Object     string         `json:"object"`
	Model      string         `json:"model"`
	Modalities []string       `json:"output_modalities"` // audio or text
	Tools      []tool         `json:"tools"`
	ToolChoice jsontext.Value `json:"tool_choice"`
	Audio      struct {
		Input struct {
			Format        format         `json:"format"`
			Transcription jsontext.Value `json:"transcription"`  // an object or null
			TurnDetection *turnDetection `json:"turn_detection"` // nil if the app commits its input itself
		} `json:"input"`
		Output struct {
			Format format `json:"format"`
			Voice  string `json:"voice"`
		} `json:"output"`
	} `json:"audio"`
}

type tool struct {
	Type        string         `json:"type"` // function
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  jsontext.Value `json:"parameters,omitempty"`
}

type format struct {
	Type string `json:"type"` // audio/pcm
	Rate int    `json:"rate"`
}

type turnDetection struct {
	Type      string `json:"type"`
	PrefixMs  int64  `json:"prefix_padding_ms"`
	SilenceMs int64  `json:"silence_duration_ms"`
	Create    bool   `json:"create_response"`
	Interrupt bool   `json:"interrupt_response"`
}

func defaultTurnDetection() *turnDetection {
	return &turnDetection{Type: "server_vad", PrefixMs: 300, SilenceMs: 500, Create: true, Interrupt: true}
}

// UnmarshalJSON decodes the settings and fills in the defaults of missing fields.
func (t *turnDetection) UnmarshalJSON(data []byte) error {
	type plain turnDetection
	p := plain(*defaultTurnDetection())
	err := json.Unmarshal(data, &p)
	*t = turnDetection(p)
	return err
}

func defaultSettings(rate int) settings {
	s := settings{Type: "realtime", Object: "realtime.session", Model: Model, Modalities: []string{"audio"},
		ToolChoice: jsontext.Value(`"auto"`)}
	s.Audio.Input.Format = format{"audio/pcm", rate}
	s.Audio.Input.Transcription = jsontext.Value("null")
	s.Audio.Input.TurnDetection = defaultTurnDetection()
	s.Audio.Output.Format, s.Audio.Output.Voice = format{"audio/pcm", rate}, Model
	return s
}

// describe returns the settings in the form that the app sees.
func (s settings) describe() jsontext.Value {
	data, err := json.Marshal(s)
	if err != nil {
		panic("assistantscript: " + err.Error())
	}
	return data
}

// updateSession changes the settings that an app passed.
func (c *Conversation) updateSession(given jsontext.Value) *Failure {
	var s settings // a copy, because decoding reuses memory
	if err := json.Unmarshal(c.settings.describe(), &s); err != nil {
		panic("assistantscript: " + err.Error())
	}
	s.Tools = nil
	if given.Kind() != '{' || json.Unmarshal(given, &s) != nil {
		return invalid(problem.CodeInvalidValue, "session", "a field of session has a wrong type")
	}
	if s.Tools == nil {
		s.Tools = c.settings.Tools
	}
	rate := c.o.Rate
	for _, f := range []format{s.Audio.Input.Format, s.Audio.Output.Format} {
		if f.Type != "audio/pcm" || f.Rate != rate {
			return invalid(problem.CodeInvalidValue, "session.audio", "sound is audio/pcm of %d samples a second here", rate)
		}
	}
	if t := s.Audio.Input.TurnDetection; t != nil && (t.SilenceMs < 0 || t.SilenceMs > 10_000 || t.PrefixMs < 0) {
		return invalid(problem.CodeInvalidValue, "session.audio.input.turn_detection",
			"silence_duration_ms must be 0 to 10000, and prefix_padding_ms not negative")
	}
	if err := checkModalities(s.Modalities); err != nil {
		return err
	}
	s.Type, s.Object, s.Model, s.Audio.Output.Voice = "realtime", "realtime.session", Model, Model
	c.settings = s
	c.send("session.updated", fields{"session": s.describe()})
	return nil
}

func checkModalities(given []string) *Failure {
	if len(given) != 1 || given[0] != "audio" && given[0] != "text" {
		return invalid(problem.CodeInvalidValue, "output_modalities", `output_modalities must be ["audio"] or ["text"]`)
	}
	return nil
}

// offered returns the names of the tools that a response may call.
func offered(tools []tool, choice jsontext.Value) []string {
	if string(choice) == `"none"` {
		return nil
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return slices.Clip(names)
}
