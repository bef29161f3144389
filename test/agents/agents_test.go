//go:build agents && linux

// These tests run real coding agents to check the configuration that `servicectl agent add` writes and that agents can
// use the tools. Each agent lists the MCP servers that it knows, then a scripted model on loopback makes it call a
// series of tools.

package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/test/agents/model"
)

// bin is the directory of the programs that TestMain built.
var bin string

// report collects one line of results for each agent.
var report struct {
	sync.Mutex
	lines []string
}

func tell(format string, args ...any) {
	report.Lock()
	defer report.Unlock()
	report.lines = append(report.lines, fmt.Sprintf(format, args...))
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if done, code := fence(); done {
			return code
		}
		dir, err := os.MkdirTemp("", "agents")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		bin = filepath.Join(dir, "bin")
		build := exec.Command("make", "-s", "build", "BIN="+bin)
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "make build: %v\n%s", err, out)
			return 1
		}
		code := m.Run()
		fmt.Println("\nWhat ran, and how far:")
		for _, line := range report.lines {
			fmt.Println("  " + line)
		}
		return code
	}())
}

// agent describes a coding agent and the settings that make it talk only to the scripted model.
type agent struct {
	id      string // the agent's name in `servicectl agent add`
	program string // in node_modules/.bin
	// files are written to the home directory first, with {project} and {model} replaced with the project's directory
	// and the model's URL.
	files map[string]string
	env   []string
	run   []string
	// listed is text that the agent's `mcp list` prints for the server.
	listed string
	// keepsBack reports whether the agent hides tools from the model until the model searches for them.
	keepsBack bool
	// pictures reports whether the agent passes pictures in tool results to the model.
	pictures bool
}

const geminiSettings = `{"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},
	"general":{"enableAutoUpdate":false,"disableAutoUpdate":true},"security":{"auth":{"selectedType":"AUTH"}}}`

var all = []agent{
	{
		id: "codex", program: "codex", pictures: true, listed: "enabled",
		files: map[string]string{".codex/config.toml": `model = "scripted"
model_provider = "loop"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.loop]
name = "loop"
base_url = "{model}/v1"
wire_api = "responses"
env_key = "LOOP_KEY"
`},
		env: []string{"LOOP_KEY=x"},
		// In non-interactive mode, it refuses by default everything that needs approval.
		run: []string{"exec", "--skip-git-repo-check", "go"},
	},
	{
		id: "claude-code", program: "claude", pictures: true, listed: "Connected",
		files: map[string]string{".claude.json": `{"hasCompletedOnboarding":true}`},
		env: []string{"ANTHROPIC_BASE_URL={model}", "ANTHROPIC_API_KEY=x", "DISABLE_TELEMETRY=1",
			"DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		run: []string{"-p", "go", "--allowedTools", "mcp__service"},
	},
	{
		id: "gemini", program: "gemini", pictures: true, listed: "Connected",
		files: map[string]string{
			".gemini/settings.json":       strings.Replace(geminiSettings, "AUTH", "gemini-api-key", 1),
			".gemini/trustedFolders.json": `{"{project}":"TRUST_FOLDER"}`,
		},
		env: []string{"GEMINI_API_KEY=x", "GOOGLE_GEMINI_BASE_URL={model}", "GEMINI_TELEMETRY_ENABLED=false"},
		run: []string{"-p", "go", "--approval-mode", "yolo", "-m", "gemini-2.5-flash"},
	},
	{
		id: "copilot", program: "copilot", listed: "service (local)", // it passes pictures only to models that it knows
		env: []string{"COPILOT_PROVIDER_BASE_URL={model}/v1", "COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_API_KEY=x",
			"COPILOT_MODEL=scripted",
			"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false"},
		run:   []string{"-p", "go", "--allow-all-tools"},
		files: map[string]string{".copilot/.keep": ""},
	},
	{
		id: "opencode", program: "opencode", pictures: true, listed: "connected",
		files: map[string]string{".config/opencode/opencode.json": `{"model":"loop/scripted","autoupdate":false,"share":"disabled","provider":{"loop":{
			"npm":"@ai-sdk/openai-compatible","name":"loop","options":{"baseURL":"{model}/v1","apiKey":"x"},
			"models":{"scripted":{"name":"scripted","attachment":true,"modalities":{"input":["text","image"],"output":["text"]}}}}}}`},
		env: []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
			"OPENCODE_DISABLE_DEFAULT_PLUGINS=1"},
		run: []string{"run", "go"},
	},
	{
		id: "qwen", program: "qwen", pictures: true, listed: "Connected", keepsBack: true,
		files: map[string]string{".qwen/settings.json": strings.Replace(geminiSettings,
			`"security":{"auth":{"selectedType":"AUTH"}}`,
			`"model":{"name":"scripted","generationConfig":{"modalities":{"image":true}}},`+
				`"security":{"auth":{"selectedType":"openai"}}`, 1)},
		env: []string{"OPENAI_API_KEY=x", "OPENAI_BASE_URL={model}/v1", "OPENAI_MODEL=scripted"},
		run: []string{"-p", "go", "--approval-mode", "yolo"},
	},
}

