package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shim = "/opt/service/bin/service-mcp"

func TestJSONEditsTouchNothingElse(t *testing.T) {
	f := jsonFile{key: "mcpServers"}
	entry := func(indent string) string {
		return `"service": ` + layout(f.entry(shim), indent, indent[:len(indent)/2], "\n")
	}
	for _, c := range []struct{ name, before, after string }{
		{"empty", "", f.snippet(shim)},
		{"other servers", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"}\n  }\n}\n",
			"{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"},\n    " + entry("    ") + "\n  }\n}\n"},
		{"tabs", "{\n\t\"a\": 1\n}", "{\n\t\"a\": 1,\n\t\"mcpServers\": {\n\t\t" + entry("\t\t") + "\n\t}\n}"},
		{"comments", "// mine\n{\n  \"mcpServers\": {\n    \"x\": {} // the x\n    // the end\n  }\n}",
			"// mine\n{\n  \"mcpServers\": {\n    \"x\": {}, // the x\n    " + entry("    ") + "\n    // the end\n  }\n}"},
		{"trailing comma", "{\n  \"mcpServers\": {\n    \"x\": {}, /* x */\n  },\n}",
			"{\n  \"mcpServers\": {\n    \"x\": {}, /* x */\n    " + entry("    ") + ",\n  },\n}"},
		{"empty object", "{\n  \"mcpServers\": {}\n}", "{\n  \"mcpServers\": {\n    " + entry("    ") + "\n  }\n}"},
		{"another path", "{\n  \"mcpServers\": {\n    \"service\": {\"command\": \"/old\", \"env\": {\"A\": \"b\"}}\n  }\n}",
			"{\n  \"mcpServers\": {\n    \"service\": {\"command\": \"" + shim + "\", \"env\": {\"A\": \"b\"}}\n  }\n}"},
	} {
		got, err := f.add([]byte(c.before), shim)
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.after)
		}
	}
}

func TestWhatIsAddedCanBeRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		f     format
		files []string
	}{
		"json": {jsonFile{key: "servers", stdio: true}, []string{
			"{\n  \"servers\": {\n    \"x\": {} // c\n  },\n  \"inputs\": []\n}\n", `{"servers":{"x":{}}}`, "{\r\n\t\"servers\": {\r\n\t\t\"x\": 1\r\n\t}\r\n}",
		}},
		"toml": {tomlFile{}, []string{
			"", "model = \"x\" # c\n", "[a]\nb = '''\n[mcp_servers.service]\n'''\n", "# c\r\n[mcp_servers.other]\r\ncommand = \"y\"\r\n",
		}},
	} {
		for _, before := range c.files {
			with, err := c.f.add([]byte(before), shim)
			if err != nil {
				t.Fatalf("%s: %q: %v", name, before, err)
			}
			if now, ok, err := c.f.registered(with); now != shim || !ok || err != nil {
				t.Errorf("%s: %q: registered %q %v %v", name, with, now, ok, err)
			}
			without, err := c.f.remove(with)
			if err != nil {
				t.Fatalf("%s: %q: %v", name, with, err)
			}
			if strings.Join(strings.Fields(string(without)), "") != strings.Join(strings.Fields(before), "") {
				t.Errorf("%s: %q became %q", name, before, without)
			}
		}
	}
}

func TestTOMLKeepsWhatStandsAroundTheEntry(t *testing.T) {
	before := "model = \"m\"\n\n[mcp_servers.service]\ncommand = '/old' # old\nargs = [\n  \"a\",\n]\nstartup_timeout_sec = 9\n\n[mcp_servers.service.env]\nA = \"b\"\n\n# next\n[tui]\nx = 1\n"
	after, err := tomlFile{}.add([]byte(before), shim)
	want := strings.NewReplacer("'/old'", `"`+shim+`"`, "[\n  \"a\",\n]", "[]").Replace(before)
	if err != nil || string(after) != want {
		t.Fatalf("%v\n%s", err, after)
	}
	after, err = tomlFile{}.remove([]byte(before))
	if err != nil || string(after) != "model = \"m\"\n\n# next\n[tui]\nx = 1\n" {
		t.Fatalf("%v\n%q", err, after)
	}
}

