// Command inprocess is the baseline for service-mcp: the same tools, hosted in the agent's own process by the MCP SDK
// over stdio. It reads the tool list, as returned by tools/list, from the file named by its argument.
package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		panic(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "inprocess", Version: "1"}, nil)
	for _, raw := range list.Tools {
		var tool mcp.Tool
		if err := json.Unmarshal(raw, &tool); err != nil {
			panic(err)
		}
		server.AddTool(&tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}
