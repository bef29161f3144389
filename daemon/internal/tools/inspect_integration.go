package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scaffold"
)

type inspectIntegration struct{}

type integrationArgs struct {
	Dir string `json:"dir" jsonschema:"Default: the working directory."`
}

type inspectionAnswer struct {
	Dir          string                 `json:"dir"`
	Project      string                 `json:"project" jsonschema:"The app id in service.json; empty: none."`
	Languages    []scaffold.LanguageUse `json:"languages"`
	Modules      []scaffold.ModuleState `json:"modules"`
	Pages        []scaffold.FileState   `json:"connectionPages" jsonschema:"Copies of the connection page."`
	Commands     []scaffold.Use         `json:"commands" jsonschema:"Commands of the glasses in the app's own files."`
	Capabilities []string               `json:"capabilities" jsonschema:"The capabilities of those commands."`
	Phrases      []scaffold.Use         `json:"phrases" jsonschema:"Phrases that the app announces."`
	Unknown      []scaffold.Use         `json:"unknownPhrases" jsonschema:"Places that announce unknown phrases."`
	Declared     []scaffold.Declared    `json:"declared" jsonschema:"The permissions in platform manifests."`
	Keys         []scaffold.KeyState    `json:"keys" jsonschema:"Files with a project key, never the key."`
	FilesRead    int                    `json:"filesRead"`
	Truncated    bool                   `json:"truncated"`
	Next         []nextCall             `json:"nextCalls"`
	Summary      string                 `json:"summary"`
}

func (t inspectIntegration) definition() definition {
	return define(readOnly("inspectIntegration", "See what a project integrates",
		answersOf[inspectionAnswer](required("dir", "languages", "modules", "commands", "capabilities",
			"phrases", "summary"),
			on("modules.files.state", oneOf("intact", "changed", "missing")),
			on("connectionPages.state", oneOf("intact", "changed", "missing")),
		),
	), t.run)
}

func (t inspectIntegration) run(ctx context.Context, c call, args integrationArgs) (any, error) {
	in, err := inspect(ctx, c, args.Dir)
	if err != nil {
		return nil, err
	}
	a := inspectionAnswer{
		Dir: in.Root, Project: in.Project, Languages: orEmpty(in.Languages), Modules: orEmpty(in.Modules),
		Pages: orEmpty(in.Pages), Commands: orEmpty(in.Commands),
		Capabilities: orEmpty(in.Capabilities), Phrases: orEmpty(in.Phrases), Unknown: orEmpty(in.UnknownPhrases),
		Declared: orEmpty(in.Declared), Keys: orEmpty(in.Keys),
		FilesRead: in.FilesRead, Truncated: in.Truncated,
		Next: []nextCall{suggest("validateIntegration", arguments(map[string]any{"dir": in.Root}),
			"find its problems")},
	}
	uses := "no command of the glasses"
	if len(in.Capabilities) > 0 {
		uses = strings.Join(in.Capabilities, ", ")
	}
	a.Summary = fmt.Sprintf("%s: %d generated modules; the app uses %s.", in.Root, len(in.Modules), uses)
	return a, nil
}

func inspect(ctx context.Context, c call, folder string) (scaffold.Inspection, error) {
	dir, err := projectDir(c, folder)
	if err != nil {
		return scaffold.Inspection{}, err
	}
	in, err := scaffold.Inspect(ctx, clientio.FilesOf(c.who), dir)
	if err != nil {
		return in, scaffoldError(err)
	}
	return in, nil
}

// orEmpty returns an empty list for nil, because [] is easier for agents to read than null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
