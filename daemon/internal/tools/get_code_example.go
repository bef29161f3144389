package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/scaffold"
)

type getCodeExample struct{}

type getCodeExampleArgs struct {
	Language      string `json:"language" jsonschema:"typescript needs Node 22 or newer."`
	Topic         string `json:"topic" jsonschema:"Start with hello."`
	IncludeModule bool   `json:"includeModule"`
}

type exampleFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

type codeExampleAnswer struct {
	Language     string                  `json:"language"`
	Topic        string                  `json:"topic"`
	Files        []exampleFile           `json:"files" jsonschema:"Write each to its path below the project's folder."`
	Run          string                  `json:"run" jsonschema:"How to start the app, in the project's folder."`
	Environment  map[string]string       `json:"environment"`
	Capabilities []string                `json:"capabilities" jsonschema:"What the module must be generated for."`
	Topics       []scaffold.ExampleTopic `json:"topics"`
	Next         []nextCall              `json:"nextCalls"`
	Summary      string                  `json:"summary"`
}

func (t getCodeExample) definition() definition {
	return define(readOnly("getCodeExample", "Get a complete example",
		answersOf[codeExampleAnswer](required("files", "run", "capabilities", "topics", "summary"),
			on("environment", says("What the app reads, and where its values come from.")),
		),
	), t.run,
		required("language"),
		on("language", oneOf(scaffold.Languages()...)),
		on("topic", oneOf(scaffold.ExampleTopicIDs()...), byDefault("hello")),
	)
}

func (t getCodeExample) run(_ context.Context, c call, args getCodeExampleArgs) (any, error) {
	if args.Topic == "" {
		args.Topic = scaffold.ExampleTopicIDs()[0]
	}
	e, err := scaffold.ExampleOf(args.Language, args.Topic)
	if err != nil {
		return nil, scaffoldError(err)
	}
	a := codeExampleAnswer{
		Language: e.Language, Topic: e.Topic, Run: e.Run, Capabilities: e.Capabilities, Topics: e.Topics,
		Files: []exampleFile{{e.Name, e.Code}},
		Environment: map[string]string{
			envGlassesURL:    "appEndpoint of startLocalSimulation or createSimulatorSession",
			envGlassesSecret: "appTokenFile of the same answer",
		},
		Next: []nextCall{suggest("startLocalSimulation", `{}`, "get glasses for the app to attach to")},
	}
	if !args.IncludeModule {
		a.Next = append([]nextCall{suggest("generateConnectionModule",
			arguments(map[string]any{"language": e.Language, "capabilities": e.Capabilities}),
			"write the module that the app imports; without an account repeat this call with includeModule")}, a.Next...)
		a.Summary = fmt.Sprintf("%s: write it beside the folder %s, which generateConnectionModule fills.", e.Name,
			scaffold.DefaultDir)
		return a, nil
	}
	module, err := scaffold.Generate(scaffold.Request{Language: e.Language, Capabilities: e.Capabilities})
	if err != nil {
		return nil, scaffoldError(err)
	}
	for _, f := range module {
		a.Files = append(a.Files, exampleFile{scaffold.DefaultDir + "/" + f.Name, string(f.Data)})
	}
	a.Summary = fmt.Sprintf("%s and its module: write the files, set the environment, and run it.", e.Name)
	return a, nil
}
