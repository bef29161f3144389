package mcpgate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/docs"
)

// request encodes a call whose params have the given JSON members, none of which may be empty.
func request(id int, method string, members ...string) string {
	var given []string
	for _, m := range members {
		if m != "" {
			given = append(given, m)
		}
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, strings.Join(given, ","))
}

func errorCode(answer map[string]any) any { return dig(answer, "error", "code") }

func TestUndeclaredMethodsAreNotFound(t *testing.T) {
	protocols(t, Options{Catalogue: newFakeTools()}, func(t *testing.T, c *client, meta string) {
		for _, call := range []struct{ method, params string }{
			{"prompts/list", ""}, {"prompts/get", `"name":"x"`}, {"logging/setLevel", `"level":"bogus"`}, {"logging/setLevel",
				`"level":"info"`},
			{"completion/complete", `"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}`},
			// without pages or resources
			{"resources/list", ""}, {"resources/templates/list", ""}, {"resources/read", `"uri":"docs://service/x"`},
			{"resources/subscribe", `"uri":"docs://service/x"`}, {"resources/unsubscribe", `"uri":"docs://service/x"`},
			{"tasks/list", ""}, {"notifications/initialized", ""}, {"no/such", ""},
		} {
			c.send(request(1, call.method, call.params, meta))
			if answer := c.receive(); errorCode(answer) != -32601.0 || answer["id"] != 1.0 {
				t.Errorf("%q is answered with %v, want -32601", call.method, answer)
			}
		}
	})
}

func TestMethodsOfTheOtherProtocolAreNotFound(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.send(request(1, "ping", modernMeta))
	if answer := c.receive(); errorCode(answer) != -32601.0 {
		t.Errorf("ping without a session: %v, want -32601", answer)
	}
	c.initialize()
	c.send(request(2, "server/discover"))
	if answer := c.receive(); errorCode(answer) != -32601.0 {
		t.Errorf("discover in a session: %v, want -32601", answer)
	}
}

func TestDeclaredMethodsAnswer(t *testing.T) {
	protocols(t, Options{Catalogue: newFakeTools(), Pages: docs.Pages()}, func(t *testing.T, c *client, meta string) {
		for _, method := range []string{"tools/list", "resources/list", "resources/templates/list"} {
			c.send(request(1, method, meta))
			if answer := c.receive(); answer["result"] == nil {
				t.Errorf("%s is answered with %v, want a result", method, answer)
			}
		}
	})
}

// TestMissingResource checks the error code: revisions with initialize define one, later ones use invalid params.
func TestMissingResource(t *testing.T) {
	read := func(c *client, members ...string) map[string]any {
		c.send(request(1, "resources/read", append(members, `"uri":"docs://service/nope"`)...))
		return c.receive()
	}
	for _, revision := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		c, _ := started(t, Options{Catalogue: newFakeTools(), Pages: docs.Pages()})
		c.send(strings.Replace(initialize, "2025-11-25", revision, 1))
		c.receive()
		if answer := read(c); errorCode(answer) != -32002.0 || dig(answer, "error", "data", "uri") != "docs://service/nope" {
			t.Errorf("%s: %v", revision, answer)
		}
	}
	c, _ := started(t, Options{Catalogue: newFakeTools(), Pages: docs.Pages()})
	if answer := read(c, modernMeta); errorCode(answer) != -32602.0 ||
		dig(answer, "error", "data", "uri") != "docs://service/nope" {
		t.Errorf("stateless: %v", answer)
	}
}

