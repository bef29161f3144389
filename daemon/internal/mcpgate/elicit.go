package mcpgate

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/service-dev/service/daemon/internal/tools"
)

// elicitor asks the user, through the client, to open a URL. A client that sent initialize is asked during the call. A
// stateless client receives the question as the result and repeats the call with the answer.
type elicitor struct {
	req *mcp.CallToolRequest
	// deferred is the question that is returned as the result.
	deferred mcp.InputRequestMap
	// asked is the ID of a question that the user accepted and that may still be pending.
	asked string
}

// inputKey is the name of the only question of a stateless call.
const inputKey = "open_link"

func elicitorOf(req *mcp.CallToolRequest) *elicitor { return &elicitor{req: req} }

// elicit returns the function that asks the user, or nil if the client did not declare that it can open URLs.
func (a *elicitor) elicit() func(context.Context, string, string) (bool, error) {
	capabilities := a.req.ClientCapabilities()
	if capabilities == nil || capabilities.Elicitation == nil || capabilities.Elicitation.URL == nil {
		return nil
	}
	if a.req.ProtocolVersion() >= firstStateless {
		return a.deferQuestion
	}
	return a.elicitNow
}

func (a *elicitor) elicitNow(ctx context.Context, message, url string) (bool, error) {
	id := rand.Text()
	answer, err := a.req.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "url", Message: message, URL: url, ElicitationID: id})
	if err != nil {
		return false, fmt.Errorf("ask the user to open a link: %w", err)
	}
	if answer.Action != "accept" {
		return false, nil
	}
	a.asked = id
	return true, nil
}

func (a *elicitor) deferQuestion(_ context.Context, message, url string) (bool, error) {
	if response, ok := a.req.Params.InputResponses[inputKey]; ok {
		answer, ok := response.(*mcp.ElicitResult)
		if !ok {
			return false, errNoAnswer
		}
		return answer.Action == "accept", nil
	}
	a.deferred = mcp.InputRequestMap{inputKey: &mcp.ElicitParams{Mode: "url", Message: message, URL: url}}
	return false, tools.ErrDeferred
}

// complete notifies the client that the URL is no longer needed.
func (a *elicitor) complete(ctx context.Context, result tools.Result) {
	if a.asked == "" || result.Outcome != tools.OutcomeOK {
		return
	}
	// Ignore the error, because the result does not depend on whether the client shows the notification.
	_ = a.req.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: a.asked})
}
