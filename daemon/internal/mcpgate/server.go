package mcpgate

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/glasses/guide"
)

// instructions is the text that an agent reads once per connection. Some clients cut it at 2,000 characters. It is the
// only place that explains arguments shared by many tools.
const instructions = instructionsHead + `

The tools on the account's projects (first listProjects), ` +
	`createSimulatorSession and generateConnectionModule need a free account. permission_denied is the owner's choice. ` +
	`Status "auth_required" is a normal step:
1. Show the user both userCode and verificationUrl; ask them to check that the page shows the same code. This ` +
	`protects against phishing: do not leave it out.
2. Call completeAuthLink with deviceCode straight away; it waits while they approve. After auth_timeout or a cut call, ` +
	`call it again.
3. "retried" is the result of the call that needed the account.` + instructionsTail

// localInstructions replaces instructions for the toolset without account tools.
const localInstructions = instructionsHead + instructionsTail

const instructionsHead = `Tools for building apps for smart glasses and proving that they work, without hardware. ` +
	guide.NotInThisVersion + `

New here? Call getPlatformInfo first. In short:
1. getCapabilityGuide for each capability the app needs; getPermissions for its platform; getCodeExample to start from; ` +
	`searchDocs for questions.
2. startLocalSimulation: simulated glasses, no account. Start the app with the variables in "environment" ` +
	`(a shell: eval "$(servicectl session env)"); its secret is in appTokenFile: do not print or copy it.
3. waitForEvent {"type":"app.attached"}, then getDisplayState.
4. injectInput, injectTranscript, injectSensor, injectFault and setDevice act as wearer and environment; expectDisplay ` +
	`and waitForEvent prove the reaction; advanceTime moves a virtual clock; runSteps does a list of these in one call. ` +
	`getEventLog shows what happened.
5. recordSession saves a good run; replaySession proves the next build. validateIntegration and ` +
	`getProductionChecklist come last.

In many tools: sessionId defaults to this directory's most recently used session; project, an app id, to the one in ` +
	`service.json in or above the working directory; openBrowser is whether a page may be opened for the user.`

const instructionsTail = `

Errors carry code, message, retryable and fixHint. Follow fixHint; repeat a call only when retryable is true.`

func newServer(opts Options) *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "service", Title: "Smart-glasses toolkit", Version: opts.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			Capabilities: capabilities(opts.Pages),
			SetCacheable: cacheable,
			// Without a logger, the SDK does not log clients' mistakes, sometimes with clients' data.
			Logger: slog.New(slog.DiscardHandler),
		})
	list := opts.Catalogue.List()
	for _, tool := range list {
		server.AddTool(describe(tool), handler(opts.Catalogue, tool.Name))
	}
	addPages(server, opts.Pages)
	server.AddReceivingMiddleware(inToolset(list))
	return server
}

func describe(t tools.Tool) *mcp.Tool {
	destructive, open := t.Annotations.Destructive, t.Annotations.OpenWorld
	tool := &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: t.Annotations.ReadOnly, DestructiveHint: &destructive,
			IdempotentHint: t.Annotations.Idempotent, OpenWorldHint: &open,
		},
	}
	if !t.Pictures {
		tool.OutputSchema = tools.Compact(t.OutputSchema)
	}
	return tool
}

// inToolset limits the lists and instructions to the toolset that the client chose. The client can still call all other
// tools.
func inToolset(list []tools.Tool) mcp.Middleware {
	left := map[string]bool{}
	for _, tool := range list {
		left[tool.Name] = !tool.In(tools.ToolsetLocal)
	}
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if err != nil || caller.From(ctx).Toolset != tools.ToolsetLocal {
				return result, err
			}
			switch r := result.(type) {
			case *mcp.InitializeResult:
				r.Instructions = localInstructions
			case *mcp.DiscoverResult:
				r.Instructions = localInstructions
			case *mcp.ListToolsResult:
				r.Tools = slices.DeleteFunc(r.Tools, func(t *mcp.Tool) bool { return left[t.Name] })
			}
			return result, nil
		}
	}
}

// handler adapts a tool of the catalogue to MCP. It never returns an error: if a tool fails, the agent gets a result
// that it can read.
func handler(catalogue Catalogue, name string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ask := elicitorOf(req)
		result := catalogue.Call(caller.With(ctx, callerOf(ctx, req)), name, req.Params.Arguments, tools.IO{
			Progress: progressOf(ctx, req),
			Elicit:   ask.elicit(),
		}).Bounded()
		if ask.deferred != nil {
			return &mcp.CallToolResult{InputRequests: ask.deferred}, nil
		}
		ask.complete(ctx, result)
		answer := &mcp.CallToolResult{Content: contentOf(result), IsError: result.IsError}
		if len(result.Images) == 0 { // clients that read structured content ignore pictures
			answer.StructuredContent = result.Structured
		}
		return answer, nil
	}
}

// contentOf returns the text of a result, followed by its pictures.
func contentOf(result tools.Result) []mcp.Content {
	content := []mcp.Content{&mcp.TextContent{Text: result.Text}}
	for _, image := range result.Images {
		content = append(content, &mcp.ImageContent{Data: image.Data, MIMEType: image.MIME})
	}
	return content
}

// callerOf returns the stream's caller, with the name that the MCP client sent.
func callerOf(ctx context.Context, req *mcp.CallToolRequest) caller.Caller {
	who := caller.From(ctx)
	if info := req.ClientInfo(); info != nil {
		if name := caller.Printable(info.Name); name != "" {
			who.Client, who.Version = name, caller.Printable(info.Version)
		}
	}
	return who
}

func progressOf(ctx context.Context, req *mcp.CallToolRequest) func(done, total float64, message string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return func(done, total float64, message string) {
		if ctx.Err() != nil {
			return
		}
		// Ignore the error, because a broken stream ends the call anyway.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: total, Message: message,
		})
	}
}

var errNoAnswer = errors.New("the client did not respond to the request to open a link")
