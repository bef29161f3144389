package mcpgate

import (
	"strings"
	"testing"
)

const callLink = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"link"}}`

func TestElicitWhileTheCallRuns(t *testing.T) {
	for _, test := range []struct {
		action string
		linked bool
	}{{"accept", true}, {"decline", false}, {"cancel", false}} {
		c, _ := started(t, Options{Catalogue: newFakeTools()})
		c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{"url":{}}}`, 1), initialized)
		c.receive()
		c.send(callLink)
		ask := c.receive()
		if ask["method"] != "elicitation/create" || dig(ask, "params", "mode") != "url" ||
			dig(ask, "params", "url") != "http://localhost/activate?code=X" {
			t.Fatalf("asked %v", ask)
		}
		c.send(`{"jsonrpc":"2.0","id":1,"result":{"action":"` + test.action + `"}}`)
		got := c.receive()
		if test.linked {
			if got["method"] != "notifications/elicitation/complete" ||
				dig(got, "params", "elicitationId") != dig(ask, "params", "elicitationId") {
				t.Errorf("completion is %v, want notifications/elicitation/complete", got)
			}
			got = c.receive()
		}
		if linked := dig(got, "result", "structuredContent", "linked") == true; linked != test.linked {
			t.Errorf("%s: %v", test.action, got)
		}
	}
}

func TestElicitByRepeatingTheCall(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	call := func(more string) map[string]any {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"link",` + modernURL + more + `}}`)
		return c.receive()
	}
	got := call("")
	result, _ := got["result"].(map[string]any)
	if dig(got, "result", "resultType") != "input_required" {
		t.Fatalf("asked %v", got)
	}
	if _, present := result["content"]; present {
		t.Error("the question has content")
	}
	ask := dig(got, "result", "inputRequests", inputKey)
	params, _ := dig(ask.(map[string]any), "params").(map[string]any)
	if params["mode"] != "url" || params["elicitationId"] != nil {
		t.Errorf("the question is %v, want mode url without an elicitationId", ask)
	}
	got = call(`,"inputResponses":{"` + inputKey + `":{"action":"accept"}}`)
	if dig(got, "result", "structuredContent", "linked") != true {
		t.Errorf("accepted: %v", got)
	}
	got = call(`,"inputResponses":{"` + inputKey + `":{"action":"decline"}}`)
	if dig(got, "result", "structuredContent", "status") != "auth_required" {
		t.Errorf("declined: %v", got)
	}
}

func TestClientsWithoutElicitationAreNotAsked(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"link",` + modernMeta + `}}`)
	if got := c.receive(); dig(got, "result", "structuredContent", "status") != "auth_required" {
		t.Errorf("stateless: %v", got)
	}
	c.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1), initialized)
	c.receive()
	c.send(callLink)
	if got := c.receive(); dig(got, "result", "structuredContent", "status") != "auth_required" {
		t.Errorf("a client that supports only forms got %v, want auth_required", got)
	}
}
