package pump

import (
	"encoding/json"
	"testing"
)

func TestPrefaceNamesTheToolset(t *testing.T) {
	for _, name := range []string{"", "local", `odd "name"`} {
		var said struct {
			Client  string
			Toolset *string
			Env     map[string]string
		}
		line := Hello{Client: "service-mcp", Toolset: name, Env: map[string]string{"CI": "1"}}.preface()
		if err := json.Unmarshal(line, &said); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if said.Client != "service-mcp" || said.Env["CI"] != "1" || (said.Toolset == nil) != (name == "") || said.Toolset != nil && *said.Toolset != name {
			t.Errorf("toolset %q: %s", name, line)
		}
	}
}
