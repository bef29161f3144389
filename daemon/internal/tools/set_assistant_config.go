package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
)

const setAssistantConfigText = `Changes how a project's voice assistant is set. Pass the version that getAssistantConfig told and only the fields to change; the others stay. ` +
	`The answer is the config after the change, with what a minute of conversation cost before and costs now where that is known: tell the person. ` +
	`Use it when the person asked for the change. If somebody changed the config since it was read, nothing is changed and it answers version_conflict: call getAssistantConfig again. ` +
	`Each field has a grant of its own; permission_denied names the one that lacks Read + Write, and then nothing is changed. The owner sees each change under Activity of the dashboard and can undo it there. ` +
	`Do not use it to try models out one after another, nor for keys of AI providers (setCredential). ` +
	`Needs a linked account: without one it answers status "auth_required", a normal step; see createSimulatorSession.`

type assistantChanger interface {
	// ChangeAssistant gives the config after the change.
	ChangeAssistant(ctx context.Context, target backend.Target, project string, change backend.AssistantChange) (backend.AssistantConfig, error)
}

type setAssistantConfig struct {
	records
	source assistantChanger
}

type setAssistantConfigArgs struct {
	Project       string   `json:"project"`
	Version       *integer `json:"version"`
	RealtimeModel *string  `json:"realtimeModel"`
	Voice         *string  `json:"voice"`
	MemoryModel   *string  `json:"memoryModel"`
	SessionMemory *bool    `json:"sessionMemory"`
	Sounds        *bool    `json:"sounds"`
	OpenBrowser   *bool    `json:"openBrowser"`
}

type changedAssistantAnswer struct {
	Status  string   `json:"status"`
	Changed []string `json:"changed"`
	backend.AssistantConfig
	Summary string `json:"summary"`
}

func (t setAssistantConfig) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "setAssistantConfig", Title: "Change the assistant's settings", Description: setAssistantConfigText, NeedsAccount: true,
		Annotations: Annotations{OpenWorld: true},
		InputSchema: inputSchema(projectArgument+","+versionArgument+`,
			"realtimeModel":{"type":"string","description":"An id of choices.realtimeModels."},
			"voice":{"type":"string","description":"An id of choices.voices that the realtime model can speak with."},
			"memoryModel":{"type":"string","description":"An id of choices.memoryModels."},
			"sessionMemory":{"type":"boolean","description":"Whether the assistant remembers what was said earlier in a session."},
			"sounds":{"type":"boolean","description":"Whether it plays sounds."},`+recordLinkArgument, `"version"`),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","changed","unchanged"],"description":"unchanged: it was set so already."},
			"changed":{"type":"array","items":{"type":"string"},"description":"The fields that this call set."},`+
			assistantProperties+summaryProperty+","+recordErrorProperties, `"status","summary"`, true),
	}}
}

func (t setAssistantConfig) run(ctx context.Context, c call) (any, error) {
	var args setAssistantConfigArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if err := checkVersion(args.Version, "getAssistantConfig"); err != nil {
		return nil, err
	}
	fields := args.fields()
	if len(fields) == 0 {
		return nil, nothingToChange("realtimeModel, voice, memoryModel, sessionMemory, sounds")
	}
	about := recordCall{project: args.Project, openBrowser: args.OpenBrowser, reads: "getAssistantConfig"}
	return t.records.run(ctx, c, about, func(ctx context.Context, target backend.Target, project string) (any, error) {
		after, err := t.source.ChangeAssistant(ctx, target, project, backend.AssistantChange{
			Version: int64(*args.Version), RealtimeModel: args.RealtimeModel, Voice: args.Voice, MemoryModel: args.MemoryModel,
			SessionMemory: args.SessionMemory, Sounds: args.Sounds,
		})
		if err != nil {
			return nil, err
		}
		status, changed := changedBy(int64(*args.Version), after.Version, fields)
		what := "Nothing was changed, it was set so already. "
		if status == "changed" {
			what = fmt.Sprintf("Changed %s. ", strings.Join(changed, ", "))
		}
		return changedAssistantAnswer{Status: status, Changed: changed, AssistantConfig: tidyAssistant(after), Summary: what + describeAssistant(after)}, nil
	})
}

// fields lists those that the call names.
func (a setAssistantConfigArgs) fields() []string {
	var n named
	n.add("realtimeModel", a.RealtimeModel != nil)
	n.add("voice", a.Voice != nil)
	n.add("memoryModel", a.MemoryModel != nil)
	n.add("sessionMemory", a.SessionMemory != nil)
	n.add("sounds", a.Sounds != nil)
	return n
}
