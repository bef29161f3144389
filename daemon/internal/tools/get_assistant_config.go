package tools

import (
	"fmt"
	"strings"

	"github.com/service-dev/service/proto/backendapi"
)

type assistantAnswer struct {
	Status string `json:"status"`
	backendapi.AssistantConfig
	Summary string `json:"summary"`
}

// assistantFields completes the schema of answers that contain a configuration.
var assistantFields = with(
	on("version", notNegative, says("Counts changes. Pass it to setAssistantConfig.")),
	on("textModel", says("The model behind the name assistant at the AI gateway; empty: the operator's default.")),
	on("sessionMemory", says("Whether it remembers earlier parts of a session.")),
	on("sounds", says("Whether it plays sounds, e.g. when it begins to listen.")),
	on("updatedAt", format("date-time")),
	on("access", oneOf(levels...), says("What agents may do with each field.")),
	on("choices", says("The ids that this backend accepts.")),
	on("choices.realtimeModels.voices", says("Voices that it can speak with.")),
	on("choices.memoryModels.voices", says("Voices that it can speak with.")),
	on("choices.textModels.why", says("Why it cannot be chosen now.")),
	assistantCost,
	recordErrors,
)

var assistantCost = with(
	on("cost", says("In millionths of a US dollar; null: unknown.")),
	on("cost.textModel", says("Per million tokens.")),
	on("cost.beforeTextModel", opaque),
)

func getAssistantConfig(r records) definition {
	return readRecord(r, "getAssistantConfig", "Read the assistant's settings", Records.Assistant,
		func(config backendapi.AssistantConfig) assistantAnswer {
			return assistantAnswer{"ok", tidyAssistant(config), describeAssistant(config)}
		}, assistantFields)
}

func tidyAssistant(c backendapi.AssistantConfig) backendapi.AssistantConfig {
	if c.Access == nil {
		c.Access = map[string]string{}
	}
	c.Choices.RealtimeModels = orEmpty(c.Choices.RealtimeModels)
	c.Choices.MemoryModels = orEmpty(c.Choices.MemoryModels)
	c.Choices.Voices = orEmpty(c.Choices.Voices)
	c.Choices.TextModels = orEmpty(c.Choices.TextModels)
	return c
}

// onlyTextModel precedes settings that only a voice assistant would use.
const onlyTextModel = "Only the text model has an effect in this version: the other settings are kept for a voice " +
	"assistant that does not exist yet. "

func describeAssistant(c backendapi.AssistantConfig) string {
	const hidden = "hidden from agents"
	parts := []string{
		"realtime model " + orNot(c.RealtimeModel, hidden), "voice " + orNot(c.Voice, hidden),
		"memory model " + orNot(c.MemoryModel, hidden), "text model " + textModelWord(c.TextModel, hidden),
		"memory within a session " + onOff(c.SessionMemory, hidden), "sounds " + onOff(c.Sounds, hidden),
	}
	return onlyTextModel + fmt.Sprintf("The assistant of %s at version %d: %s. %s", c.Project, c.Version,
		strings.Join(parts, ", "), describeCost(c.Cost))
}

func textModelWord(id *string, hidden string) string {
	if id != nil && *id == "" {
		return "the operator's default"
	}
	return orNot(id, hidden)
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

// describeCost describes the cost per minute and the text model's cost, before and after a change.
func describeCost(c backendapi.AssistantCost) string {
	words := describeMinute(c)
	if c.TextModel == nil {
		return words
	}
	words += " A million tokens of the text model cost " + tokenPrices(*c.TextModel)
	if c.BeforeTextModel != nil && *c.BeforeTextModel != *c.TextModel {
		words += ", before " + tokenPrices(*c.BeforeTextModel)
	}
	return words + "."
}

func tokenPrices(p backendapi.TokenPrice) string {
	return backendapi.Dollars(p.In) + " in and " + backendapi.Dollars(p.Out) + " out"
}

func describeMinute(c backendapi.AssistantCost) string {
	note := ""
	if c.Note != "" {
		note = " (" + strings.TrimSuffix(c.Note, ".") + ")"
	}
	switch now, before := c.MicroUSDPerMinute, c.BeforeMicroUSDPerMinute; {
	case now == nil:
		return "The cost is unknown" + note + "."
	case before == nil:
		return "A minute of conversation costs " + backendapi.Dollars(*now) + note + "."
	case *now == *before:
		return "A minute of conversation costs " + backendapi.Dollars(*now) + ", as before" + note + "."
	default:
		return fmt.Sprintf("A minute of conversation cost %s before and costs %s now%s.", backendapi.Dollars(*before),
			backendapi.Dollars(*now), note)
	}
}