func TestRequestsWithoutTheirMeta(t *testing.T) {
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	c.send(request(1, "tools/list", modernMeta))
	c.receive()
	for _, members := range []string{"", `"_meta":{}`, `"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}`,
		`"_meta":{"io.modelcontextprotocol/protocolVersion":7}`, `"_meta":[]`} {
		for _, method := range []string{"tools/list", "server/discover"} {
			c.send(request(2, method, members))
			if answer := c.receive(); errorCode(answer) != -32602.0 {
				t.Errorf("%s with %s: %v, want -32602", method, members, answer)
			}
		}
	}
	c.send(request(3, "tools/list",
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01","io.modelcontextprotocol/clientCapabilities":{}}`))
	answer := c.receive()
	if supported, _ := dig(answer, "error", "data", "supported").([]any); errorCode(answer) != -32022.0 ||
		len(supported) == 0 || dig(answer, "error", "data", "requested") != "1900-01-01" {
		t.Errorf("a revision that does not exist: %v, want -32022 and the supported ones", answer)
	}
}

// TestErrorsQuoteLittle checks that errors are short and use JSON terms, not Go's, for any input.
func TestErrorsQuoteLittle(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	protocols(t, Options{Catalogue: newFakeTools(), Pages: docs.Pages()}, func(t *testing.T, c *client, meta string) {
		for _, call := range []struct{ method, params string }{
			{long, ""},
			{"tools/call", `"name":"` + long + `"`},
			{"tools/call", `"name":7`},
			{"tools/call", `"name":{"a":"` + long + `"}`},
			{"tools/call", `"arguments":{}`},
			{"resources/read", `"uri":"` + long + `"`},
			{"resources/read", `"uri":["` + long + `"]`},
			{"resources/read", ``},
			{"resources/list", `"cursor":{"a":1}`},
			{"tools/list", `"cursor":"` + long + `"`},
			{"tools/list", `"cursor":7`},
			{"initialize", `"protocolVersion":7,"capabilities":{},"clientInfo":{"name":"a","version":"1"}`},
			{"initialize", `"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{"name":"a","version":"1"}`},
			{"initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":{"a":"` + long +
				`"},"version":"1"}`},
		} {
			c.send(request(1, call.method, call.params, meta))
			line := c.line()
			what := call.method[:min(len(call.method), 20)] + " " + call.params[:min(len(call.params), 40)]
			if !strings.Contains(line, `"error"`) && !strings.Contains(line, `"isError":true`) {
				t.Errorf("%s is accepted: %.300s", what, line)
			}
			checkShort(t, what, line)
		}
	})
	c, _ := started(t, Options{Catalogue: newFakeTools()})
	for _, line := range []string{
		request(1, "tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"`+long+`","io.modelcontextprotocol/clientCapabilities":{}}`),
		request(2, "tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2`+long+`","io.modelcontextprotocol/clientCapabilities":{}}`),
		request(3, "tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":["`+long+`"]}`),
		request(4, "tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":["`+long+`"],"io.modelcontextprotocol/clientCapabilities":{}}`),
		`{"jsonrpc":"2.0","id":5,"method":"initialize","params":"` + long + `"}`,
		`{"jsonrpc":"2.0","id":5,"method":"initialize","params":["` + long + `"]}`,
		`{"jsonrpc":"2.0","id":6,"method":"initialize"}`,
		`{"jsonrpc":"2.0","id":7,"method":["` + long + `"]}`,
		`{"jsonrpc":"1.0","id":8,"method":"` + long + `"}`,
		`{"jsonrpc":"2.0","id":["` + long + `"],"method":"ping"}`,
	} {
		c.send(line)
		answer := c.line()
		if !strings.Contains(answer, `"error"`) {
			t.Errorf("%.100s is accepted: %.300s", line, answer)
		}
		checkShort(t, line[:min(len(line), 60)], answer)
	}
}

func checkShort(t *testing.T, what, line string) {
	t.Helper()
	if len(line) > 2000 {
		t.Errorf("%s: an error of %d bytes, want at most 2000: %.300s", what, len(line), line)
	}
	for _, word := range []string{"mcp.", "json:", "Go ", "jsonrpc2", "unmarshal", "%!", "struct"} {
		if strings.Contains(line, word) {
			t.Errorf("%s: got %.400s, want an error without Go's terms", what, line)
		}
	}
}

// TestToolListFits checks the size of the list, because every agent loads it into its context.
func TestToolListFits(t *testing.T) {
	protocols(t, Options{Catalogue: tools.New(tools.Options{})}, func(t *testing.T, c *client, meta string) {
		c.send(request(1, "tools/list", meta))
		line := c.line()
		t.Logf("tools/list has %d bytes", len(line))
		if len(line) > 80_000 {
			t.Errorf("tools/list has %d bytes, want at most 80000", len(line))
		}
		c.send(request(2, "tools/list", meta))
		answer := c.receive()
		if ttl, _ := dig(answer, "result", "ttlMs").(float64); ttl <= 0 {
			t.Errorf("ttlMs is %v, want a positive number", dig(answer, "result", "ttlMs"))
		}
		list, _ := dig(answer, "result", "tools").([]any)
		for _, entry := range list {
			tool, _ := entry.(map[string]any)
			pictures := tool["name"] == "getDisplayState" || tool["name"] == "expectDisplay" || tool["name"] == "runSteps"
			if (tool["outputSchema"] == nil) != pictures {
				t.Errorf("%s: output schema %v; want none only for tools with pictures", tool["name"], tool["outputSchema"])
			}
		}
	})
}

// toolNames returns the tool names in tools/list.
func (c *client) toolNames(meta string) []string {
	c.t.Helper()
	c.send(request(90, "tools/list", meta))
	list, _ := dig(c.receive(), "result", "tools").([]any)
	var names []string
	for _, entry := range list {
		tool, _ := entry.(map[string]any)
		names = append(names, fmt.Sprint(tool["name"]))
	}
	return names
}

func TestLocalToolset(t *testing.T) {
	dial, _ := start(t, Options{Catalogue: tools.New(tools.Options{Telemetry: deaf{}})})
	local := strings.Replace(goodHandshake, `"env":`, `"toolset":"local","env":`, 1)
	for _, protocol := range []string{"initialize", "stateless"} {
		c, meta := dial(), modernMeta
		c.send(local)
		if answer := c.receive(); answer["ok"] != true {
			t.Fatalf("handshake answered with %v, want it accepted", answer)
		}
		opening := request(1, "server/discover", modernMeta)
		if protocol == "initialize" {
			opening, meta = initialize, ""
		}
		c.send(opening)
		said, _ := dig(c.receive(), "result", "instructions").(string)
		if said == "" || strings.Contains(said, "createSimulatorSession") || strings.Contains(said, "auth_required") {
			t.Errorf("%s: got instructions %q, want some that do not mention the account", protocol, said)
		}
		names := strings.Join(c.toolNames(meta), " ")
		if strings.Contains(names, "createSimulatorSession") || strings.Contains(names, "whoAmI") ||
			!strings.Contains(names, "startLocalSimulation") {
			t.Errorf("%s lists %s, want only local tools", protocol, names)
		}
		c.send(request(2, "tools/call", `"name":"completeAuthLink","arguments":{}`, meta))
		if answer := c.receive(); dig(answer, "result", "structuredContent", "code") != "invalid_request" {
			t.Errorf("%s: a tool that is not listed answers with %v, want invalid_request", protocol, answer)
		}
	}
	other := dial()
	other.send(goodHandshake)
	other.receive()
	if names := other.toolNames(modernMeta); len(names) != len(tools.New(tools.Options{}).List()) {
		t.Errorf("another client lists %d tools, want all", len(names))
	}
}

func TestUnknownToolsetIsRefused(t *testing.T) {
	dial, _ := start(t, Options{Catalogue: newFakeTools()})
	c := dial()
	c.send(strings.Replace(goodHandshake, `"env":`, `"toolset":"most","env":`, 1))
	answer := c.receive()
	if answer["ok"] != false || answer["code"] != "unknown_toolset" || answer["fixHint"] == "" {
		t.Errorf("handshake answered with %v, want unknown_toolset", answer)
	}
	checkShort(t, "toolset", fmt.Sprint(answer))
}

// deaf is a recorder that discards all events.
type deaf struct{}

func (deaf) Record(context.Context, string, map[string]any) {}

func TestLongAnswersAreShortened(t *testing.T) {
	protocols(t, Options{Catalogue: newFakeTools()}, func(t *testing.T, c *client, meta string) {
		c.send(request(1, "tools/call", `"name":"echo","arguments":{"long":true}`, meta))
		line := c.line()
		var answer map[string]any
		if err := json.Unmarshal([]byte(line), &answer); err != nil || len(line) > tools.MaxAnswer ||
			dig(answer, "result", "structuredContent", "more") != true {
			t.Errorf("%d bytes, error %v, want at most %d and more: true", len(line), err, tools.MaxAnswer)
		}
	})
}
