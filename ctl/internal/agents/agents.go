package agents

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/service-dev/service/internal/rendezvous"
)

// entryName is the name under which agents list service-mcp.
const entryName = "service"

// format edits one kind of configuration file. All its methods are pure functions.
type format interface {
	registered(data []byte) (now Program, ok bool, err error)
	// add is idempotent: if the program is already registered, it returns the file unchanged.
	add(data []byte, p Program) ([]byte, error)
	remove(data []byte) ([]byte, error)
	others(data []byte) (string, error)
	snippet(p Program) string
}

// Agent is a coding agent with the location of its configuration.
type Agent struct {
	// ID identifies the agent on the command line, e.g. claude-code.
	ID string
	// Name is the product name.
	Name string
	// File is this user's configuration file, which may not exist.
	File string
	// signs are paths and programs; the agent counts as installed if any of them exists.
	signs  []string
	format format
}

// Place contains the facts that the agents' paths are derived from.
type Place struct {
	OS   string // a value of runtime.GOOS
	Home string
	// Getenv reads the environment: APPDATA, XDG_CONFIG_HOME, CLAUDE_CONFIG_DIR, CODEX_HOME, COPILOT_HOME.
	Getenv func(string) string
}

// Here returns the Place of this machine and user.
func Here() (Place, error) {
	home, err := rendezvous.Home()
	if err != nil {
		return Place{}, err
	}
	return Place{OS: runtime.GOOS, Home: home, Getenv: os.Getenv}, nil
}

// All lists the supported agents, in display order.
func All(p Place) []Agent {
	app := p.appData()
	claude := filepath.Join(p.Home, ".claude.json")
	claudeDir := filepath.Join(p.Home, ".claude")
	if dir := p.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		claude, claudeDir = filepath.Join(dir, ".claude.json"), dir
	}
	codex := p.Getenv("CODEX_HOME")
	if codex == "" {
		codex = filepath.Join(p.Home, ".codex")
	}
	code, desktop := filepath.Join(app, "Code"), filepath.Join(app, "Claude")
	cursor, gemini, qwen := filepath.Join(p.Home, ".cursor"), filepath.Join(p.Home, ".gemini"),
		filepath.Join(p.Home, ".qwen")
	copilot := p.Getenv("COPILOT_HOME")
	if copilot == "" {
		copilot = filepath.Join(p.Home, ".copilot")
	}
	openCode := filepath.Join(p.xdgConfig(), "opencode")
	stdio, local := []pair{{"type", `"stdio"`}}, []pair{{"type", `"local"`}}
	return []Agent{
		{"claude-code", "Claude Code", claude, []string{claude, claudeDir, "claude"},
			jsonFile{key: "mcpServers", before: stdio}},
		{"codex", "Codex", filepath.Join(codex, "config.toml"), []string{codex, "codex"}, tomlFile{}},
		{"vscode", "VS Code", filepath.Join(code, "User", "mcp.json"), []string{code, "code"},
			jsonFile{key: "servers", before: stdio}},
		{"cursor", "Cursor", filepath.Join(cursor, "mcp.json"), []string{cursor, "cursor"}, jsonFile{key: "mcpServers"}},
		{"gemini", "Gemini CLI", filepath.Join(gemini, "settings.json"), []string{gemini, "gemini"},
			jsonFile{key: "mcpServers"}},
		{"copilot", "Copilot CLI", filepath.Join(copilot, "mcp-config.json"), []string{copilot, "copilot"},
			jsonFile{key: "mcpServers", before: local, after: []pair{{"tools", `["*"]`}}}},
		{"opencode", "opencode", firstThere(filepath.Join(openCode, "opencode.json"),
			filepath.Join(openCode, "opencode.jsonc")), []string{openCode, "opencode"},
			jsonFile{key: "mcp", before: local, after: []pair{{"enabled", "true"}}, oneList: true}},
		{"qwen", "Qwen Code", filepath.Join(qwen, "settings.json"), []string{qwen, "qwen"}, jsonFile{key: "mcpServers"}},
		{"claude-desktop", "Claude Desktop", filepath.Join(desktop, "claude_desktop_config.json"), []string{desktop},
			jsonFile{key: "mcpServers"}},
	}
}

