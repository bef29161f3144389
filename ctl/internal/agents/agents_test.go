package agents

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/service-dev/service/internal/rendezvous"
)

const shimPath = "/opt/service/bin/service-mcp"

var shim = Program{Command: shimPath}

func TestJSONFile_AddKeepsTheRest(t *testing.T) {
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
			"{\n  \"mcpServers\": {\n    \"service\": {\"command\": \"" + shimPath + "\", \"env\": {\"A\": \"b\"}}\n  }\n}"},
	} {
		got, err := f.add([]byte(c.before), shim)
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\ngot\n%s\nwant\n%s", c.name, err, got, c.after)
		}
	}
}

func TestFormat_RemoveUndoesAdd(t *testing.T) {
	for name, c := range map[string]struct {
		f     format
		files []string
	}{
		"json": {jsonFile{key: "servers", before: []pair{{"type", `"stdio"`}}}, []string{
			"{\n  \"servers\": {\n    \"x\": {} // c\n  },\n  \"inputs\": []\n}\n", `{"servers":{"x":{}}}`,
			"{\r\n\t\"servers\": {\r\n\t\t\"x\": 1\r\n\t}\r\n}",
		}},
		"toml": {tomlFile{}, []string{
			"", "model = \"x\" # c\n", "[a]\nb = '''\n[mcp_servers.service]\n'''\n",
			"# c\r\n[mcp_servers.other]\r\ncommand = \"y\"\r\n",
		}},
	} {
		for _, before := range c.files {
			with, err := c.f.add([]byte(before), shim)
			if err != nil {
				t.Fatalf("%s: add to %q: %v", name, before, err)
			}
			if now, ok, err := c.f.registered(with); !now.equal(shim) || !ok || err != nil {
				t.Errorf("%s: registered(%q) = %q, %v, %v, want %q", name, with, now, ok, err, shim)
			}
			without, err := c.f.remove(with)
			if err != nil {
				t.Fatalf("%s: remove from %q: %v", name, with, err)
			}
			if strings.Join(strings.Fields(string(without)), "") != strings.Join(strings.Fields(before), "") {
				t.Errorf("%s: adding and removing the entry changed %q to %q", name, before, without)
			}
		}
	}
}

func TestTOMLFile_EditsKeepTheRest(t *testing.T) {
	before := "model = \"m\"\n\n[mcp_servers.service]\ncommand = '/old' # old\nargs = [\n  \"a\"," +
		"\n]\nstartup_timeout_sec = 9\n\n[mcp_servers.service.env]\nA = \"b\"\n\n# next\n[tui]\nx = 1\n"
	after, err := tomlFile{}.add([]byte(before), shim)
	before = strings.Replace(before, "[mcp_servers.service]\n", "[mcp_servers.service]\nenv_vars = "+list(forwarded)+"\n",
		1)
	want := strings.NewReplacer("'/old'", `"`+shimPath+`"`, "[\n  \"a\",\n]", "[]").Replace(before)
	if err != nil || string(after) != want {
		t.Fatalf("add: got %v and\n%s", err, after)
	}
	after, err = tomlFile{}.remove([]byte(before))
	if err != nil || string(after) != "model = \"m\"\n\n# next\n[tui]\nx = 1\n" {
		t.Fatalf("remove: got %v and %q", err, after)
	}
}

func TestFormat_RefusesUnsafeEdits(t *testing.T) {
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
		{jsonFile{key: "mcpServers"}, `{"mcpServers": {"service": {"type": "http", "url": "https://x"}}}`},
		{tomlFile{}, `mcp_servers = { service = { command = "x" } }`},
		{tomlFile{}, `mcp_servers.service.command = "x"`},
		{tomlFile{}, "[mcp_servers]\nservice = {command = 'x'}"},
		{tomlFile{}, "[mcp_servers.service]\nurl = 'https://x'"},
		{tomlFile{}, "[[mcp_servers]]\n"},
		{tomlFile{}, "a = \"x"},
		{tomlFile{}, "a = [1"},
	} {
		if got, err := c.f.add([]byte(c.text), shim); err == nil {
			t.Errorf("editing %q succeeded with %q, want an error", c.text, got)
		}
	}
}

func TestJSONFile_RemoveRefusesAnotherKindOfServer(t *testing.T) {
	const text = `{"mcpServers": {"service": {"type": "http", "url": "https://x"}}}`
	if got, err := (jsonFile{key: "mcpServers"}).remove([]byte(text)); err == nil || string(got) != text {
		t.Errorf("got %q, %v, want an error and the unchanged text", got, err)
	}
}

