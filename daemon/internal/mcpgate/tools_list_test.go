package mcpgate

import (
	"encoding/json"
	"testing"

	"github.com/service-dev/service/daemon/internal/tools"
)

// Limits, in bytes, on the size of tools/list. A model reads names, descriptions and input schemas in every
// conversation; only clients read the rest.
const (
	maxToolsRead = 26_000
	maxToolsList = 48_000
)

// TestToolsList_IsSmall measures the encoded response, and the part of it that a model reads.
func TestToolsList_IsSmall(t *testing.T) {
	opts := Options{Catalogue: tools.New(tools.Options{})}
	protocols(t, opts, func(t *testing.T, c *client, meta string) {
		c.send(request(1, "tools/list", meta))
		line := c.line()
		var answer struct {
			Result struct {
				Tools []struct {
					Name, Description string
					InputSchema       json.RawMessage
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil || len(answer.Result.Tools) == 0 {
			t.Fatalf("%v: %.300s", err, line)
		}
		read := 0
		for _, tool := range answer.Result.Tools {
			read += len(tool.Name) + len(tool.Description) + len(tool.InputSchema)
		}
		t.Logf("%d tools: %d bytes to read, %d in all", len(answer.Result.Tools), read, len(line))
		if read > maxToolsRead {
			t.Errorf("names, descriptions and input schemas have %d bytes, want at most %d", read, maxToolsRead)
		}
		if len(line) > maxToolsList {
			t.Errorf("tools/list has %d bytes, want at most %d", len(line), maxToolsList)
		}
	})
}