// appData returns the directory where desktop programs store their settings.
func (p Place) appData() string {
	switch p.OS {
	case "darwin":
		return filepath.Join(p.Home, "Library", "Application Support")
	case "windows":
		if dir := p.Getenv("APPDATA"); dir != "" {
			return dir
		}
		return filepath.Join(p.Home, "AppData", "Roaming")
	}
	return p.xdgConfig()
}

// xdgConfig returns the XDG configuration directory, which some programs use on every operating system.
func (p Place) xdgConfig() string {
	if dir := p.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(p.Home, ".config")
}

// firstThere returns the first path whose file exists, or the first path if none does.
func firstThere(files ...string) string {
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return files[0]
}

// Found reports whether the agent is installed, judged by its directory, configuration file or program.
func (a Agent) Found() bool {
	for _, sign := range a.signs {
		if !filepath.IsAbs(sign) {
			if _, err := exec.LookPath(sign); err == nil {
				return true
			}
		} else if _, err := os.Stat(sign); err == nil {
			return true
		}
	}
	return false
}

// States of an agent.
const (
	StateNotFound      = "not_found"
	StateNotRegistered = "not_registered"
	StateRegistered    = "registered"
	StateOther         = "other_path" // registered with the path of another program
	StateUnreadable    = "unreadable" // its file cannot be read or parsed
)

// State reports whether the service-mcp at command is registered, under any path that leads to it and for any toolset.
// now is the registered program. State returns an error if and only if the state is StateUnreadable.
func (a Agent) State(command string) (state string, now Program, err error) {
	if !a.Found() {
		return StateNotFound, Program{}, nil
	}
	_, _, data, err := open(a.File)
	if err != nil {
		return StateUnreadable, Program{}, fmt.Errorf("read %s: %w", a.File, err)
	}
	now, ok, err := a.format.registered(data)
	_, ours := now.Toolset()
	switch {
	case err != nil:
		return StateUnreadable, Program{}, fmt.Errorf("read %s: %w", a.File, err)
	case !ok:
		return StateNotRegistered, Program{}, nil
	case !isSame(now.Command, command) || !ours:
		return StateOther, now, nil
	}
	return StateRegistered, now, nil
}

// Registered reports whether the agent's file has an entry for the service, even if the agent is not installed.
func (a Agent) Registered() bool {
	_, _, data, err := open(a.File)
	if err != nil {
		return false
	}
	_, ok, err := a.format.registered(data)
	return ok && err == nil
}

// Snippet returns the text to add by hand to a file that cannot be edited automatically.
func (a Agent) Snippet(p Program) string { return a.format.snippet(p) }

// Change describes an edit of a file, either written or only planned.
type Change struct {
	Before, After []byte
}

// Changed reports whether the edit changes the file.
func (c Change) Changed() bool { return !bytes.Equal(c.Before, c.After) }

// Add registers p, whose command must be an absolute path. If dry is set, it writes nothing. If the edit would change
// any other key, Add returns an error and writes nothing.
func (a Agent) Add(p Program, dry bool) (Change, error) {
	return a.change(dry, func(data []byte) ([]byte, error) {
		after, err := a.format.add(data, p)
		if err != nil {
			return nil, err
		}
		if now, _, err := a.format.registered(after); err != nil || !now.equal(p) {
			return nil, errors.New("the file cannot be changed safely")
		}
		return after, nil
	})
}

// Remove deletes the entry, whichever program is registered. If dry is set, it writes nothing.
func (a Agent) Remove(dry bool) (Change, error) {
	return a.change(dry, func(data []byte) ([]byte, error) {
		after, err := a.format.remove(data)
		if err != nil {
			return nil, err
		}
		if _, ok, err := a.format.registered(after); err != nil || ok {
			return nil, errors.New("the file cannot be changed safely")
		}
		return after, nil
	})
}

// change reads the file, edits it, checks that the rest is unchanged, and writes it.
func (a Agent) change(dry bool, edit func([]byte) ([]byte, error)) (Change, error) {
	var c Change
	err := rewrite(a.File, dry, func(data []byte) ([]byte, error) {
		after, err := edit(data)
		if err != nil {
			return nil, err
		}
		was, err := a.format.others(data)
		if err != nil {
			return nil, err
		}
		if is, err := a.format.others(after); err != nil || is != was {
			return nil, errors.New("the file cannot be changed safely")
		}
		c = Change{Before: data, After: after}
		return after, nil
	})
	if err != nil {
		return Change{}, fmt.Errorf("change %s: %w", a.File, err)
	}
	return c, nil
}
