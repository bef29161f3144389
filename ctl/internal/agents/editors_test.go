package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// TestAgent_SnippetMatchesSchema checks snippets for editors that are not available as packages against the schemas
// that their vendors publish.
func TestAgent_SnippetMatchesSchema(t *testing.T) {
	place := Place{OS: "linux", Home: t.TempDir(), Getenv: func(string) string { return "" }}
	for _, id := range []string{"vscode", "cursor", "claude-desktop"} {
		data, err := os.ReadFile(filepath.Join("testdata", id+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		for _, toolset := range []string{"", "local"} {
			var written any
			text := find(t, place, id).Snippet(Shim(shimPath, toolset))
			if err := json.Unmarshal([]byte(text), &written); err != nil {
				t.Fatalf("%s: %v", id, err)
			}
			if err := resolved.Validate(written); err != nil {
				t.Errorf("%s: %v\n%s", id, err, text)
			}
		}
		if resolved.Validate(map[string]any{"mcpServers": map[string]any{"x": map[string]any{"url": 1}},
			"servers": map[string]any{"x": map[string]any{"url": 1}}}) == nil {
			t.Errorf("%s: the schema accepts an invalid server", id)
		}
	}
}
