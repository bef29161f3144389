package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/scaffold"
)

const getCodeExampleText = `Returns a complete, tested app for one topic in one language: it uses the module that generateConnectionModule writes, and runs on every transport. ` +
	`Use it to begin an app or to see how a part of the module is used. With includeModule it also returns the module's source, so that the app runs ` +
	`without an account and without generateConnectionModule. It needs no account and writes nothing. ` +
	`For every field and error of a capability call getCapabilityGuide; for a language that is not listed searchDocs "protocol".`

type getCodeExample struct{}

type getCodeExampleArgs struct {
	Language      string `json:"language"`
	Topic         string `json:"topic"`
	IncludeModule bool   `json:"includeModule"`
}

type exampleFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

type codeExampleAnswer struct {
	Language     string                  `json:"language"`
	Topic        string                  `json:"topic"`
	Files        []exampleFile           `json:"files"`
	Run          string                  `json:"run"`
	Environment  map[string]string       `json:"environment"`
	Capabilities []string                `json:"capabilities"`
	Topics       []scaffold.ExampleTopic `json:"topics"`
	Next         []nextCall              `json:"nextCalls"`
	Summary      string                  `json:"summary"`
}

func (t getCodeExample) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getCodeExample", Title: "Get a complete example", Description: getCodeExampleText,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(`
			"language":{"type":"string","enum":[`+quoted(scaffold.Languages())+`]},
			"topic":{"type":"string","enum":[`+quoted(scaffold.ExampleTopicIDs())+`],"default":"hello","description":"hello is where to begin; the answer's topics say what the others show."},
			"includeModule":{"type":"boolean","default":false,"description":"Also return the module's source (20 KB)."}`, `"language"`),
		OutputSchema: outputSchema(`
			"language":{"type":"string"},"topic":{"type":"string"},
			"files":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}},"description":"Write each to its path below the project's folder."},
			"run":{"type":"string","description":"How to start the app, in the project's folder."},
			"environment":{"type":"object","additionalProperties":{"type":"string"},"description":"What the app reads, and where its values come from."},
			"capabilities":{"type":"array","items":{"type":"string"},"description":"What the module must be generated for."},
			"topics":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"about":{"type":"string"},"capabilities":{"type":"array","items":{"type":"string"}}}}},`+
			nextProperty+`,`+summaryProperty, `"files","run","capabilities","topics","summary"`, false),
	}}
}

func (t getCodeExample) run(_ context.Context, c call) (any, error) {
	var args getCodeExampleArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
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
			envGlassesURL: "appEndpoint of startLocalSimulation or createSimulatorSession", envGlassesSecret: "appTokenFile of the same answer",
		},
		Next: []nextCall{call1("startLocalSimulation", `{}`, "get glasses for the app to attach to")},
	}
	if !args.IncludeModule {
		a.Next = append([]nextCall{call1("generateConnectionModule", arguments(map[string]any{"language": e.Language, "capabilities": e.Capabilities}),
			"write the module that the app imports; without an account repeat this call with includeModule")}, a.Next...)
		a.Summary = fmt.Sprintf("%s: write it beside the folder %s, which generateConnectionModule fills.", e.Name, scaffold.DefaultDir)
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
