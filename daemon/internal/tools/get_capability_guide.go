package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/glasses/render"
)

type getCapabilityGuide struct{}

type getCapabilityGuideArgs struct {
	Capability  string `json:"capability"`
	DeviceModel string `json:"deviceModel" jsonschema:"Only this model."`
}

// commandWords and eventWords are guides in the form for agents, in which each field is one line of text.
type (
	commandWords struct {
		Type    string   `json:"type"`
		Payload []string `json:"payload,omitempty"`
		Answer  string   `json:"answer"`
		Errors  []string `json:"errors,omitempty"`
	}
	eventWords struct {
		Type    string   `json:"type"`
		Payload []string `json:"payload"`
		When    string   `json:"when"`
		Binary  bool     `json:"binary,omitempty"`
		Stream  bool     `json:"stream,omitempty"`
	}
)

// capabilityAnswer is the guide of a capability, or the table of errors shared by all capabilities.
type capabilityAnswer struct {
	Capability   string              `json:"capability"`
	About        string              `json:"about"`
	Part         string              `json:"part,omitempty"`
	Commands     []commandWords      `json:"commands,omitempty"`
	Events       []eventWords        `json:"events,omitempty"`
	Nodes        map[string][]string `json:"nodes,omitempty"`
	DeviceModels map[string]string   `json:"deviceModels,omitempty"`
	Example      *example            `json:"example,omitempty"`
	Pitfalls     []string            `json:"pitfalls,omitempty"`
	Errors       []errorGuide        `json:"errors,omitempty" jsonschema:"Of errors: every code of a command."`
	Next         []nextCall          `json:"nextCalls"`
	Summary      string              `json:"summary"`
}

// errorsGuide is the argument that requests the table of errors.
const errorsGuide = "errors"

// guideNames lists the valid values of the argument capability.
func guideNames() []string { return append(guide.CapabilityIDs(), errorsGuide) }

func (t getCapabilityGuide) definition() definition {
	return define(readOnly("getCapabilityGuide", "Learn one capability",
		answersOf[capabilityAnswer](required("capability", "about", "summary"),
			on("nodes", says("Of display: node types of a tree, each with its description and its fields.")),
			on("deviceModels", says("Models that have it, and how; facts without a note in brackets are the vendor's.")),
			on("part", says("The part that the wearer may refuse or switch off; absent: none.")),
			on("commands.answer", says("The meaning of the result besides ok.")),
			on("commands.errors", says("Its error codes, besides those that any command can have.")),
			on("events.binary", says("A binary frame: two bytes with the header's length (big-endian), the header as JSON, "+
				"the bytes.")),
			on("events.stream", says("Counted in the event log (stream.counted) instead of listed.")),
			on("errors.do", says("What the app should do.")),
			on("errors.any", says("Any command can fail with it.")),
		),
	), t.run,
		required("capability"),
		on("capability", oneOf(guideNames()...)),
		on("deviceModel", oneOf(glasses.ModelIDs()...)),
	)
}

func (t getCapabilityGuide) run(_ context.Context, c call, args getCapabilityGuideArgs) (any, error) {
	if args.Capability == errorsGuide {
		return errorTable(), nil
	}
	known, ok := guide.CapabilityOf(args.Capability)
	if !ok {
		return nil, notOneOf("capability", guideNames())
	}
	models := glasses.Models()
	if args.DeviceModel != "" {
		model, ok := glasses.Model(args.DeviceModel)
		if !ok {
			return nil, notOneOf("deviceModel", glasses.ModelIDs())
		}
		models = []glasses.DeviceModel{model}
	}
	words := capabilityGuideOf(known.ID)
	answer := capabilityAnswer{
		Capability: known.ID, About: known.About, Part: known.Part, Commands: commandLines(known.Commands),
		Events: eventLines(known.Events), Example: &words.Example, Pitfalls: words.Pitfalls, Next: words.Next,
		DeviceModels: modelSupports(models, known.ID),
	}
	if support, has := answer.DeviceModels[args.DeviceModel]; has { // too long to add for all models
		support = strings.TrimPrefix(support+provenOnReal(args.DeviceModel, known.ID), "; ")
		answer.DeviceModels[args.DeviceModel] = support
	}
	if known.ID == guide.Display {
		answer.Nodes = nodeLines()
	}
	on := fmt.Sprintf("%d of %d device models have it", len(answer.DeviceModels), len(models))
	answer.Summary = fmt.Sprintf("%d commands, %d events; %s.", len(answer.Commands), len(answer.Events), on)
	if len(answer.Commands) > 0 {
		answer.Next = append(answer.Next, suggest("getCapabilityGuide", `{"capability":"`+errorsGuide+`"}`,
			"what to do about each error"))
	}
	return answer, nil
}

// driven lists the capabilities that our drivers of real glasses implement. The service itself provides the others.
var driven = []string{guide.Display, guide.Input, guide.Microphone, guide.Camera, guide.Motion}

