package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
)

const getAssistantConfigText = `Reads how a project's voice assistant is set: realtime model, voice, memory model, memory within a session, sounds; with the version that setAssistantConfig ` +
	`needs, the ids that this backend takes (choices), what agents may do with each field (access), and what a minute of conversation costs where the operator has set prices. ` +
	`Use it before every setAssistantConfig, and to explain the settings to the person. A field is null when the account's owner hides it from agents; that is no error. ` +
	`It is not about what the wearer sees or hears now (getDisplayState) nor about the keys of AI providers (getCredentialStatus). ` +
	`Answers permission_denied when the owner has set the grant to Off. Needs a linked account: without one it answers status "auth_required", a normal step; see createSimulatorSession.`

type assistantReader interface {
	Assistant(ctx context.Context, target backend.Target, project string) (backend.AssistantConfig, error)
}

type getAssistantConfig struct {
	records
	source assistantReader
}

type recordArgs struct {
	Project     string `json:"project"`
	OpenBrowser *bool  `json:"openBrowser"`
}

type assistantAnswer struct {
	Status string `json:"status"`
	backend.AssistantConfig
	Summary string `json:"summary"`
}

const choiceProperties = `"id":{"type":"string"},"name":{"type":"string"},"description":{"type":"string"}`

var assistantProperties = `
	"project":{"type":"string"},
	"version":{"type":"integer","minimum":0,"description":"Counts changes. Pass it to setAssistantConfig."},
	"realtimeModel":` + optional(`"type":"string"`) + `,
	"voice":` + optional(`"type":"string"`) + `,
	"memoryModel":` + optional(`"type":"string"`) + `,
	"sessionMemory":` + optional(`"type":"boolean","description":"Whether the assistant remembers what was said earlier in a session."`) + `,
	"sounds":` + optional(`"type":"boolean","description":"Whether it plays sounds, e.g. when it begins to listen."`) + `,
	"updatedAt":` + optionalTime + `,
	"updatedBy":` + optional(`"type":"string"`) + `,
	"access":{"type":"object","additionalProperties":` + levelSchema + `,"description":"What agents may do with each field."},
	"choices":{"type":"object","properties":{
		"realtimeModels":{"type":"array","items":` + modelChoiceSchema + `},
		"memoryModels":{"type":"array","items":` + modelChoiceSchema + `},
		"voices":{"type":"array","items":{"type":"object","properties":{` + choiceProperties + `}}}},"description":"The ids that this backend takes."},
	"cost":{"type":"object","properties":{
		"microUsdPerMinute":` + optional(`"type":"integer"`) + `,
		"beforeMicroUsdPerMinute":` + optional(`"type":"integer"`) + `,
		"note":{"type":"string"}},"description":"Of a minute of conversation, in millionths of a US dollar; null: not known."},`

var modelChoiceSchema = `{"type":"object","properties":{` + choiceProperties + `,
	"voices":{"type":"array","items":{"type":"string"},"description":"Those that it can speak with."},
	"microUsdPerMinute":` + optional(`"type":"integer"`) + `}}`

func (t getAssistantConfig) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getAssistantConfig", Title: "Read the assistant's settings", Description: getAssistantConfigText, NeedsAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(projectArgument+","+recordLinkArgument, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},`+assistantProperties+summaryProperty+","+recordErrorProperties, `"status","summary"`, true),
	}}
}

func (t getAssistantConfig) run(ctx context.Context, c call) (any, error) {
	var args recordArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	return t.records.run(ctx, c, recordCall{project: args.Project, openBrowser: args.OpenBrowser}, func(ctx context.Context, target backend.Target, project string) (any, error) {
		config, err := t.source.Assistant(ctx, target, project)
		if err != nil {
			return nil, err
		}
		return assistantAnswer{Status: "ok", AssistantConfig: tidyAssistant(config), Summary: describeAssistant(config)}, nil
	})
}

func tidyAssistant(c backend.AssistantConfig) backend.AssistantConfig {
	if c.Access == nil {
		c.Access = map[string]string{}
	}
	c.Choices.RealtimeModels, c.Choices.MemoryModels, c.Choices.Voices = orEmpty(c.Choices.RealtimeModels), orEmpty(c.Choices.MemoryModels), orEmpty(c.Choices.Voices)
	return c
}

func describeAssistant(c backend.AssistantConfig) string {
	const hidden = "hidden from agents"
	parts := []string{
		"realtime model " + orNot(c.RealtimeModel, hidden), "voice " + orNot(c.Voice, hidden), "memory model " + orNot(c.MemoryModel, hidden),
		"memory within a session " + onOff(c.SessionMemory, hidden), "sounds " + onOff(c.Sounds, hidden),
	}
	return fmt.Sprintf("The assistant of %s at version %d: %s. %s", c.Project, c.Version, strings.Join(parts, ", "), describeCost(c.Cost))
}

func onOff(on *bool, hidden string) string {
	switch {
	case on == nil:
		return hidden
	case *on:
		return "on"
	}
	return "off"
}

// describeCost says what a minute costs, and what it did before a change.
func describeCost(c backend.AssistantCost) string {
	note := ""
	if c.Note != "" {
		note = " (" + strings.TrimSuffix(c.Note, ".") + ")"
	}
	switch now, before := c.MicroUSDPerMinute, c.BeforeMicroUSDPerMinute; {
	case now == nil:
		return "What it costs is not known" + note + "."
	case before == nil:
		return "A minute of conversation costs " + dollars(*now) + note + "."
	case *now == *before:
		return "A minute of conversation costs " + dollars(*now) + ", as before" + note + "."
	default:
		return fmt.Sprintf("A minute of conversation cost %s before and costs %s now%s.", dollars(*before), dollars(*now), note)
	}
}

// dollars writes millionths of a dollar with at least the cents, and no zero after them.
func dollars(micro int64) string {
	sign := ""
	if micro < 0 {
		sign, micro = "-", -micro
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", micro%1_000_000), "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return fmt.Sprintf("%s$%d.%s", sign, micro/1_000_000, fraction)
}
