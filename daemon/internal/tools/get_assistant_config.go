package tools

import (
	"fmt"
	"slices"
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
	on("effective", says("Settings with an effect here.")),
	on("choices.textModels.why", says("Why it cannot be chosen now.")),
	on("choices.realtimeModels.microUsdPerMinuteOfSound", opaque, nullable, says("in (heard), out (spoken).")),
	assistantCost,
	recordErrors,
)

var assistantCost = with(
	on("cost", says("In millionths of a US dollar; null: unknown.")),
	on("cost.textModel", says("Per million tokens.")),
	on("cost.realtimeModel", says("Per minute of sound, heard (in) and spoken (out).")),
	onEach(opaque, "cost.beforeTextModel", "cost.beforeRealtimeModel"),
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
	c.Effective = effective(c)
	return c
}

// effective returns the settings that have an effect. With a backend of an earlier version, it is only the text model.
func effective(c backendapi.AssistantConfig) []string {
	if c.Effective == nil {
		return []string{"textModel"}
	}
	return c.Effective
}

// describeEffect returns a sentence about those of the given settings that have no effect on the backend, or "".
func describeEffect(c backendapi.AssistantConfig, fields ...string) string {
	idle := slices.DeleteFunc(fields, func(f string) bool { return slices.Contains(effective(c), f) })
	if len(idle) == 0 {
		return ""
	}
	return "No effect on this backend yet: " + strings.Join(idle, ", ") + ". "
}

func describeAssistant(c backendapi.AssistantConfig) string {
	const hidden = "hidden from agents"
	parts := []string{
		"realtime model " + orNot(c.RealtimeModel, hidden), "voice " + orNot(c.Voice, hidden),
		"memory model " + orNot(c.MemoryModel, hidden), "text model " + textModelWord(c.TextModel, hidden),
		"memory within a session " + onOff(c.SessionMemory, hidden), "sounds " + onOff(c.Sounds, hidden),
	}
	effect := describeEffect(c, "realtimeModel", "voice", "memoryModel", "textModel", "sessionMemory", "sounds")
	return effect + fmt.Sprintf("The assistant of %s at version %d: %s. %s%s", c.Project, c.Version,
		strings.Join(parts, ", "), describeMemory(c.Memory), describeCost(c.Cost))
}

// describeMemory describes how much is remembered about users, or returns "".
func describeMemory(m *backendapi.AssistantMemory) string {
	if m == nil || m.Profiles == 0 {
		return ""
	}
	return fmt.Sprintf("Users about whom something is remembered: %d, each until %d days after the last conversation. ",
		m.Profiles, m.Days)
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
	words := describeMinute(c) + describeSound(c)
	if c.TextModel == nil {
		return words
	}
	words += " A million tokens of the text model cost " + tokenPrices(*c.TextModel)
	if c.BeforeTextModel != nil && *c.BeforeTextModel != *c.TextModel {
		words += ", before " + tokenPrices(*c.BeforeTextModel)
	}
	return words + "."
}

// describeSound describes the realtime model's cost, before and after a change.
func describeSound(c backendapi.AssistantCost) string {
	if c.RealtimeModel == nil {
		return ""
	}
	words := " A minute of sound costs " + soundPrices(*c.RealtimeModel)
	if before := c.BeforeRealtimeModel; before != nil && *before != *c.RealtimeModel {
		words += ", before " + soundPrices(*before)
	}
	return words + "."
}

func soundPrices(p backendapi.SoundPrice) string {
	return backendapi.Dollars(p.In) + " heard and " + backendapi.Dollars(p.Out) + " spoken"
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
	case now == nil && c.RealtimeModel != nil:
		return "The operator states no cost of a whole minute of conversation" + note + "."
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
