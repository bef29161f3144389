package agents

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// FuzzJSON checks that a successful edit of any file leaves valid JSON in which everything else is unchanged.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", "{}", `{"":[]}`, `{"mcpServers":{}}`,
		"{\n // c\n \"mcpServers\": {\"a\": [1, 2,], /* x */ },\n}",
		`{"mcpServers":{"service":{"command":"x","args":["y"]}}}`,
		"\xef\xbb\xbf{\"a\":1}", `{"mcpServers":{"service":{"url":"x"}}}`, `{"a":"\u0000//","b":{"c":null}}`} {
		f.Add([]byte(s))
	}
	file := jsonFile{key: "mcpServers"}
	f.Fuzz(func(t *testing.T, data []byte) {
		added, err := file.add(data, shim)
		if err != nil {
			return
		}
		removed, err := file.remove(added)
		if err != nil {
			t.Fatalf("remove %q from %q: %v", entryName, added, err)
		}
		before, with, without := jsonRest(t, data), jsonRest(t, added), jsonRest(t, removed)
		if !reflect.DeepEqual(before, with) || !reflect.DeepEqual(before, without) {
			t.Fatalf("the edits changed other content: %q\nafter add %q\nafter remove %q", data, added, removed)
		}
		if command, ok, err := file.registered(added); !command.equal(shim) || !ok || err != nil {
			t.Fatalf("registered(%q) = %q, %v, %v, want %q", added, command, ok, err, shim)
		}
	})
}

// jsonRest decodes the file with the standard library and drops the entry.
func jsonRest(t *testing.T, data []byte) map[string]any {
	rest := map[string]any{}
	if blank(data) {
		return rest
	}
	d, err := jsonFile{key: "mcpServers"}.parse(data)
	if err != nil {
		t.Fatalf("parse %q: %v", data, err)
	}
	if err := json.Unmarshal(standard(d.root), &rest); err != nil {
		t.Fatalf("%q is not JSON: %v", data, err)
	}
	if servers, ok := rest["mcpServers"].(map[string]any); ok {
		delete(servers, entryName)
		if len(servers) == 0 {
			delete(rest, "mcpServers")
		}
	}
	return rest
}

// FuzzTOML checks that an edit of valid TOML leaves valid TOML in which everything else is unchanged.
func FuzzTOML(f *testing.F) {
	for _, s := range []string{"", "a = 1\n", "[mcp_servers.service]\ncommand = " +
		"'x'\n[mcp_servers.service.env]\nA='b'\n[b]\nc=[1,\n2]", "a = \"\"\"\n[x]\"\"\"\"\n",
		"mcp_servers.x.command = 'y'", "[mcp_servers]\n[mcp_servers.\"service\"]\n",
		"a = {b = 1} # c\r\n[[x]]\r\ny = 1979-05-27"} {
		f.Add([]byte(s))
	}
	file := tomlFile{}
	f.Fuzz(func(t *testing.T, data []byte) {
		before, ok := tomlRest(data)
		added, err := file.add(data, shim)
		// An edit of invalid TOML may produce other invalid TOML.
		if err != nil || !ok {
			return
		}
		with, ok := tomlRest(added)
		if !ok || !reflect.DeepEqual(before, with) {
			t.Fatalf("the edit changed other content: %q\nafter add %q", data, added)
		}
		removed, err := file.remove(added)
		if err != nil {
			t.Fatal(err)
		}
		if without, ok := tomlRest(removed); !ok || !reflect.DeepEqual(before, without) {
			t.Fatalf("the edits changed other content: %q\nafter add %q\nafter remove %q", data, added, removed)
		}
	})
}

// tomlRest decodes the file with a complete TOML library and drops the entry.
func tomlRest(data []byte) (map[string]any, bool) {
	rest := map[string]any{}
	if toml.Unmarshal(data, &rest) != nil {
		return nil, false
	}
	if servers, ok := rest[tomlTable].(map[string]any); ok {
		delete(servers, entryName)
		if len(servers) == 0 {
			delete(rest, tomlTable)
		}
	}
	return rest, true
}
