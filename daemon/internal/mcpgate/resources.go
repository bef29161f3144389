package mcpgate

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses/scenario"
)

// docsURI is the prefix of the URI of a documentation page. The page's ID follows it.
const docsURI = "docs://service/"

// schemaURI is the URI of the JSON Schema for scenarios.
const schemaURI = scenario.SchemaURI

// addPages offers the documentation as resources, which clients can show to users and attach to a conversation.
func addPages(server *mcp.Server, pages []docs.Page) {
	for _, page := range pages {
		addResource(server, &mcp.Resource{
			URI: docsURI + page.ID, Name: page.ID, Title: page.Title, Description: page.Summary, MIMEType: "text/markdown",
		}, page.Markdown)
	}
	if len(pages) > 0 {
		addResource(server, &mcp.Resource{
			URI: schemaURI, Name: "scenario.schema.json", Title: "JSON Schema of scenario files",
			Description: "Every kind of step with its fields, for editors and for agents that write scenarios.",
			MIMEType:    "application/schema+json",
		}, string(scenario.Schema()))
	}
}

func addResource(server *mcp.Server, resource *mcp.Resource, text string) {
	resource.Size = int64(len(text))
	server.AddResource(resource, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: resource.URI, MIMEType: resource.MIMEType,
			Text: text}}}, nil
	})
}

// capabilities returns the capabilities of the server. They are set explicitly, because the SDK would also advertise
// logging. The lists never change, so the server does not announce changes.
func capabilities(pages []docs.Page) *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}
	if len(pages) > 0 {
		c.Resources = &mcp.ResourceCapabilities{}
	}
	return c
}
