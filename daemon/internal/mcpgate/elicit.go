package mcpgate

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/service-dev/service/daemon/internal/tools"
)

// asker asks the person, through the client, to open a URL. A client that initialized is asked while the call runs; a
// stateless one gets the question as the call's result and repeats the call with the answer.
type asker struct {
	req *mcp.CallToolRequest
	// deferred is the question that becomes the call's result.
	deferred mcp.InputRequestMap
	// asked is the id of a question that the person agreed to and that is not known to be settled.
	asked string
}

// inputKey names our one question in a stateless call.
const inputKey = "open_link"

func askerOf(req *mcp.CallToolRequest) *asker { return &asker{req: req} }

// elicit is nil unless the client declared that it can show URLs.
func (a *asker) elicit() func(context.Context, string, string) (bool, error) {
	capabilities := a.req.ClientCapabilities()
	if capabilities == nil || capabilities.Elicitation == nil || capabilities.Elicitation.URL == nil {
		return nil
	}
	if a.req.ProtocolVersion() >= firstStateless {
		return a.defers
	}
	return a.askNow
}

func (a *asker) askNow(ctx context.Context, message, url string) (bool, error) {
	id := rand.Text()
	answer, err := a.req.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "url", Message: message, URL: url, ElicitationID: id})
	if err != nil {
		return false, fmt.Errorf("asking the person to open a link: %w", err)
	}
	if answer.Action != "accept" {
		return false, nil
	}
	a.asked = id
	return true, nil
}

func (a *asker) defers(_ context.Context, message, url string) (bool, error) {
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

// complete tells the client that what happened behind the link is over.
func (a *asker) complete(ctx context.Context, result tools.Result) {
	if a.asked == "" || result.Outcome != tools.OutcomeOK {
		return
	}
	// The client shows the notification or not; the call's own result does not depend on it.
	_ = a.req.Session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: a.asked})
}