// script opens simulated glasses, uses and inspects them, and closes them. It mixes read-only calls, calls with side
// effects, a result with a picture, and calls without a session id.
var script = []model.Step{
	{Tool: "startLocalSimulation", Arguments: `{"project":"com.example.loop","clock":"virtual"}`},
	{Tool: "injectInput", Arguments: `{"kind":"tap","x":1,"y":1}`},
	{Tool: "getDisplayState", Arguments: `{}`},
	{Tool: "closeSession", Arguments: `{}`},
}

// expected holds, for each call of the script, a substring of the result that must reach the model.
var expected = []string{"com.example.loop", "input tap", "rayban_display", "is closed"}

func TestAgents(t *testing.T) {
	for _, a := range all {
		t.Run(a.id, func(t *testing.T) {
			t.Parallel() // agents spend most of the time waiting
			p := newPlace(t, a)
			p.register("")
			p.list()
			answers := p.loop()
			told := fmt.Sprintf("%-12s %-28s listed, %d calls answered", a.id, p.version(), len(answers))
			if answers[2].Images > 0 {
				told += ", picture seen"
			} else if a.pictures {
				t.Error("the tool result's picture did not reach the model")
			}
			tell("%s", told)
		})
	}
}

// TestLocalToolset checks that an agent registered with --tools local does not see the account tools.
func TestLocalToolset(t *testing.T) {
	p := newPlace(t, all[0])
	p.register("local")
	p.loop()
	if slices.ContainsFunc(p.model.Offered(), func(name string) bool {
		return strings.HasSuffix(name,
			"createSimulatorSession")
	}) {
		t.Errorf("registered with --tools local, the model was offered %v, want no account tools", p.model.Offered())
	}
	tell("%-12s --tools local: the account's tools are not listed", p.agent.id)
}

// place is one agent on its own simulated machine.
type place struct {
	*testing.T
	agent         agent
	home, project string
	env           []string
	model         *model.Server
}

func newPlace(t *testing.T, a agent) *place {
	modules, err := filepath.Abs(filepath.Join("npm", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, ".bin", a.program)); err != nil {
		t.Fatalf("%s is not installed: run make agents-npm", a.program)
	}
	home, err := os.MkdirTemp("", "a")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, agent: a, home: home, project: filepath.Join(home, "project"), model: model.New(script)}
	server := httptest.NewServer(p.model)
	t.Cleanup(server.Close)
	fill := strings.NewReplacer("{project}", p.project, "{model}", server.URL)
	p.write("project/README.md", "A project.\n")
	for name, text := range a.files {
		p.write(name, fill.Replace(text))
	}
	p.env = []string{
		"PATH=" + strings.Join([]string{filepath.Join(modules, ".bin"), filepath.Join(modules, "node", "bin"), "/usr/bin",
			"/bin"}, string(os.PathListSeparator)),
		"HOME=" + home, "SERVICE_CONFIG_DIR=" + filepath.Join(home, "state"), "SERVICE_NO_AUTO_OPEN=1", "DO_NOT_TRACK=1",
		"LANG=C.UTF-8", "TERM=dumb",
	}
	for _, variable := range a.env {
		p.env = append(p.env, fill.Replace(variable))
	}
	t.Cleanup(func() {
		_, _ = p.command(time.Minute, filepath.Join(bin, "servicectl"), "daemon", "stop")
		_ = os.RemoveAll(home) // ignore files that an exiting agent still writes
	})
	return p
}

