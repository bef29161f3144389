package mcpgate

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/tools"
	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses/scenario"
)

// protocols runs a test in both protocol generations; meta is added to the params of each call.
func protocols(t *testing.T, opts Options, tell func(t *testing.T, c *client, meta string)) {
	t.Run("initialize", func(t *testing.T) {
		c, _ := started(t, opts)
		c.initialize()
		tell(t, c, `"_meta":{}`)
	})
	t.Run("stateless", func(t *testing.T) {
		c, _ := started(t, opts)
		tell(t, c, modernMeta)
	})
}

// TestPicturesComeAfterTheText also checks that an answer with pictures has no structured content, because some clients
// then ignore the pictures.
func TestPicturesComeAfterTheText(t *testing.T) {
	protocols(t, Options{Catalogue: newFakeTools()}, func(t *testing.T, c *client, meta string) {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"picture","arguments":{},` + meta + `}}`)
		answer := c.receive()
		content, _ := dig(answer, "result", "content").([]any)
		if len(content) != 2 || dig(answer, "result", "structuredContent") != nil {
			t.Fatalf("answered %v", answer)
		}
		first, _ := content[0].(map[string]any)
		second, _ := content[1].(map[string]any)
		if first["type"] != "text" || second["type"] != "image" || second["mimeType"] != "image/png" ||
			second["data"] != base64.StdEncoding.EncodeToString([]byte("\x89PNG")) {
			t.Errorf("content is %v, want a text and then a picture", content)
		}
	})
}

func TestPagesAreResources(t *testing.T) {
	pages := docs.Pages()
	protocols(t, Options{Catalogue: newFakeTools(), Pages: pages}, func(t *testing.T, c *client, meta string) {
		c.send(`{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{` + meta + `}}`)
		list, _ := dig(c.receive(), "result", "resources").([]any)
		if len(list) != len(pages)+1 { // plus the schema for scenarios
			t.Fatalf("%d resources for %d pages, want one more", len(list), len(pages))
		}
		for _, r := range list {
			resource, _ := r.(map[string]any)
			page, ok := docs.Find(strings.TrimPrefix(resource["uri"].(string), "docs://service/"))
			mime := "text/markdown"
			if resource["uri"] == scenario.SchemaURI {
				page, ok, mime = docs.Page{Title: "JSON Schema of scenario files", Markdown: string(scenario.Schema())}, true,
					"application/schema+json"
			}
			if !ok || resource["title"] != page.Title || resource["mimeType"] != mime {
				t.Errorf("resource %v", resource)
			}
			c.send(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"` + resource["uri"].(string) + `",` +
				meta + `}}`)
			answer := c.receive()
			contents, _ := dig(answer, "result", "contents").([]any)
			if len(contents) != 1 || dig(contents[0].(map[string]any), "text") != page.Markdown {
				t.Errorf("%s has the content %.300v, want the page's Markdown", resource["uri"], answer)
			}
		}
		c.send(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"docs://service/nope",` + meta + `}}`)
		if answer := c.receive(); dig(answer, "error", "code") == nil || dig(answer, "error", "code") == 0.0 {
			t.Errorf("a page that does not exist: %v, want an error", answer)
		}
	})
}

func TestCapabilitiesSayWhatIsThere(t *testing.T) {
	for _, test := range []struct {
		pages []docs.Page
		want  bool
	}{{nil, false}, {docs.Pages(), true}} {
		c, _ := started(t, Options{Catalogue: newFakeTools(), Pages: test.pages})
		c.send(initialize)
		answer := c.receive()
		if _, ok := dig(answer, "result", "capabilities", "resources").(map[string]any); ok != test.want {
			t.Errorf("with %d pages: resources advertised %v, want %v", len(test.pages), ok, test.want)
		}
		if dig(answer, "result", "capabilities", "resources", "listChanged") != nil {
			t.Error("the server announces changes although the list never changes")
		}
	}
}

// TestInstructionsNameToolsThatExist checks that every tool named in the server's instructions exists.
func TestInstructionsNameToolsThatExist(t *testing.T) {
	known := map[string]bool{}
	for _, tool := range tools.New(tools.Options{}).List() {
		known[tool.Name] = true
	}
	for _, name := range regexp.MustCompile(`\b[a-z]+(?:[A-Z][a-z]+)+\b`).FindAllString(instructions, -1) {
		if !known[name] && !slices.Contains([]string{"userCode", "verificationUrl", "deviceCode", "sessionId", "fixHint", "openBrowser",
			"appTokenFile"}, name) {
			t.Errorf("the instructions name %s, which is not a tool", name)
		}
	}
}
