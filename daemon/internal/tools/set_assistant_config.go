package tools

import (
	"context"
	"slices"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

type setAssistantConfig struct {
	records
}

type setAssistantConfigArgs struct {
	recordArgs
	Version *integer `json:"version"`
	backendapi.AssistantChange
}

// changedAssistantAnswer contains only the settings that changed.
type changedAssistantAnswer struct {
	changed
	Project       string                   `json:"project"`
	Version       int64                    `json:"version"`
	RealtimeModel *string                  `json:"realtimeModel,omitempty"`
	Voice         *string                  `json:"voice,omitempty"`
	MemoryModel   *string                  `json:"memoryModel,omitempty"`
	TextModel     *string                  `json:"textModel,omitempty"`
	SessionMemory *bool                    `json:"sessionMemory,omitempty"`
	Sounds        *bool                    `json:"sounds,omitempty"`
	Cost          backendapi.AssistantCost `json:"cost"`
	Summary       string                   `json:"summary"`
}

func (t setAssistantConfig) definition() definition {
	return define(recordChanger[changedAssistantAnswer]("setAssistantConfig", "Change the assistant's settings",
		on("version", notNegative, says("Pass it to the next change.")), assistantCost, recordErrors), t.run,
		required("version"),
		on("version", notNegative),
		on("realtimeModel", says("An id in choices.realtimeModels.")),
		on("voice", says("An id in choices.voices that the model can speak with.")),
		on("memoryModel", says("An id in choices.memoryModels.")),
		on("textModel", says("An id in choices.textModels, or empty.")),
	)
}

func (t setAssistantConfig) run(ctx context.Context, c call, args setAssistantConfigArgs) (any, error) {
	change, err := newChange(args.recordArgs, "getAssistantConfig", args.Version, args.AssistantChange)
	if err != nil {
		return nil, err
	}
	args.AssistantChange.Version = change.version
	apply := func(ctx context.Context, target backend.Target, project string) (backendapi.AssistantConfig, error) {
		return t.source.ChangeAssistant(ctx, target, project, args.AssistantChange)
	}
	return onRecord(ctx, t.records, c, change.recordCall, apply, func(after backendapi.AssistantConfig) any {
		outcome, words := change.outcome(after.Version, after.Changed)
		words = describeEffect(after, slices.Clone(outcome.Fields)...) + words
		answer := changedAssistantAnswer{changed: outcome, Project: after.Project, Version: after.Version,
			Cost: after.Cost, Summary: words + describeCost(after.Cost)}
		copyFields(&answer, after, outcome.Fields)
		return answer
	})
}
