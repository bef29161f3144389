package api

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/proto/backendapi"
)

func (a *API) getAssistant(c *call) (any, error) {
	config, err := a.Assistant.Get(c.Context(), c.who.AccountID, c.project.ID)
	if err != nil {
		return nil, err
	}
	choices, err := a.choices(c)
	if err != nil {
		return nil, err
	}
	answer := a.assistantOf(config, nil, choices, c.grants)
	return answer, a.addMemory(c, &answer)
}

// addMemory adds how much is remembered, unless the grants hide the memory model.
func (a *API) addMemory(c *call, to *backendapi.AssistantConfig) error {
	if a.Memory == nil || to.MemoryModel == nil {
		return nil
	}
	sum, err := a.Memory.Summary(c.Context(), c.who.AccountID, c.project.ID)
	to.Memory = &backendapi.AssistantMemory{Profiles: int64(sum.Profiles), Oldest: timeOrNull(sum.Oldest),
		Days: int64(sum.Days)}
	return err
}

func (a *API) choices(c *call) (assistant.Catalogue, error) {
	return a.Assistant.Choices(c.Context(), c.who.AccountID, c.project.ID)
}

// assistantFields decodes the request body and returns the names of the fields to change.
func assistantFields(c *call) ([]string, error) {
	var body backendapi.AssistantChange
	if err := c.decode(maxBody, &body); err != nil {
		return nil, err
	}
	change := assistant.Change{Version: body.Version, RealtimeModel: body.RealtimeModel, Voice: body.Voice,
		MemoryModel: body.MemoryModel, TextModel: body.TextModel, SessionMemory: body.SessionMemory, Sounds: body.Sounds}
	c.body = change
	return change.Names(), nil
}

func (a *API) changeAssistant(c *call) (any, error) {
	change, _ := c.body.(assistant.Change)
	before, after, err := a.Assistant.Change(c.Context(), c.who.AccountID, c.project.ID, change, c.by())
	if err != nil {
		return nil, redact(err, c.grants)
	}
	choices, err := a.choices(c)
	if err != nil {
		return nil, err
	}
	answer := a.assistantOf(after, &before, choices, c.grants)
	answer.Changed = changedFields(a.assistantOf(before, nil, choices, c.grants), answer, change.Names())
	return answer, a.addMemory(c, &answer)
}

// redact prevents a refusal from revealing a conversation model that the grants hide. The model's list of voices, or a
// note that it is no longer offered, would reveal the model.
func redact(err error, g grants.Grants) error {
	var invalid *assistant.InvalidError
	if !errors.As(err, &invalid) || invalid.Tells == "" || g.Of(grants.Assistant, invalid.Tells).Allows(grants.Read) {
		return err
	}
	return &assistant.InvalidError{Field: invalid.Field,
		Message: "the conversation model does not support this voice; the account does not let agents read that model"}
}

// assistantOf returns the parts of a config that the grants let an agent read. before is the config before the
// change.
func (a *API) assistantOf(
	config assistant.Config, before *assistant.Config, choices assistant.Catalogue, g grants.Grants,
) backendapi.AssistantConfig {
	out := backendapi.AssistantConfig{
		Project: config.Project, Version: config.Version, UpdatedAt: timeOrNull(config.UpdatedAt),
		UpdatedBy: actorOrNull(config.UpdatedBy), Access: assistantAccess(g), Choices: choicesOf(choices),
		Effective:     append([]string{}, choices.Effective...),
		RealtimeModel: visible(g, grants.RealtimeModel, config.RealtimeModel),
		Voice:         visible(g, grants.Voice, config.Voice),
		MemoryModel:   visible(g, grants.MemoryModel, config.MemoryModel),
		TextModel:     visible(g, grants.TextModel, config.TextModel),
		SessionMemory: visible(g, grants.SessionMemory, config.SessionMemory),
		Sounds:        visible(g, grants.Sounds, config.Sounds),
	}
	out.Cost = a.costOf(config, before, choices, out)
	if out.TextModel != nil {
		out.Cost.TextModel = priceOf(choices.TextPrice(config))
		if before != nil {
			out.Cost.BeforeTextModel = priceOf(choices.TextPrice(*before))
		}
	}
	if out.RealtimeModel != nil {
		out.Cost.RealtimeModel = soundPriceOf(choices.Realtime(config))
		if before != nil {
			out.Cost.BeforeRealtimeModel = soundPriceOf(choices.Realtime(*before))
		}
	}
	return out
}

