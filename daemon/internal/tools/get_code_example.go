package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scaffold"
	"github.com/service-dev/service/glasses/guide"
)

type getCodeExample struct{}

type getCodeExampleArgs struct {
	Language      string `json:"language" jsonschema:"typescript needs Node 22 or newer."`
	Topic         string `json:"topic" jsonschema:"Start with hello."`
	IncludeModule bool   `json:"includeModule"`

	Capabilities []string `json:"capabilities" jsonschema:"The module has these too; implies includeModule."`
	Dir          string   `json:"dir" jsonschema:"Writes example and module into this project folder; lists the files."`
}

type exampleFile struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty"`
	State   string `json:"state,omitempty"`
}

type codeExampleAnswer struct {
	Language     string                  `json:"language"`
	Topic        string                  `json:"topic"`
	Files        []exampleFile           `json:"files" jsonschema:"Write each to its path below the project's folder."`
	Run          string                  `json:"run" jsonschema:"How to start the app, in the project's folder."`
	Environment  map[string]string       `json:"environment"`
	Capabilities []string                `json:"capabilities" jsonschema:"Those that the module must be generated with."`
	Topics       []scaffold.ExampleTopic `json:"topics"`
	Next         []nextCall              `json:"nextCalls"`
	Summary      string                  `json:"summary"`
}

func (t getCodeExample) definition() definition {
	return define(Tool{
		Name: "getCodeExample", Title: "Get a complete example",
		Annotations: Annotations{Idempotent: true},
		OutputSchema: answersOf[codeExampleAnswer](required("files", "run", "capabilities", "topics", "summary"),
			on("environment", says("The variables that the app reads, and the sources of their values.")),
			on("files.state", oneOf("created", "updated", "unchanged", "kept"),
				says("With dir. kept: the example was changed by hand.")),
		),
	}, t.run,
		required("language"),
		on("language", oneOf(scaffold.Languages()...)),
		on("topic", oneOf(scaffold.ExampleTopicIDs()...), byDefault("hello")),
		on("capabilities", oneOf(guide.CapabilityIDs()...)),
	)
}

func (t getCodeExample) run(ctx context.Context, c call, args getCodeExampleArgs) (any, error) {
	if args.Topic == "" {
		args.Topic = scaffold.ExampleTopicIDs()[0]
	}
	e, err := scaffold.ExampleOf(args.Language, args.Topic)
	if err != nil {
		return nil, scaffoldError(err)
	}
	a := codeExampleAnswer{
		Language: e.Language, Topic: e.Topic, Run: e.Run, Capabilities: e.Capabilities, Topics: e.Topics,
		Files: []exampleFile{{Path: e.Name, Content: e.Code}},
		Environment: map[string]string{
			envGlassesURL:    "appEndpoint of startLocalSimulation or createSimulatorSession",
			envGlassesSecret: "appTokenFile of the same answer",
		},
		Next: []nextCall{suggest("startLocalSimulation", `{}`, "get glasses for the app to attach to")},
	}
	for _, f := range e.Tests {
		a.Files = append(a.Files, exampleFile{Path: f.Name, Content: string(f.Data)})
	}
	if args.Dir != "" && clientio.FilesOf(c.who).Available() {
		return t.place(ctx, c, args, e, a)
	}
	if !args.IncludeModule && args.Dir == "" && len(args.Capabilities) == 0 {
		a.Next = append([]nextCall{suggest("generateConnectionModule",
			arguments(map[string]any{"language": e.Language, "capabilities": e.Capabilities}),
			"write the module that the app imports; without an account repeat this call with includeModule")}, a.Next...)
		a.Summary = fmt.Sprintf("%s: write it next to the folder %s, which generateConnectionModule creates.", e.Name,
			scaffold.DefaultDir) + testHint(e)
		return a, nil
	}
	module, capabilities, err := scaffold.ModuleOf(e, args.Capabilities)
	if err != nil {
		return nil, scaffoldError(err)
	}
	a.Capabilities = capabilities
	for _, f := range module {
		a.Files = append(a.Files, exampleFile{Path: scaffold.DefaultDir + "/" + f.Name, Content: string(f.Data)})
	}
	a.Summary = fmt.Sprintf("%s and its module: write the files, set the environment, and run it.", e.Name) + testHint(e)
	if args.Dir != "" {
		a.Summary += " This client cannot write files: write them yourself."
	}
	return a, nil
}

// place writes the example and its module to a directory.
func (t getCodeExample) place(
	ctx context.Context, c call, args getCodeExampleArgs, e scaffold.Example, a codeExampleAnswer,
) (any, error) {
	dir, err := pathOf(c.who, "dir", args.Dir)
	if err != nil {
		return nil, err
	}
	written, capabilities, err := scaffold.Place(ctx, clientio.FilesOf(c.who), dir, e, args.Capabilities)
	if err != nil {
		return nil, scaffoldError(err)
	}
	a.Capabilities, a.Files = capabilities, nil
	for _, f := range written {
		a.Files = append(a.Files, exampleFile{Path: f.Path, State: f.State})
	}
	a.Summary = fmt.Sprintf("%s and its module are in %s: set the environment, and run it.", e.Name, dir) + testHint(e)
	return a, nil
}

// testHint tells how to run the tests of an example, or "" if it has none.
func testHint(e scaffold.Example) string {
	if len(e.Tests) == 0 {
		return ""
	}
	return fmt.Sprintf(" Its test, which needs neither a session nor a recording: servicectl session run %s -- COMMAND, "+
		"with the command that starts the app.", e.Tests[0].Name)
}