func TestAgent_AddKeepsModeAndSymlink(t *testing.T) {
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
		t.Errorf("the file has mode %v, %v, want 0640", info.Mode(), err)
	}
	if link, err := os.Readlink(file); err != nil || link != real {
		t.Errorf("the symbolic link is %q, %v, want it unchanged", link, err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 2 {
		t.Errorf("unexpected files remain: %v", names)
	}
}

func TestAgent_RefusesDanglingSymlink(t *testing.T) {
	for _, name := range []string{"mcp.json", filepath.Join("settings", "mcp.json")} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, name)
			first, _, _ := strings.Cut(name, string(filepath.Separator))
			link, target := filepath.Join(dir, first), filepath.Join(dir, "dotfiles", "gone")
			if err := os.Symlink(target, link); err != nil {
				t.Skip(err)
			}
			a := Agent{File: file, signs: []string{dir}, format: jsonFile{key: "mcpServers"}}
			_, added := a.Add(shim, false)
			_, removed := a.Remove(false)
			state, _, seen := a.State(shim.Command)
			if state != StateUnreadable {
				t.Errorf("the state is %s, want unreadable", state)
			}
			for what, err := range map[string]error{"add": added, "remove": removed, "state": seen} {
				if err == nil || !strings.Contains(err.Error(), link+" is a link to "+target+", which does not exist") {
					t.Errorf("%s: got %v, want an error that names the link and its target", what, err)
				}
			}
			if now, err := os.Readlink(link); err != nil || now != target {
				t.Errorf("the symbolic link is %q, %v, want it unchanged", now, err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("unexpected files remain: %v, %v", entries, err)
			}
		})
	}
}

func TestRewrite_RepeatsEditAfterConcurrentWrite(t *testing.T) {
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
		t.Fatalf("got %v after %d edits: %s; want 2 edits and both changes", err, calls, data)
	}
}

func TestAll_PathsFollowTheSystem(t *testing.T) {
	env := map[string]string{}
	p := Place{OS: "darwin", Home: "/h", Getenv: func(k string) string { return env[k] }}
	if got := find(t, p, "vscode").File; got != filepath.Join("/h", "Library", "Application Support", "Code", "User",
		"mcp.json") {
		t.Error(got)
	}
	p.OS, env["APPDATA"] = "windows", "/roaming"
	if got := find(t, p, "claude-desktop").File; got != filepath.Join("/roaming", "Claude", "claude_desktop_config.json") {
		t.Error(got)
	}
	p.OS, env["CODEX_HOME"], env["CLAUDE_CONFIG_DIR"] = "linux", "/codex", "/claude"
	if all := All(p); all[0].File != filepath.Join("/claude", ".claude.json") ||
		all[1].File != filepath.Join("/codex", "config.toml") {
		t.Error(all[0].File, all[1].File)
	}
}

func find(t *testing.T, p Place, id string) Agent {
	t.Helper()
	for _, a := range All(p) {
		if a.ID == id {
			return a
		}
	}
	t.Fatalf("no agent %s", id)
	return Agent{}
}

// TestFormat_ChangesToolsetInPlace registers, changes the toolset and changes it back. Everything else stays
// unchanged, and repeating a registration changes nothing.
func TestFormat_ChangesToolsetInPlace(t *testing.T) {
	local := Shim(shimPath, "local")
	place := Place{OS: "linux", Home: t.TempDir(), Getenv: func(string) string { return "" }}
	for _, a := range All(place) {
		for _, before := range []string{"", a.format.snippet(Program{Command: "/old", Args: []string{"x"}})} {
			all, err := a.format.add([]byte(before), shim)
			if err != nil {
				t.Fatalf("%s: %v", a.ID, err)
			}
			some, err := a.format.add(all, local)
			if err != nil {
				t.Fatalf("%s: %v", a.ID, err)
			}
			if now, ok, err := a.format.registered(some); !now.equal(local) || !ok || err != nil {
				t.Errorf("%s: registered(%s) = %v, %v, %v, want %v", a.ID, some, now, ok, err, local)
			}
			if again, err := a.format.add(some, local); err != nil || string(again) != string(some) {
				t.Errorf("%s: a repeated registration changed the file: %v\n%s", a.ID, err, again)
			}
			back, err := a.format.add(some, shim)
			if err != nil || string(back) != string(all) {
				t.Errorf("%s: changing the toolset back: %v\ngot\n%s\nwant\n%s", a.ID, err, back, all)
			}
		}
	}
}