func (p *place) write(name, text string) {
	p.Helper()
	file := filepath.Join(p.home, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// command runs a program in the project and returns its output.
func (p *place) command(limit time.Duration, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = p.project, p.env, 5*time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("timed out after %v", limit)
	}
	return string(out), err
}

func (p *place) program() string {
	return filepath.Join("npm", "node_modules", ".bin", p.agent.program)
}

// must runs the agent and fails the test if it fails.
func (p *place) must(limit time.Duration, args ...string) string {
	p.Helper()
	program, err := filepath.Abs(p.program())
	if err != nil {
		p.Fatal(err)
	}
	out, err := p.command(limit, program, args...)
	if err != nil {
		p.Fatalf("%s %v: %v\n%s\nthe model saw:\n%s", p.agent.program, args, err, out, p.model.Seen())
	}
	return out
}

func (p *place) version() string {
	lines := strings.Split(strings.TrimSpace(p.must(time.Minute, "--version")), "\n")
	for _, line := range lines {
		if strings.ContainsAny(line, "0123456789") && !strings.Contains(line, "WARNING") {
			return line
		}
	}
	return lines[0]
}

func (p *place) register(toolset string) {
	p.Helper()
	args := []string{"agent", "add", p.agent.id}
	if toolset != "" {
		args = append(args, "--tools", toolset)
	}
	if out, err := p.command(time.Minute, filepath.Join(bin, "servicectl"), args...); err != nil {
		p.Fatalf("servicectl %v: %v\n%s", args, err, out)
	}
}

// list checks the agent's list of servers.
func (p *place) list() {
	p.Helper()
	out := p.must(time.Minute, "mcp", "list")
	if !strings.Contains(out, "service") || !strings.Contains(out, p.agent.listed) {
		p.Errorf("mcp list does not print %q:\n%s", p.agent.listed, out)
	}
}

// loop runs the agent until the model reports that it is done, and returns the tool results that the model received.
func (p *place) loop() []model.Answer {
	p.Helper()
	out := p.must(3*time.Minute, p.agent.run...)
	answers, finished := p.model.Answers()
	if !finished || len(answers) != len(script) || !strings.Contains(out, model.Finished) {
		p.Fatalf("got %d tool results, finished %v, want the whole script:\n%s\nthe model saw:\n%s", len(answers), finished,
			out, p.model.Seen())
	}
	for i, a := range answers {
		if !strings.Contains(a.Text, expected[i]) {
			p.Errorf("unexpected result of %s: %.500s", script[i].Tool, a.Text)
		}
	}
	if !strings.Contains(answers[0].Text, filepath.Join(p.home, "state")) {
		p.Errorf("the shim did not use the state directory of the test: %.500s", answers[0].Text)
	}
	if !p.agent.keepsBack {
		p.offered()
	}
	return answers
}

// offered checks that every tool of tools/list reached the model.
func (p *place) offered() {
	p.Helper()
	out, err := p.command(time.Minute, filepath.Join(bin, "servicectl"), "tool", "list", "--json")
	var list struct {
		Tools []struct {
			Name         string
			NeedsAccount bool
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		p.Fatalf("servicectl tool list: %v\n%s", err, out)
	}
	given := p.model.Offered()
	for _, tool := range list.Tools {
		if !tool.NeedsAccount && tool.Name != "completeAuthLink" && tool.Name != "whoAmI" &&
			!slices.ContainsFunc(given, func(name string) bool { return strings.HasSuffix(name, tool.Name) }) {
			p.Errorf("%s was not offered to the model", tool.Name)
		}
	}
}
