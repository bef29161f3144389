package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestErrors_AreShortAndNameJSONTypes passes values of every JSON type, and very long ones, for every argument of
// every tool. Errors must be short and name JSON types instead of Go types.
func TestErrors_AreShortAndNameJSONTypes(t *testing.T) {
	long := quote(strings.Repeat("x", 100_000))
	values := []string{`7`, `-1.5`, `1e400`, `true`, `"x"`, long, `[]`, `[7]`, `[` + long + `]`, `{}`, `{"a":1}`,
		`{` + long + `:1}`, `{"a":` + long + `}`, `[[1]]`, `[{"a":[]}]`}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that no call waits
	w := newWorld().linked().locally()
	c := w.catalogue()
	for _, tool := range c.List() {
		var schema struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		refused := 0
		for name := range schema.Properties {
			for _, value := range values {
				given := map[string]json.RawMessage{}
				for _, need := range schema.Required {
					given[need] = json.RawMessage(`"x"`)
				}
				given[name] = json.RawMessage(value)
				result := c.Call(ctx, tool.Name, encode(given), IO{})
				if result.IsError {
					refused++
					checkWords(t, fmt.Sprintf("%s %s=%.30s", tool.Name, name, value), result)
				}
			}
		}
		for _, args := range []string{`{"` + strings.Repeat("x", 100_000) + `":1}`, `[` + long + `]`, long, `7`} {
			result := c.Call(ctx, tool.Name, json.RawMessage(args), IO{})
			if !result.IsError {
				t.Errorf("%s accepts %.40s", tool.Name, args)
			}
			checkWords(t, tool.Name+" "+args[:min(len(args), 30)], result)
		}
		if len(schema.Properties) > 0 && refused == 0 {
			t.Errorf("%s accepted every wrong value", tool.Name)
		}
	}
}

func encode(args map[string]json.RawMessage) json.RawMessage {
	var pairs []string
	for name, value := range args {
		pairs = append(pairs, quote(name)+":"+string(value))
	}
	return json.RawMessage("{" + strings.Join(pairs, ",") + "}")
}

func checkWords(t *testing.T, what string, result Result) {
	t.Helper()
	if len(result.Structured) > 2000 {
		t.Errorf("%s: an error of %d bytes, want at most 2000: %.300s", what, len(result.Structured), result.Structured)
	}
	for _, word := range []string{"Go ", "json:", "unmarshal", "int64", "tools.", "%!", "struct", "[]string", "map["} {
		if strings.Contains(string(result.Structured), word) {
			t.Errorf("%s: got %.400s, want an error without Go's terms", what, result.Structured)
		}
	}
}
