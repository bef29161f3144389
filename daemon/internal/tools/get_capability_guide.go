package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/guide"
)

const getCapabilityGuideText = `Teaches one capability of the glasses completely: its commands with every field, bound and default, what answers them, the events it ` +
	`brings, the typed errors with what to do about each, which device models have it and how well that is known, frames to copy, what bites in ` +
	`practice, and the calls that try it out. For display it also lists the node types of a tree. ` +
	`Use it before you write code for a capability. It needs no account and changes nothing. ` +
	`For the whole way and the list of capabilities call getPlatformInfo; for a complete app getCodeExample; for longer texts searchDocs.`

type getCapabilityGuide struct{}

type getCapabilityGuideArgs struct {
	Capability  string `json:"capability"`
	DeviceModel string `json:"deviceModel"`
}

// modelWord tells whether a device model has a capability, and with what.
type modelWord struct {
	ID       string `json:"id"`
	Has      bool   `json:"has"`
	Detail   string `json:"detail,omitempty"`
	Fidelity string `json:"fidelity,omitempty"`
}

type capabilityAnswer struct {
	Capability   string        `json:"capability"`
	About        string        `json:"about"`
	Part         string        `json:"part,omitempty"`
	Commands     []wordCommand `json:"commands"`
	Events       []wordEvent   `json:"events"`
	Errors       []wordError   `json:"errors"`
	Nodes        []wordNode    `json:"nodes,omitempty"`
	DeviceModels []modelWord   `json:"deviceModels"`
	Example      example       `json:"example"`
	Pitfalls     []string      `json:"pitfalls"`
	Next         []nextCall    `json:"nextCalls"`
	Summary      string        `json:"summary"`
}

func (t getCapabilityGuide) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getCapabilityGuide", Title: "Learn one capability", Description: getCapabilityGuideText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(`
			"capability":{"type":"string","enum":[`+quoted(guide.CapabilityIDs())+`],"description":"Which one."},
			"deviceModel":{"type":"string","enum":[`+quoted(modelIDs())+`],"description":"Only tell of these glasses. Left out: of all."}`, `"capability"`),
		OutputSchema: outputSchema(`
			"capability":{"type":"string"},
			"about":{"type":"string"},
			"part":{"type":"string","description":"What the wearer may refuse or switch off; left out when there is nothing to refuse."},
			"commands":{"type":"array","items":`+wordCommandSchema+`},
			"events":{"type":"array","items":`+wordEventSchema+`},
			"errors":{"type":"array","items":`+wordErrorSchema+`},
			"nodes":{"type":"array","items":`+wordNodeSchema+`,"description":"Of display: what a tree is made of."},
			"deviceModels":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"has":{"type":"boolean"},"detail":{"type":"string"},"fidelity":{"type":"string"}}}},
			"example":{"type":"object","properties":{"app":{"type":"array","items":{"type":"object"}},"glasses":{"type":"array","items":{"type":"object"}}}},
			"pitfalls":{"type":"array","items":{"type":"string"}},`+
			nextProperty+`,`+summaryProperty, `"capability","about","commands","events","errors","deviceModels","example","pitfalls","summary"`, false),
	}}
}

func (t getCapabilityGuide) run(_ context.Context, c call) (any, error) {
	var args getCapabilityGuideArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	known, ok := guide.CapabilityOf(args.Capability)
	if !ok {
		return nil, notOneOf("capability", guide.CapabilityIDs())
	}
	models := glasses.Models()
	if args.DeviceModel != "" {
		model, ok := glasses.Model(args.DeviceModel)
		if !ok {
			return nil, notOneOf("deviceModel", modelIDs())
		}
		models = []glasses.DeviceModel{model}
	}
	words := wordsOf(known.ID)
	answer := capabilityAnswer{
		Capability: known.ID, About: known.About, Part: known.Part, Commands: wordCommandsOf(known.Commands), Events: wordEventsOf(known.Events),
		Example: words.example, Pitfalls: words.pitfalls, Next: words.next,
	}
	var codes []string
	for _, command := range answer.Commands {
		codes = append(codes, command.Errors...)
	}
	answer.Errors = wordErrorsOf(codes)
	if answer.Errors == nil {
		answer.Errors = []wordError{}
	}
	if known.ID == guide.Display {
		answer.Nodes = wordNodes()
	}
	answer.DeviceModels = modelWords(models, known.ID)
	answer.Summary = summaryOf(answer)
	return answer, nil
}

func summaryOf(a capabilityAnswer) string {
	var have []string
	for _, m := range a.DeviceModels {
		if m.Has {
			have = append(have, m.ID)
		}
	}
	on := "none of the asked device models has it"
	if len(have) > 0 {
		on = "on " + strings.Join(have, ", ")
	}
	return fmt.Sprintf("%s %d commands, %d events; %s.", a.About, len(a.Commands), len(a.Events), on)
}

func modelWords(models []glasses.DeviceModel, capability string) []modelWord {
	list := make([]modelWord, len(models))
	for i, m := range models {
		list[i] = modelWord{ID: m.ID, Has: guide.Has(m, capability)}
		if list[i].Has {
			list[i].Detail, list[i].Fidelity = detailOf(m, capability)
		}
	}
	return list
}

func detailOf(m glasses.DeviceModel, capability string) (detail, fidelity string) {
	switch capability {
	case guide.Display:
		return panelWords(*m.Panel), m.Fidelity["panel"]
	case guide.Camera:
		return fmt.Sprintf("up to %dx%d", m.Camera.Width, m.Camera.Height), m.Fidelity["camera"]
	case guide.Microphone, guide.Transcription:
		return "", m.Fidelity["microphone"]
	case guide.Speech, guide.Sound:
		return "", m.Fidelity["speaker"]
	case guide.Motion:
		return "", m.Fidelity["motion"]
	case guide.Input:
		return strings.Join(m.Inputs, ", "), m.Fidelity["inputs"]
	}
	return "", ""
}

func panelWords(p glasses.Panel) string {
	words := []string{fmt.Sprintf("%dx%d", p.Width, p.Height), p.Shape, p.Colour}
	if p.Bits > 0 {
		words = append(words, fmt.Sprintf("%d bit", p.Bits))
	}
	if p.TextLines > 0 {
		words = append(words, fmt.Sprintf("at most %d lines of %d pixels", p.TextLines, p.TextWidth))
	}
	return strings.Join(words, ", ")
}

// notOneOf refuses a word that is not in a list.
func notOneOf(argument string, words []string) error {
	words = slices.Clone(words)
	return &Error{Code: CodeInvalidArguments, Message: fmt.Sprintf("argument %q is missing or not one that is known", argument), FixHint: "pass one of: " + strings.Join(words, ", ")}
}
