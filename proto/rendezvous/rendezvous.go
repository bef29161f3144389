// Package rendezvous is where the daemon and its clients meet: the state directory, the socket paths, the caller's
// variables, the protocol range and the line that opens an MCP stream. Both sides compute the same answers from it.
// It is imported by the shim, so it must stay free of packages that cost start-up time (encoding/json, gRPC, net).
package rendezvous

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// The range of client-daemon protocols this build speaks, apart from its build version. A daemon refuses a client
// whose range does not meet its own and says which side to upgrade.
const (
	ProtocolMin = 1
	ProtocolMax = 1
)

// MaxSocketPath is the longest socket path in bytes that every platform takes (macOS allows 104 with the final zero).
const MaxSocketPath = 100

// Names inside the state directory.
const (
	RunDir       = "run"
	ControlName  = "control.sock"
	MCPName      = "mcp.sock"
	DaemonLock   = "daemon.lock"
	StartLock    = "start.lock"
	DaemonRecord = "daemon.json"
	LogDir       = "log"
	LogName      = "serviced.log"
)

// Variables are those of the caller's shell that a call follows. SERVICE_CONFIG_DIR is not among them: it selects the
// daemon. Nor is any that says how a page is opened: the caller's own process opens it.
var Variables = []string{"SERVICE_BACKEND_URL", "SERVICE_NO_AUTO_OPEN", "SERVICE_TELEMETRY", "DO_NOT_TRACK", "CI"}

// MaxVariable is the longest value in bytes that is passed on; a longer one is left out.
const MaxVariable = 4096

// Environ reads the caller's variables of the allow-list; unset ones are absent, empty ones are kept.
func Environ() map[string]string {
	env := make(map[string]string, 8)
	for _, name := range Variables {
		if value, ok := os.LookupEnv(name); ok && len(value) <= MaxVariable {
			env[name] = value
		}
	}
	return env
}

// dirVariable names the state directory.
const dirVariable = "SERVICE_CONFIG_DIR"

// Dir returns the absolute state directory: SERVICE_CONFIG_DIR, else ~/.service. It need not exist. A tilde at its
// beginning is the home directory: programs that no shell starts hand it on as it is. A relative path is refused, for it
// would name another directory for each client's working directory.
func Dir() (string, error) {
	dir := os.Getenv(dirVariable)
	rest, tilde := strings.CutPrefix(dir, "~")
	switch {
	case dir == "":
		home, err := Home()
		return filepath.Join(home, ".service"), err
	case tilde && (rest == "" || os.IsPathSeparator(rest[0])):
		home, err := Home()
		if err != nil {
			return "", fmt.Errorf("resolve %s=%s: %w", dirVariable, dir, err)
		}
		return filepath.Join(home, rest), nil
	case !filepath.IsAbs(dir):
		return "", fmt.Errorf("%s=%s is not an absolute path: it would depend on where each program was started", dirVariable, dir)
	}
	return filepath.Clean(dir), nil
}

// Home returns the person's home directory. A relative one is refused, as Dir does.
func Home() (string, error) {
	home, err := os.UserHomeDir()
	switch {
	case err != nil || home == "":
		return "", errors.New("finding the home directory: set HOME or " + dirVariable)
	case !filepath.IsAbs(home):
		return "", fmt.Errorf("HOME=%s is not an absolute path: set it to one, or set %s", home, dirVariable)
	}
	return filepath.Clean(home), nil
}

// Paths are the places of one daemon.
type Paths struct {
	Dir     string // the state directory
	Run     string // locks and daemon.json
	Sockets string // Run, or a short directory elsewhere when Run is too long
	Control string
	MCP     string
}

// PathsOf computes the paths for an absolute state directory. It touches nothing on disk. A path that would pass
// MaxSocketPath moves under XDG_RUNTIME_DIR, else under a per-user temporary directory, with a name that is a hash of
// dir; an error says the path, its length and the limit when even that is too long.
func PathsOf(dir string) (Paths, error) {
	p := Paths{Dir: dir, Run: filepath.Join(dir, RunDir)}
	p.Sockets = p.Run
	if len(filepath.Join(p.Run, ControlName)) > MaxSocketPath {
		p.Sockets = filepath.Join(shortRoot(), "service-"+hash(dir))
	}
	p.Control = filepath.Join(p.Sockets, ControlName)
	p.MCP = filepath.Join(p.Sockets, MCPName)
	if n := len(p.Control); n > MaxSocketPath {
		return Paths{}, fmt.Errorf("socket path %s has %d bytes, the limit is %d: set SERVICE_CONFIG_DIR to a shorter directory", p.Control, n, MaxSocketPath)
	}
	return p, nil
}

// Adapters is the parent of the directories that hold adapters' sockets and temporary files: one for each start. It is
// short enough for the names that go-plugin makes in them.
func (p Paths) Adapters() string {
	if dir := filepath.Join(p.Sockets, "a"); len(dir) <= MaxSocketPath-30 {
		return dir
	}
	return filepath.Join(shortRoot(), "service-"+hash(p.Dir), "a")
}

// shortRoot must give the same answer to every program of one user, so it does not read TMPDIR.
func shortRoot() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && len(dir) <= 40 {
		return dir
	}
	if runtime.GOOS == "windows" {
		return os.TempDir()
	}
	return "/tmp/service-" + strconv.Itoa(os.Getuid())
}

// hash is 64-bit FNV-1a, in hexadecimal: a short stable name, not a secret.
func hash(s string) string {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return strconv.FormatUint(h, 16)
}

// ReadyFD is the descriptor on which a daemon that a client started writes one line when it is ready: "ready\n", or
// "error: <what happened>\n" before it exits. The daemon is told by the environment variable ReadyVar=3.
const (
	ReadyFD  = 3
	ReadyVar = "SERVICE_READY_FD"
)

// Toolsets that a client may choose when it opens an MCP stream: which tools the list holds. A daemon refuses a name
// that it does not know.
const (
	ToolsetAll   = ""
	ToolsetLocal = "local" // without the tools of the account
)

// Toolset reports whether name is a toolset.
func Toolset(name string) bool { return name == ToolsetAll || name == ToolsetLocal }

// MaxPreface bounds the line in bytes that opens a stream on mcp.sock, its preface: one JSON object, e.g.
//
//	{"mcp":1,"protocolMin":1,"protocolMax":1,"version":"1.2.3","client":"service-mcp","cwd":"/home/a","env":{"CI":"1"},"clientIO":true,"toolset":"local"}
//
// clientIO is true for a client that takes the private frame of ClientIOFrame.
//
// The daemon answers with one line before any MCP message: {"ok":true,"protocol":1,"version":"1.2.3"} or
// {"ok":false,"code":"protocol_mismatch","message":"...","fixHint":"..."} and closes. "repeatable" in the first names the
// tools that only read: a client may send their calls again, once, when the daemon dies before it answers. MCP lines
// follow in both directions; the client need not wait for the answer before it sends.
const MaxPreface = 64 << 10

// A daemon that wants a client to open a page, or to read or write a file, sends it one private frame: a line that is no
// MCP message and holds a token of letters and digits between these two. The client starts `servicectl client-io` with
// the token on stdin, which connects to mcp.sock and carries out what the daemon asks (proto/clientio). The client passes
// no line that begins like this on to the agent.
const (
	ClientIOFrame    = `{"service":{"clientIO":"`
	ClientIOFrameEnd = `"}}`
)
