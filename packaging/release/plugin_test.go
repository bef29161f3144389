package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// pluginFolder checks that the folder is valid for each client. It uses a client's own validator if it is installed.
// Agent Plugins and Codex have none, so it checks only their documented fields.
func pluginFolder(t *testing.T, r *release) {
	t.Helper()
	marketplace := filepath.Join(unzip(t, filepath.Join(r.out, "agent-plugin.zip")), "service-plugin")
	plugin := filepath.Join(marketplace, "service")
	t.Run("agent-plugin", func(t *testing.T) { checkAgentPlugin(t, r, plugin) })
	t.Run("codex", func(t *testing.T) { checkCodexPlugin(t, r, marketplace) })
	t.Run("skill", func(t *testing.T) { checkSkill(t, filepath.Join(plugin, "skills", "build-glasses-app")) })
	t.Run("claude", func(t *testing.T) {
		claude := npmProgram(t, "../../test/agents/npm", ".bin/claude", "make agents-npm")
		for _, dir := range []string{plugin, marketplace} {
			if out, err := judge(t, claude, "plugin", "validate", "--strict", dir); err != nil {
				t.Errorf("claude plugin validate %s: %v\n%s", filepath.Base(dir), err, out)
			}
		}
	})
	t.Run("gemini", func(t *testing.T) {
		gemini := npmProgram(t, "../../test/agents/npm", ".bin/gemini", "make agents-npm")
		if out, err := judge(t, gemini, "extensions", "validate", plugin); err != nil {
			t.Errorf("gemini extensions validate: %v\n%s", err, out)
		}
	})
}

// pluginDescription is plugin.json of Agent Plugins 1.0, whose schema allows no other fields.
type pluginDescription struct {
	Schema      string `json:"$schema"`
	Name        string
	Version     string
	Description string
	Author      struct{ Name, Email, URL string }
	Homepage    string
	Repository  string
	License     string
	Keywords    []string
}

func checkAgentPlugin(t *testing.T, r *release, plugin string) {
	t.Helper()
	var p pluginDescription
	readJSON(t, filepath.Join(plugin, "plugin.json"), &p)
	var m struct {
		Schema  string                                    `json:"$schema"`
		Servers map[string]struct{ Type, Command string } `json:"mcpServers"`
	}
	readJSON(t, filepath.Join(plugin, "mcp.json"), &m)
	const schemas = "https://agent-plugins.org/schemas/1.0.0/"
	if p.Schema != schemas+"plugin.schema.json" || m.Schema != schemas+"mcp.schema.json" ||
		p.Name != "service" || p.Version != r.version {
		t.Errorf("plugin.json and mcp.json are not of one version: %+v, %+v", p, m)
	}
	if s := m.Servers["service"]; len(m.Servers) != 1 || s.Type != "stdio" || s.Command != "service-mcp" {
		t.Errorf("mcp.json has the servers %v", m.Servers)
	}
}

func checkCodexPlugin(t *testing.T, r *release, marketplace string) {
	t.Helper()
	var p struct {
		pluginDescription
		Skills     string
		MCPServers string `json:"mcpServers"`
	}
	plugin := filepath.Join(marketplace, "service")
	readJSON(t, filepath.Join(plugin, ".codex-plugin", "plugin.json"), &p)
	for _, path := range []string{p.Skills, p.MCPServers} {
		if _, err := os.Stat(filepath.Join(plugin, path)); err != nil || !strings.HasPrefix(path, "./") {
			t.Errorf("the plugin names %q: %v", path, err)
		}
	}
	var m struct {
		Name      string
		Interface struct{ DisplayName string }
		Plugins   []struct {
			Name, Category string
			Source         struct{ Source, Path string }
			Policy         struct{ Installation, Authentication string }
		}
	}
	readJSON(t, filepath.Join(marketplace, ".agents", "plugins", "marketplace.json"), &m)
	// Codex does not find a plugin whose path is the marketplace itself.
	if len(m.Plugins) != 1 || m.Plugins[0].Source.Path != "./service" || m.Plugins[0].Name != p.Name ||
		p.Version != r.version {
		t.Errorf("the marketplace has the plugins %+v", m.Plugins)
	}
}

// checkSkill checks a skill against https://agentskills.io/specification.
func checkSkill(t *testing.T, dir string) {
	t.Helper()
	text := string(must(os.ReadFile(filepath.Join(dir, "SKILL.md"))))
	front, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---\n")
	var s struct{ Name, Description, License, Compatibility string }
	decoder := yaml.NewDecoder(strings.NewReader(front))
	decoder.KnownFields(true)
	if err := decoder.Decode(&s); err != nil || !ok {
		t.Fatalf("the front matter: %v", err)
	}
	form := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	if s.Name != filepath.Base(dir) || !form.MatchString(s.Name) || len(s.Name) > 64 {
		t.Errorf("the skill is named %q", s.Name)
	}
	if s.Description == "" || len(s.Description) > 1024 || len(s.Compatibility) > 500 {
		t.Errorf("the description has %d characters, compatibility %d", len(s.Description), len(s.Compatibility))
	}
	if lines := strings.Count(body, "\n"); lines > 100 || strings.Contains(text, "{{") {
		t.Errorf("the body has %d lines, or a placeholder is left", lines)
	}
	checkSkillNames(t, body)
}

// checkSkillNames fails if the skill names a tool that does not exist.
func checkSkillNames(t *testing.T, body string) {
	t.Helper()
	tools := string(must(os.ReadFile("../../daemon/internal/tools/descriptions.md")))
	for _, match := range regexp.MustCompile("`([a-z]+[A-Z][A-Za-z]+)`").FindAllStringSubmatch(body, -1) {
		name := match[1]
		isField := strings.HasPrefix(name, "expect") || name == "deviceModel" // a field of a scenario
		if !isField && !strings.Contains(tools, "## "+name+"\n") {
			t.Errorf("the skill names the tool %s, which does not exist", name)
		}
	}
}
