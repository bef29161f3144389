package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scaffold"
)

const inspectIntegrationText = `Looks into a project folder and tells what is there: languages, generated modules with their version and the state of each file, the commands ` +
	`and phrases that the app's own files use and where, what platform manifests declare, and how the project key is kept. ` +
	`Use it to get to know a project, or after a change, to see what it uses. It reads at most 2,000 files, follows no links, changes nothing, ` +
	`returns no secret and needs no account. It does not judge: validateIntegration does. It does not look at running sessions: getSessionStatus does.`

type inspectIntegration struct{}

type integrationArgs struct {
	Dir string `json:"dir"`
}

type inspectionAnswer struct {
	Dir          string                 `json:"dir"`
	Project      string                 `json:"project"`
	Languages    []scaffold.LanguageUse `json:"languages"`
	Modules      []scaffold.ModuleState `json:"modules"`
	Pages        []scaffold.FileState   `json:"connectionPages"`
	Commands     []scaffold.Use         `json:"commands"`
	Capabilities []string               `json:"capabilities"`
	Phrases      []scaffold.Use         `json:"phrases"`
	Declared     []scaffold.Declared    `json:"declared"`
	Keys         []scaffold.KeyState    `json:"keys"`
	FilesRead    int                    `json:"filesRead"`
	Truncated    bool                   `json:"truncated"`
	Next         []nextCall             `json:"nextCalls"`
	Summary      string                 `json:"summary"`
}

const dirProperty = `"dir":{"type":"string","description":"The project's folder. Left out: the working directory."}`

const useSchema = `{"type":"object","properties":{"name":{"type":"string"},"file":{"type":"string"},"line":{"type":"integer"}}}`

func (t inspectIntegration) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "inspectIntegration", Title: "See what a project integrates", Description: inspectIntegrationText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(dirProperty, ""),
		OutputSchema: outputSchema(`
			"dir":{"type":"string"},
			"project":{"type":"string","description":"The app id of service.json; empty: none."},
			"languages":{"type":"array","items":{"type":"object","properties":{"language":{"type":"string"},"files":{"type":"integer"}}}},
			"modules":{"type":"array","items":{"type":"object","properties":{"dir":{"type":"string"},"language":{"type":"string"},"version":{"type":"string"},
				"capabilities":{"type":"array","items":{"type":"string"}},
				"files":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"state":{"type":"string","enum":["intact","changed","missing"]}}}}}}},
			"connectionPages":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"state":{"type":"string","enum":["intact","changed","missing"]}}},"description":"Copies of the connection page."},
			"commands":{"type":"array","items":`+useSchema+`,"description":"Commands of the glasses in the app's own files."},
			"capabilities":{"type":"array","items":{"type":"string"},"description":"Those that the commands belong to."},
			"phrases":{"type":"array","items":`+useSchema+`,"description":"Phrases that the app announces."},
			"declared":{"type":"array","items":{"type":"object","properties":{"platform":{"type":"string"},"file":{"type":"string"},"names":{"type":"array","items":{"type":"string"}}}},"description":"What platform manifests ask for."},
			"keys":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"ignored":{"type":"boolean"},"tracked":{"type":"boolean"},"private":{"type":"boolean"}}},"description":"Files with a project key, never the key."},
			"filesRead":{"type":"integer"},"truncated":{"type":"boolean"},`+
			nextProperty+`,`+summaryProperty, `"dir","languages","modules","commands","capabilities","phrases","summary"`, false),
	}}
}

func (t inspectIntegration) run(ctx context.Context, c call) (any, error) {
	in, err := inspect(ctx, c)
	if err != nil {
		return nil, err
	}
	a := inspectionAnswer{
		Dir: in.Root, Project: in.Project, Languages: orEmpty(in.Languages), Modules: orEmpty(in.Modules), Pages: orEmpty(in.Pages), Commands: orEmpty(in.Commands),
		Capabilities: orEmpty(in.Capabilities), Phrases: orEmpty(in.Phrases), Declared: orEmpty(in.Declared), Keys: orEmpty(in.Keys),
		FilesRead: in.FilesRead, Truncated: in.Truncated,
		Next: []nextCall{call1("validateIntegration", arguments(map[string]any{"dir": in.Root}), "find what is wrong with it")},
	}
	uses := "no command of the glasses"
	if len(in.Capabilities) > 0 {
		uses = strings.Join(in.Capabilities, ", ")
	}
	a.Summary = fmt.Sprintf("%s: %d generated modules; the app uses %s.", in.Root, len(in.Modules), uses)
	return a, nil
}

func inspect(ctx context.Context, c call) (scaffold.Inspection, error) {
	var args integrationArgs
	if err := decode(c.args, &args); err != nil {
		return scaffold.Inspection{}, err
	}
	dir, err := projectDir(c, args.Dir)
	if err != nil {
		return scaffold.Inspection{}, err
	}
	in, err := scaffold.Inspect(ctx, clientio.FilesOf(c.who), dir)
	if err != nil {
		return in, scaffoldError(err)
	}
	return in, nil
}

// orEmpty is an empty list for none: agents read [] more easily than null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
