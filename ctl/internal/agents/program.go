package agents

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/service-dev/service/internal/programpath"
	"github.com/service-dev/service/internal/rendezvous"
)

// Program is the command that an agent starts: an absolute path and its arguments.
type Program struct {
	Command string
	Args    []string
}

// Shim returns the command that starts the service-mcp at path for a toolset.
func Shim(path, toolset string) Program {
	if toolset == rendezvous.ToolsetAll {
		return Program{Command: path}
	}
	return Program{Command: path, Args: []string{"--tools", toolset}}
}

// Toolset returns the toolset in p's arguments; ok is false if there are other arguments.
func (p Program) Toolset() (name string, ok bool) {
	switch {
	case len(p.Args) == 0:
		return rendezvous.ToolsetAll, true
	case len(p.Args) == 2 && p.Args[0] == "--tools":
		return p.Args[1], true
	}
	return "", false
}

// isSame reports whether two commands start the same program.
func isSame(a, b string) bool { return a == b || programpath.Same(a, b) }

func (p Program) equal(other Program) bool {
	return p.Command == other.Command && slices.Equal(p.Args, other.Args)
}

func (p Program) String() string { return strings.Join(append([]string{p.Command}, p.Args...), " ") }

// list encodes strings as an array, in the syntax common to JSON and TOML.
func list(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = string(quote(w))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// listOf decodes an array of strings. It returns nil for anything else.
func listOf(data []byte) []string {
	var words []string
	_ = json.Unmarshal(data, &words)
	return words
}

// forwarded lists the environment variables that service-mcp, and the browser that it opens, need: the state
// directory, the backend, the user's settings, and the desktop. Codex forwards only a few variables and those listed
// in the entry.
var forwarded = []string{
	"SERVICE_CONFIG_DIR", "SERVICE_BACKEND_URL", "SERVICE_NO_AUTO_OPEN", "SERVICE_TELEMETRY", "DO_NOT_TRACK", "CI",
	"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_CURRENT_DESKTOP", "DBUS_SESSION_BUS_ADDRESS",
	"BROWSER",
	"WSL_DISTRO_NAME", "WSL_INTEROP",
}