// provenOnReal returns a phrase to append that describes how far a capability is proven on the real glasses of a model,
// or "" if it is not driven.
func provenOnReal(deviceModel, capability string) string {
	proof := glasses.ProofOf(deviceModel)
	switch {
	case proof.State == glasses.ProofPhoneOnly:
		return "; real: phone only, " + proof.Reason
	case proof.State == glasses.ProofNone || !slices.Contains(driven, capability):
		return ""
	}
	return "; real: " + proof.State
}

// anyCommandFails lists the error codes of every command. The first code applies only to commands with a payload.
var anyCommandFails = []string{glasses.CodeBadPayload, glasses.CodeNotConnected, glasses.CodeTimeout,
	glasses.CodePlatform}

// errorTable returns the answer that lists the errors of all capabilities.
func errorTable() capabilityAnswer {
	answer := capabilityAnswer{
		Capability: errorsGuide, About: "The errors of commands: result {error: {code, message}}.",
		Errors: errorGuides(),
		Next:   []nextCall{suggest("injectFault", `{"code":"busy"}`, "see how the app handles a failed command")},
	}
	for i := range answer.Errors {
		answer.Errors[i].Any = slices.Contains(anyCommandFails, answer.Errors[i].Code)
	}
	answer.Summary = fmt.Sprintf("%d codes.", len(answer.Errors))
	return answer
}

func commandLines(types []string) []commandWords {
	var list []commandWords
	for _, c := range commandGuidesOf(types) {
		own := slices.DeleteFunc(slices.Clone(c.Errors), func(code string) bool {
			return slices.Contains(anyCommandFails, code)
		})
		list = append(list, commandWords{c.Type, fieldLines(c.Payload), c.Answer, own})
	}
	return list
}

func eventLines(types []string) []eventWords {
	var list []eventWords
	for _, e := range eventGuidesOf(types) {
		list = append(list, eventWords{e.Type, fieldLines(e.Payload), e.When, e.Binary, e.Stream})
	}
	for i, e := range list {
		if i > 0 && slices.Equal(e.Payload, list[0].Payload) {
			list[i].Payload = []string{"as " + list[0].Type}
		}
	}
	return list
}

// nodeLines returns the lines for each type of node: its description, followed by its fields.
func nodeLines() map[string][]string {
	all := map[string][]string{}
	guides := nodeGuides()
	first := fieldLines(guides[0].Fields)
	for i, n := range guides {
		lines := fieldLines(n.Fields)
		if i > 0 && slices.Equal(lines, first) {
			lines = []string{"fields as " + guides[0].Type}
		}
		all[n.Type] = append([]string{n.About}, lines...)
	}
	return all
}

func fieldLines(fields []field) []string {
	var list []string
	for _, f := range fields {
		list = append(list, f.line())
	}
	return list
}

// line describes a field in one line, such as "fps: integer 1..30, default 5; frames a second".
func (f field) line() string {
	line := f.Name + ": " + f.Type
	if f.Min != nil && f.Max != nil {
		line += fmt.Sprintf(" %d..%d", *f.Min, *f.Max)
		switch f.Type {
		case "string":
			line += " characters"
		case "array":
			line += " elements"
		}
	}
	if len(f.OneOf) > 0 {
		line = f.Name + ": " + strings.Join(f.OneOf, "|")
	}
	if f.Required {
		line += ", required"
	}
	if f.Default != nil {
		line += fmt.Sprintf(", default %v", f.Default)
	}
	if f.About != "" {
		line += "; " + f.About
	}
	return line
}

// modelSupports returns the models that have a capability, with details for each model.
func modelSupports(models []glasses.DeviceModel, capability string) map[string]string {
	all := map[string]string{}
	for _, m := range models {
		if !guide.Has(m, capability) {
			continue
		}
		detail, fidelity := detailOf(m, capability)
		if fidelity != "" && fidelity != glasses.Documented {
			detail = strings.TrimSpace(detail + " (" + fidelity + ")")
		}
		all[m.ID] = detail
	}
	return all
}

func detailOf(m glasses.DeviceModel, capability string) (detail, fidelity string) {
	switch capability {
	case guide.Display:
		return panelWords(*m.Panel) + "; text in pixels: " + render.TextSizeWords(m), m.Fidelity["panel"]
	case guide.Camera:
		return fmt.Sprintf("up to %dx%d", m.Camera.Width, m.Camera.Height), m.Fidelity["camera"]
	case guide.Microphone, guide.Transcription:
		return "", m.Fidelity["microphone"]
	case guide.Speech, guide.Sound:
		return "", m.Fidelity["speaker"]
	case guide.Motion:
		return "", m.Fidelity["motion"]
	case guide.Input:
		detail = strings.Join(m.Inputs, ", ")
		if words := guide.FocusWords(m); words != "" {
			detail += "; " + words
		}
		return detail, m.Fidelity["inputs"]
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

// notOneOf returns the error for an argument whose value is not in words.
func notOneOf(argument string, words []string) error {
	words = slices.Clone(words)
	return invalid(fmt.Sprintf("argument %q is missing or unknown", argument),
		"Pass one of: "+strings.Join(words, ", ")+".")
}