// visible returns nil if the grants hide the field.
func visible[T any](g grants.Grants, field string, value T) *T {
	if !g.Of(grants.Assistant, field).Allows(grants.Read) {
		return nil
	}
	return &value
}

// costOf returns prices only if both models that determine them are visible.
func (a *API) costOf(
	config assistant.Config, before *assistant.Config, choices assistant.Catalogue, seen backendapi.AssistantConfig,
) backendapi.AssistantCost {
	if seen.RealtimeModel == nil || seen.MemoryModel == nil {
		return backendapi.AssistantCost{Note: "the cost is hidden, because the account hides a model from agents"}
	}
	cost := backendapi.AssistantCost{MicroUSDPerMinute: a.Assistant.Cost(config)}
	if before != nil {
		cost.BeforeMicroUSDPerMinute = a.Assistant.Cost(*before)
	}
	gone := choices.Gone(config)
	gone = slices.DeleteFunc(gone, func(id string) bool { // IDs of hidden fields stay hidden
		return seen.Voice == nil && id == config.Voice || seen.TextModel == nil && id == config.TextModel
	})
	switch {
	case len(gone) > 0:
		cost.Note = strings.Join(gone, ", ") + " is set and no longer offered: it cannot be chosen again"
	case choices.Realtime(config) != nil:
		p := choices.Realtime(config)
		cost.Note = fmt.Sprintf("sound is estimated at %d tokens for a second that the model hears and %d for one that it "+
			"speaks; text, instructions and what it reads again for each answer come on top", p.InRate, p.OutRate)
	case cost.MicroUSDPerMinute == nil:
		cost.Note = "the operator of this backend has set no price"
	default:
		cost.Note = "the estimated cost of a minute of conversation with this config"
	}
	return cost
}

func assistantAccess(g grants.Grants) map[string]string {
	access := map[string]string{}
	for _, f := range grants.Fields() {
		access[f] = string(g.Of(grants.Assistant, f))
	}
	return access
}

func priceOf(p *assistant.TokenPrice) *backendapi.TokenPrice {
	if p == nil {
		return nil
	}
	return &backendapi.TokenPrice{In: p.In, Cached: p.Cached, Out: p.Out}
}

func soundPriceOf(p *assistant.SoundPrice) *backendapi.SoundPrice {
	if p == nil {
		return nil
	}
	return &backendapi.SoundPrice{In: p.In, Out: p.Out}
}

func choicesOf(c assistant.Catalogue) backendapi.AssistantChoices {
	return backendapi.AssistantChoices{
		RealtimeModels: convert(c.RealtimeModels, func(m assistant.Model) backendapi.AssistantModel {
			return backendapi.AssistantModel{ID: m.ID, Name: m.Name, Description: m.Description, Voices: m.Voices,
				MicroUSDPerMinute: m.Price, Why: textOrNull(m.Why), Sound: soundPriceOf(m.Sound)}
		}),
		MemoryModels: convert(c.MemoryModels, func(m assistant.Model) backendapi.MemoryModel {
			return backendapi.MemoryModel{ID: m.ID, Name: m.Name, Description: m.Description, MicroUSDPerMinute: m.Price}
		}),
		Voices: convert(c.Voices, func(v assistant.Voice) backendapi.AssistantVoice {
			return backendapi.AssistantVoice{ID: v.ID, Name: v.Name, Description: v.Description}
		}),
		TextModels: convert(c.TextModels, func(m assistant.TextModel) backendapi.TextModel {
			return backendapi.TextModel{ID: m.ID, Name: m.Name, Description: m.Description, Default: m.ID == c.DefaultText,
				Why: textOrNull(m.Why), MicroUSDPerMillion: *priceOf(&m.Price)}
		}),
	}
}
