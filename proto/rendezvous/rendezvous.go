// Package rendezvous defines how clients find and talk to the daemon: the state directory, the socket paths, the
// caller's variables, the protocol range and the handshake of an MCP stream. Both sides use it and therefore agree.
// service-mcp imports it, so it must not import packages that slow start-up (encoding/json, gRPC, net).
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

// The range of client-daemon protocols that this build supports, independent of its version. A daemon refuses a
// client whose range does not overlap its own and says which side to upgrade.
const (
	ProtocolMin = 1
	ProtocolMax = 1
)

// MaxSocketPath is the longest socket path in bytes that every platform supports (macOS allows 104 including the
// final zero).
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

// Variables are the environment variables of the caller that apply to a call. SERVICE_CONFIG_DIR is not included, as it
// selects the daemon; nor are variables about opening pages, as the caller's own process opens them.
var Variables = []string{"SERVICE_BACKEND_URL", "SERVICE_NO_AUTO_OPEN", "SERVICE_TELEMETRY", "DO_NOT_TRACK", "CI"}

// MaxVariable is the longest value in bytes that is passed on; longer ones are left out.
const MaxVariable = 4096

// Environ returns the caller's values of Variables; unset ones are absent, empty ones are kept.
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

// Dir returns the absolute state directory: SERVICE_CONFIG_DIR, else ~/.service. It need not exist. A leading tilde
// is expanded, since programs not started by a shell pass it on unexpanded. A relative path is refused, because it
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
		return "", fmt.Errorf("%s=%s is not an absolute path, so it would depend on where each program was started",
			dirVariable, dir)
	}
	return filepath.Clean(dir), nil
}

// Home returns the person's home directory. Like Dir it refuses a relative path.
func Home() (string, error) {
	home, err := os.UserHomeDir()
	switch {
	case err != nil || home == "":
		return "", errors.New("no home directory: set HOME or " + dirVariable)
	case !filepath.IsAbs(home):
		return "", fmt.Errorf("HOME=%s is not an absolute path: set it to one, or set %s", home, dirVariable)
	}
	return filepath.Clean(home), nil
}

// Paths are the file-system locations of one daemon.
type Paths struct {
	Dir     string // the state directory
	Run     string // locks and daemon.json
	Sockets string // Run, or a short directory elsewhere if Run is too long
	Control string
	MCP     string
}

// PathsOf computes the paths of an absolute state directory without touching the disk. Sockets whose path would
// exceed MaxSocketPath move to XDG_RUNTIME_DIR or a per-user temporary directory, under a hash of dir. The error
// names the path, its length and the limit if even that is too long.
func PathsOf(dir string) (Paths, error) {
	p := Paths{Dir: dir, Run: filepath.Join(dir, RunDir)}
	p.Sockets = p.Run
	if len(filepath.Join(p.Run, ControlName)) > MaxSocketPath {
		p.Sockets = filepath.Join(shortRoot(), "service-"+hash(dir))
	}
	p.Control = filepath.Join(p.Sockets, ControlName)
	p.MCP = filepath.Join(p.Sockets, MCPName)
	if n := len(p.Control); n > MaxSocketPath {
		return Paths{}, fmt.Errorf("socket path %s has %d bytes, the limit is %d: set %s to a shorter directory",
			p.Control, n, MaxSocketPath, dirVariable)
	}
	return p, nil
}

// Adapters returns the parent of the directories for adapters' sockets and temporary files, one per start. It is
// short enough for the names that go-plugin creates in them.
func (p Paths) Adapters() string {
	if dir := filepath.Join(p.Sockets, "a"); len(dir) <= MaxSocketPath-30 {
		return dir
	}
	return filepath.Join(shortRoot(), "service-"+hash(p.Dir), "a")
}

// shortRoot must return the same directory to every program of one user, so it does not read TMPDIR.
func shortRoot() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && len(dir) <= 40 {
		return dir
	}
	if runtime.GOOS == "windows" {
		return os.TempDir()
	}
	return "/tmp/service-" + strconv.Itoa(os.Getuid())
}

// hash returns the hexadecimal 64-bit FNV-1a of s: a short stable name, not a secret.
func hash(s string) string {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return strconv.FormatUint(h, 16)
}

// ReadyFD is the descriptor on which a daemon started by a client writes one line: "ready\n", or "error: <reason>\n"
// before it exits. The client announces it by the environment variable ReadyVar=3.
const (
	ReadyFD  = 3
	ReadyVar = "SERVICE_READY_FD"
)

// Toolsets that a client may choose in its handshake: which tools are listed. A daemon refuses an unknown name.
const (
	ToolsetAll   = ""
	ToolsetLocal = "local" // without the tools that need an account
)

// Toolset reports whether name is a toolset.
func Toolset(name string) bool { return name == ToolsetAll || name == ToolsetLocal }

// MaxHandshake is the maximum length in bytes of the line that opens a stream on mcp.sock: one JSON object, e.g.
//
//	{"mcp":1,"protocolMin":1,"protocolMax":1,"version":"1.2.3","client":"service-mcp","cwd":"/home/a",
//	 "env":{"CI":"1"},"clientIO":true,"toolset":"local"}
//
// on one line. clientIO declares that the client understands ClientIOFrame.
//
// The daemon answers with one line before any MCP message: {"ok":true,"protocol":1,"version":"1.2.3"}, or
// {"ok":false,"code":"protocol_mismatch","message":"...","fixHint":"..."} and closes the stream. On success,
// "repeatable" lists the tools that only read: a client may repeat their calls once if the daemon dies before it
// answers. MCP lines follow in both directions; the client may send before the answer arrives.
const MaxHandshake = 64 << 10

// A daemon that needs a client to open a page, or to read or write a file, sends it one private frame: a line that is
// not an MCP message and has a token of letters and digits between these two. The client starts `servicectl
// client-io` with the token on stdin, which connects to mcp.sock and executes the daemon's requests (proto/clientio).
// The client does not pass lines that begin like this on to the agent.
const (
	ClientIOFrame    = `{"service":{"clientIO":"`
	ClientIOFrameEnd = `"}}`
)
