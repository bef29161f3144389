package api

import (
	"context"
	"errors"
	"strings"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/proto/backendapi"
)

// Assistant is what the routes need of the assistants' configs.
type Assistant interface {
	Get(ctx context.Context, accountID, project string) (assistant.Config, error)
	Change(ctx context.Context, accountID, project string, c assistant.Change, by audit.Actor) (before, after assistant.Config, err error)
	Choices() assistant.Catalogue
	Cost(assistant.Config) *int64
}

func (a *API) getAssistant(c *call) (any, error) {
	config, err := a.Assistant.Get(c.Context(), c.who.AccountID, c.project.ID)
	if err != nil {
		return nil, err
	}
	return a.assistantOf(config, nil, c.grants), nil
}

// assistantFields reads the change and tells what it changes.
func assistantFields(c *call) ([]string, error) {
	var body backendapi.AssistantChange
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	change := assistant.Change{Version: body.Version, RealtimeModel: body.RealtimeModel, Voice: body.Voice, MemoryModel: body.MemoryModel,
		SessionMemory: body.SessionMemory, Sounds: body.Sounds}
	c.body = change
	return change.Names(), nil
}

func (a *API) changeAssistant(c *call) (any, error) {
	change, _ := c.body.(assistant.Change)
	before, after, err := a.Assistant.Change(c.Context(), c.who.AccountID, c.project.ID, change, c.by())
	if err != nil {
		return nil, untold(err, c.grants)
	}
	return a.assistantOf(after, &before, c.grants), nil
}

// untold keeps a refusal from giving away what the grants hide. Only the conversation model is ever told of: its voices
// would name it, and so would the news that it is gone.
func untold(err error, g grants.Grants) error {
	var invalid *assistant.InvalidError
	if !errors.As(err, &invalid) || invalid.Tells == "" || g.Of(grants.Assistant, invalid.Tells).Allows(grants.Read) {
		return err
	}
	return &assistant.InvalidError{Field: invalid.Field,
		Message: "this voice cannot be spoken by the project's conversation model; the account grants no look at that one"}
}

// assistantOf is a config as far as the grants let an agent see it; before is what a change has put aside.
func (a *API) assistantOf(config assistant.Config, before *assistant.Config, g grants.Grants) backendapi.AssistantConfig {
	out := backendapi.AssistantConfig{
		Project: config.Project, Version: config.Version, UpdatedAt: timeOrNull(config.UpdatedAt), UpdatedBy: actorOrNull(config.UpdatedBy), Access: assistantAccess(g),
		Choices:       choicesOf(a.Assistant.Choices()),
		RealtimeModel: shown(g, grants.RealtimeModel, config.RealtimeModel), Voice: shown(g, grants.Voice, config.Voice),
		MemoryModel: shown(g, grants.MemoryModel, config.MemoryModel), SessionMemory: shown(g, grants.SessionMemory, config.SessionMemory),
		Sounds: shown(g, grants.Sounds, config.Sounds),
	}
	out.Cost = a.costOf(config, before, out)
	return out
}

func shown[T any](g grants.Grants, field string, value T) *T {
	if !g.Of(grants.Assistant, field).Allows(grants.Read) {
		return nil
	}
	return &value
}

// costOf tells prices only where both models that make them may be seen.
func (a *API) costOf(config assistant.Config, before *assistant.Config, seen backendapi.AssistantConfig) backendapi.AssistantCost {
	if seen.RealtimeModel == nil || seen.MemoryModel == nil {
		return backendapi.AssistantCost{Note: "the cost is not told: the account hides a model from agents"}
	}
	cost := backendapi.AssistantCost{MicroUSDPerMinute: a.Assistant.Cost(config)}
	if before != nil {
		cost.BeforeMicroUSDPerMinute = a.Assistant.Cost(*before)
	}
	gone := a.Assistant.Choices().Gone(config)
	if seen.Voice == nil { // its id is hidden, also when it is gone
		gone = without(gone, config.Voice)
	}
	switch {
	case len(gone) > 0:
		cost.Note = strings.Join(gone, ", ") + " is set and no longer offered: it can be kept or left, not chosen again"
	case cost.MicroUSDPerMinute == nil:
		cost.Note = "the operator of this backend has set no price"
	default:
		cost.Note = "what a minute of conversation costs with this config, an estimate"
	}
	return cost
}

func without(ids []string, id string) []string {
	var rest []string
	for _, other := range ids {
		if other != id {
			rest = append(rest, other)
		}
	}
	return rest
}

func assistantAccess(g grants.Grants) map[string]string {
	access := map[string]string{}
	for _, f := range grants.Fields() {
		access[f] = string(g.Of(grants.Assistant, f))
	}
	return access
}

func choicesOf(c assistant.Catalogue) backendapi.AssistantChoices {
	out := backendapi.AssistantChoices{RealtimeModels: modelsOf(c.RealtimeModels), MemoryModels: modelsOf(c.MemoryModels),
		Voices: make([]backendapi.AssistantVoice, 0, len(c.Voices))}
	for _, v := range c.Voices {
		out.Voices = append(out.Voices, backendapi.AssistantVoice{ID: v.ID, Name: v.Name, Description: v.Description})
	}
	return out
}

func modelsOf(models []assistant.Model) []backendapi.AssistantModel {
	out := make([]backendapi.AssistantModel, 0, len(models))
	for _, m := range models {
		out = append(out, backendapi.AssistantModel{ID: m.ID, Name: m.Name, Description: m.Description, Voices: m.Voices, MicroUSDPerMinute: m.Price})
	}
	return out
}

// assistantRefusal turns the assistants' errors into refusals; nil for others.
func assistantRefusal(err error) *Refusal {
	var invalid *assistant.InvalidError
	var conflict *assistant.ConflictError
	switch {
	case errors.As(err, &invalid):
		return refusal(backendapi.CodeInvalidRequest, invalid.Message, "read the config for the valid ids in choices, and try again")
	case errors.As(err, &conflict):
		return versionConflict("the assistant's config", conflict.Current)
	}
	return nil
}