func TestJSONFile_AddsMissingArguments(t *testing.T) {
	local := Shim(shimPath, "local")
	got, err := jsonFile{key: "mcpServers"}.add(
		[]byte("{\n  \"mcpServers\": {\n    \"service\": {\n      \"command\": \"/old\"\n    }\n  }\n}\n"), local)
	want := "{\n  \"mcpServers\": {\n    \"service\": {\n      \"command\": \"" + shimPath +
		"\",\n      \"args\": [\"--tools\", \"local\"]\n    }\n  }\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("unexpected result of add: %v\n%s", err, got)
	}
}

// TestTOMLFile_ForwardsVariables checks that variables listed by the user are kept and that the ones that service-mcp
// needs are added once.
func TestTOMLFile_ForwardsVariables(t *testing.T) {
	for _, name := range rendezvous.Variables {
		if !slices.Contains(forwarded, name) {
			t.Errorf("%s is not forwarded", name)
		}
	}
	before := "[mcp_servers.service]\ncommand = \"" + shimPath + "\"\nenv_vars = [\n  'MINE', # mine\n  \"CI\",\n]\n"
	after, err := tomlFile{}.add([]byte(before), shim)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Servers map[string]struct {
			EnvVars []string `toml:"env_vars"`
		} `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal(after, &read); err != nil {
		t.Fatalf("the result is not TOML: %v\n%s", err, after)
	}
	names := read.Servers["service"].EnvVars
	if len(names) != len(forwarded)+1 || names[0] != "MINE" || !slices.Contains(names, "SERVICE_CONFIG_DIR") {
		t.Errorf("unexpected list of forwarded variables: %v", names)
	}
	odd := "[mcp_servers.service]\ncommand = \"" + shimPath + "\"\nenv_vars = [{ name = \"A\" }]\n"
	if after, err := (tomlFile{}).add([]byte(odd), shim); err != nil || string(after) != odd {
		t.Errorf("a list of another type was changed: %v\n%s", err, after)
	}
}

func TestAll_OpenCodeJSONC(t *testing.T) {
	home := t.TempDir()
	p := Place{OS: "darwin", Home: home, Getenv: func(string) string { return "" }}
	dir := filepath.Join(home, ".config", "opencode")
	if got := find(t, p, "opencode").File; got != filepath.Join(dir, "opencode.json") {
		t.Error(got)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "opencode.jsonc"), []byte("{} // mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := find(t, p, "opencode").File; got != filepath.Join(dir, "opencode.jsonc") {
		t.Error(got)
	}
}

// A link and its target are one program; the path that an upgrade left behind is another one.
func TestAgent_StateKnowsLinks(t *testing.T) {
	dir := t.TempDir()
	file, link, old := filepath.Join(dir, "service-mcp"), filepath.Join(dir, "link"), filepath.Join(dir, "1.2.0", "service-mcp")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	t.Setenv("PATH", dir)
	a := Agent{File: filepath.Join(dir, "mcp.json"), signs: []string{dir}, format: jsonFile{key: "mcpServers"}}
	for registered, want := range map[string]string{
		file: StateRegistered, link: StateRegistered, "service-mcp": StateRegistered, old: StateOther, "other": StateOther,
	} {
		if _, err := a.Add(Program{Command: registered}, false); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{file, link} {
			if state, _, err := a.State(command); state != want || err != nil {
				t.Errorf("%s is registered, asked about %s: got %s, %v; want %s", registered, command, state, err, want)
			}
		}
	}
	if _, err := a.Add(Program{Command: file}, false); err != nil { // the last one above may have been the link
		t.Fatal(err)
	}
	if c, err := a.Add(Program{Command: link}, false); err != nil || !c.Changed() || !strings.Contains(string(c.After), link) {
		t.Errorf("add with the link: got %s, %v; want the link", c.After, err)
	}
}

func TestRewrite_KeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may write other users' files")
	}
	home := t.TempDir()
	file := filepath.Join(home, "settings.json")
	if err := os.WriteFile(file, []byte("{}"), 0o640); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{home, file} {
		if err := os.Chown(path, 65534, 65533); err != nil {
			t.Fatal(err)
		}
	}
	add := func([]byte) ([]byte, error) { return []byte(`{"a":1}`), nil }
	if err := rewrite(file, false, add); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", info.Sys()); !strings.Contains(got, "Uid:65534") || !strings.Contains(got, "Gid:65533") ||
		info.Mode().Perm() != 0o640 {
		t.Errorf("the file has mode %v and the status %s, want owner, group and mode kept", info.Mode(), got)
	}
	err = rewrite(filepath.Join(home, "new", "settings.json"), false, add)
	left, readErr := os.ReadDir(home)
	if err == nil || !strings.Contains(err.Error(), "without sudo") || readErr != nil || len(left) != 1 {
		t.Errorf("a new file in another user's directory: %v, files %v; want it refused", err, left)
	}
}
