//go:build unix

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// ask sends one stateless request to a program that speaks MCP on stdio, and returns the response.
func (w *world) ask(request string, program string, args ...string) map[string]any {
	w.t.Helper()
	cmd := w.command(program, args...)
	cmd.Stdin = strings.NewReader(request + "\n")
	out, err := cmd.Output()
	var answer map[string]any
	if jsonErr := json.Unmarshal(out, &answer); jsonErr != nil {
		w.t.Fatalf("%s %v: %v, response %.500s", program, args, err, out)
	}
	return answer
}

// An agent registered with --tools local gets the local toolset, both from a daemon and from `serviced mcp
// --in-process` in a sandbox.
func TestToolset_Local(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, c := range []struct {
		command []string
		account bool
	}{
		{[]string{"service-mcp"}, true},
		{[]string{"service-mcp", "--tools", "local"}, false},
		{[]string{"service-mcp", "--tools=local"}, false},
		{[]string{"serviced", "mcp", "--in-process"}, true},
		{[]string{"serviced", "mcp", "--in-process", "--tools", "local"}, false},
	} {
		answer, err := json.Marshal(w.ask(list, c.command[0], c.command[1:]...))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(answer); strings.Contains(text, `"createSimulatorSession"`) != c.account ||
			!strings.Contains(text, `"startLocalSimulation"`) {
			t.Errorf("%v: got tools %.2000s, want the local ones, and account tools only without --tools local", c.command, text)
		}
	}
	refused := w.ask(list, "service-mcp", "--tools", "most")
	said, err := json.Marshal(refused["error"])
	if err != nil || !strings.Contains(string(said), "unknown_toolset") ||
		!strings.Contains(string(said), "--tools local") {
		t.Errorf("an unknown toolset: got %v, want unknown_toolset with the fix", refused)
	}
	if out, err := w.command("service-mcp", "--help").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "login") {
		t.Errorf("service-mcp --help: error %v, want help that names login\n%s", err, out)
	}
}
