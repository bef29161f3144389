package mcpgate

import (
	"context"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/tools"
)

// instructions are read by the agent once for each connection; some clients cut them at 2,000 characters.
const instructions = `Tools for building apps for smart glasses and for trying them on a live simulator in the browser.

Start with createSimulatorSession. It is get-or-create: calling it again for the same project and platform returns the ` +
	`same session, so call it whenever you need the session's URL or endpoint.

When an answer says status "auth_required", no account is linked yet. That is a normal step, not a failure:
1. Show the person both userCode and verificationUrl, and ask them to check that the code on the page is the same as the one you show. ` +
	`This protects them against phishing, so do not leave it out.
2. Call completeAuthLink with deviceCode straight away. It waits while the person signs in and approves. If it ends with ` +
	`auth_timeout, or your client cuts the call, call it again with the same deviceCode: nothing is lost.
3. When it answers linked: true, "retried" holds the answer of the call that had needed the account. Go on from there.

The app under development attaches to appEndpoint with the secret in the file appTokenFile. Let the app read that file; ` +
	`do not print its content or copy it elsewhere. The person opens sessionUrl and signs in there.

See what happened with getEventLog (pass "next" as "since" to go on) and how things stand with getSessionStatus. ` +
	`Close a session with closeSession when it is no longer needed. whoAmI tells which account is linked.

Errors carry code, message, retryable and fixHint. Follow fixHint; repeat a call only when retryable is true.`

func newServer(opts Options) *mcp.Server {
	server := mcp.NewServer(
		&mcp.Implementation{Name: "service", Title: "Smart-glasses toolkit", Version: opts.Version},
		&mcp.ServerOptions{
			Instructions: instructions,
			// Without this the SDK would advertise logging; the list never changes, so neither does it announce changes.
			Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
			// The SDK's log would be one of clients' mistakes, some with their content.
			Logger: slog.New(slog.DiscardHandler),
		})
	for _, tool := range opts.Catalogue.List() {
		server.AddTool(describe(tool), handler(opts.Catalogue, tool.Name))
	}
	return server
}

func describe(t tools.Tool) *mcp.Tool {
	destructive, open := t.Annotations.Destructive, t.Annotations.OpenWorld
	return &mcp.Tool{
		Name: t.Name, Title: t.Title, Description: t.Description,
		InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
		Annotations: &mcp.ToolAnnotations{
			Title: t.Title, ReadOnlyHint: t.Annotations.ReadOnly, DestructiveHint: &destructive,
			IdempotentHint: t.Annotations.Idempotent, OpenWorldHint: &open,
		},
	}
}

// handler turns an MCP call into a call of the catalogue. It never returns an error: whatever goes wrong in a tool is a
// result that the agent can read.
func handler(catalogue Catalogue, name string) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ask := askerOf(req)
		result := catalogue.Call(caller.With(ctx, callerOf(ctx, req)), name, req.Params.Arguments, tools.IO{
			Progress: progressOf(ctx, req),
			Elicit:   ask.elicit(),
		})
		if ask.deferred != nil {
			return &mcp.CallToolResult{InputRequests: ask.deferred}, nil
		}
		ask.complete(ctx, result)
		return &mcp.CallToolResult{
			Content:           contentOf(result),
			StructuredContent: result.Structured,
			IsError:           result.IsError,
		}, nil
	}
}

// contentOf is what a client shows: the text first, then the pictures.
func contentOf(result tools.Result) []mcp.Content {
	content := []mcp.Content{&mcp.TextContent{Text: result.Text}}
	for _, image := range result.Images {
		content = append(content, &mcp.ImageContent{Data: image.Data, MIMEType: image.MIME})
	}
	return content
}

// callerOf is the stream's caller under the name that the MCP client gave itself.
func callerOf(ctx context.Context, req *mcp.CallToolRequest) caller.Caller {
	who := caller.From(ctx)
	if info := req.ClientInfo(); info != nil {
		if name := printable(info.Name); name != "" {
			who.Client, who.Version = name, printable(info.Version)
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
		// A stream that broke ends the call by itself.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: done, Total: total, Message: message,
		})
	}
}

var errNoAnswer = errors.New("the client did not answer the request to open a link")
