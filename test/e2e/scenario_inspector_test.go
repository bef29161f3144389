//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The official inspector accepts the schemas of all tools in both protocol generations.
func TestTools_PassInspector(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	for _, protocol := range []string{"legacy", "modern"} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, nodeTool(t, "node/bin/node"), nodeTool(t, ".bin/mcp-inspector"),
			"--cli", "--strict", "--protocol-era", protocol, "--method", "tools/list", "--format", "json",
			"-e", "SERVICE_CONFIG_DIR="+w.dir, filepath.Join(bin, "service-mcp"))
		cmd.Env = w.env
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s%s", protocol, err, out.String(), errs.String())
		}
		var list struct {
			Result struct{ Tools []struct{ Name string } }
		}
		if err := json.Unmarshal([]byte(out.String()), &list); err != nil || len(list.Result.Tools) < 6 {
			t.Errorf("protocol %s: error %v, want at least 6 tools: %s", protocol, err, out.String())
		}
		if low := strings.ToLower(errs.String()); strings.Contains(low, "error") || strings.Contains(low, "warning") {
			t.Errorf("%s: the inspector printed errors or warnings: %s", protocol, errs.String())
		}
	}
}

// 500 calls, 8 at a time, succeed through one service-mcp.
func TestServiceMCP_FiveHundredCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	for _, protocol := range []string{"legacy", "modern"} {
		a := startAgent(w, protocol, false)
		var waiting []<-chan agentLine
		for n := range 500 {
			if len(waiting) == 8 {
				if r := a.wait(waiting[0]); r.IsError || r.str(t, "installId") == "" {
					t.Fatalf("protocol %s, call %d: got %v, want the install id", protocol, n, r.Structured)
				}
				waiting = waiting[1:]
			}
			_, ch := a.start("whoAmI", map[string]any{}, false, time.Minute)
			waiting = append(waiting, ch)
		}
		for _, ch := range waiting {
			if r := a.wait(ch); r.IsError {
				t.Fatalf("protocol %s: the call failed: %v", protocol, r.Structured)
			}
		}
	}
}