func TestWhatCannotBeChangedSafelyIsRefused(t *testing.T) {
	for _, c := range []struct {
		f    format
		text string
	}{
		{jsonFile{key: "mcpServers"}, `{"mcpServers": []}`},
		{jsonFile{key: "mcpServers"}, `{"mcpServers": {}, "mcpServers": {}}`},
		{jsonFile{key: "mcpServers"}, `{"a": 1`},
		{jsonFile{key: "mcpServers"}, `{"a" 1}`},
		{jsonFile{key: "mcpServers"}, `[]`},
		{jsonFile{key: "mcpServers"}, "{\"a\": \"\xff\"}"},
		{tomlFile{}, `mcp_servers = { service = { command = "x" } }`},
		{tomlFile{}, `mcp_servers.service.command = "x"`},
		{tomlFile{}, "[mcp_servers]\nservice = {command = 'x'}"},
		{tomlFile{}, "[mcp_servers.service]\nurl = 'https://x'"},
		{tomlFile{}, "[[mcp_servers]]\n"},
		{tomlFile{}, "a = \"x"},
		{tomlFile{}, "a = [1"},
	} {
		if got, err := c.f.add([]byte(c.text), shim); err == nil {
			t.Errorf("%q became %q", c.text, got)
		}
	}
}

func TestAFileKeepsItsModeAndItsLink(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles.json")
	if err := os.WriteFile(real, []byte("{}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "home", "mcp.json")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, file); err != nil {
		t.Skip(err)
	}
	a := Agent{File: file, format: jsonFile{key: "mcpServers"}}
	if _, err := a.Add(shim, true); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(real); string(data) != "{}\n" {
		t.Fatalf("a dry run wrote %s", data)
	}
	if _, err := a.Add(shim, false); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(real)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if link, err := os.Readlink(file); err != nil || link != real {
		t.Errorf("the link is %q, %v", link, err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
}

func TestALinkToNothingIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.Symlink("/nowhere/else", file); err != nil {
		t.Skip(err)
	}
	a := Agent{File: file, format: jsonFile{key: "mcpServers"}}
	if _, err := a.Add(shim, false); err == nil {
		t.Fatal("it was written through")
	}
}

func TestAWriterInBetweenLosesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.json")
	if err := os.WriteFile(file, []byte(`{"a":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := 0
	err := rewrite(file, false, func(data []byte) ([]byte, error) {
		if calls++; calls == 1 {
			if err := os.WriteFile(file, []byte(`{"a":2}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return jsonFile{key: "mcpServers"}.add(data, shim)
	})
	data, _ := os.ReadFile(file)
	if err != nil || calls != 2 || !strings.Contains(string(data), `"a":2`) {
		t.Fatalf("%v after %d edits: %s", err, calls, data)
	}
}

func TestPathsFollowTheSystem(t *testing.T) {
	env := map[string]string{}
	p := Place{OS: "darwin", Home: "/h", Getenv: func(k string) string { return env[k] }}
	if got := All(p)[2].File; got != filepath.Join("/h", "Library", "Application Support", "Code", "User", "mcp.json") {
		t.Error(got)
	}
	p.OS, env["APPDATA"] = "windows", "/roaming"
	if got := All(p)[5].File; got != filepath.Join("/roaming", "Claude", "claude_desktop_config.json") {
		t.Error(got)
	}
	p.OS, env["CODEX_HOME"], env["CLAUDE_CONFIG_DIR"] = "linux", "/codex", "/claude"
	if all := All(p); all[0].File != filepath.Join("/claude", ".claude.json") || all[1].File != filepath.Join("/codex", "config.toml") {
		t.Error(all[0].File, all[1].File)
	}
}
