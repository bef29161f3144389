// Package rendezvous defines how clients find and call the daemon: the state directory, the socket paths, the caller's
// variables, the protocol range and the handshake of an MCP stream. service-mcp imports it, so it must not import
// packages that slow start-up (encoding/json, gRPC, net).
package rendezvous

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ranges of protocols that this build supports on mcp.sock and control.sock. They are independent of each other and of
// the build's version. The daemon writes its own ranges to run/daemon.json. If a program's range does not overlap the
// daemon's, the daemon refuses it, or it does not connect, and the error reports which side to upgrade.
const (
	MCPProtocolMin = 1
	MCPProtocolMax = 1
)

// ControlProtocolMin and ControlProtocolMax are the range of control.sock (proto/control). If a daemon's record does
// not contain the range, the daemon is older than this range.
const (
	ControlProtocolMin = 1
	ControlProtocolMax = 1
)

// MaxSocketPath is the maximum length of a socket path that every platform supports, in bytes. macOS allows 104,
// including the final zero.
const MaxSocketPath = 100

// Names in the state directory.
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

// Variables lists the caller's environment variables that apply to a call. It does not include SERVICE_CONFIG_DIR,
// which selects the daemon, or variables about opening pages, which the caller's own process opens.
var Variables = []string{
	"SERVICE_BACKEND_URL", "SERVICE_NO_AUTO_OPEN", "SERVICE_TELEMETRY", "DO_NOT_TRACK", "CI",
	// The daemon does not use the following variables. If the caller sets them and a call fails without them, the error
	// lists them.
	"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// MaxVariable is the maximum length of a value that is passed to the daemon, in bytes. Longer values are omitted.
const MaxVariable = 4096

// Environ returns the caller's values of Variables, without proxy passwords. Unset variables are omitted, and empty
// ones are included.
func Environ() map[string]string {
	env := make(map[string]string, len(Variables))
	for _, name := range Variables {
		if value, ok := os.LookupEnv(name); ok && len(value) <= MaxVariable {
			env[name] = withoutPassword(name, value)
		}
	}
	return env
}

// proxySchemes lists the schemes of proxy addresses. Any other text before "://" may be part of a password.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}

// withoutPassword replaces the user name and the password in a proxy address, because the daemon does not need them.
func withoutPassword(name, value string) string {
	at := strings.LastIndexByte(value, '@')
	if at < 0 || !strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
		return value
	}
	scheme := ""
	before, _, ok := strings.Cut(value[:at], "://")
	if ok && slices.Contains(proxySchemes, strings.ToLower(before)) {
		scheme = before + "://"
	}
	return scheme + "USER:PASSWORD" + value[at:]
}

// dirVariable is the environment variable that sets the state directory.
const dirVariable = "SERVICE_CONFIG_DIR"

// Dir returns the absolute path of the state directory, which is SERVICE_CONFIG_DIR if set, and ~/.service otherwise.
// The directory may not exist. Dir expands a leading tilde, because programs that are not started by a shell receive it
// unexpanded. It returns an error for a relative path, which would be a different directory for each client.
func Dir() (string, error) {
	dir := os.Getenv(dirVariable)
	rest, tilde := strings.CutPrefix(dir, "~")
	switch {
	case dir == "":
		return DefaultDir()
	case tilde && (rest == "" || os.IsPathSeparator(rest[0])):
		home, err := Home()
		if err != nil {
			return "", fmt.Errorf("resolve %s=%s: %w", dirVariable, dir, err)
		}
		return filepath.Join(home, rest), nil
	case !filepath.IsAbs(dir):
		return "", fmt.Errorf("%s=%s must be an absolute path; a relative path depends on where each program was started",
			dirVariable, dir)
	}
	return filepath.Clean(dir), nil
}

// DefaultDir returns ~/.service, the state directory if SERVICE_CONFIG_DIR is not set.
func DefaultDir() (string, error) {
	home, err := Home()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".service"), nil
}

// Home returns the user's home directory. Like Dir, it returns an error for a relative path.
func Home() (string, error) {
	home, err := os.UserHomeDir()
	switch {
	case err != nil || home == "":
		return "", errors.New("no home directory: set HOME or " + dirVariable)
	case !filepath.IsAbs(home):
		return "", fmt.Errorf("HOME=%s must be an absolute path: correct it, or set %s", home, dirVariable)
	}
	return filepath.Clean(home), nil
}

// AgentID returns an identifier of this process that no other process on this machine has used.
func AgentID() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// Paths contains the file-system locations of one daemon.
type Paths struct {
	Dir     string // the state directory
	Run     string // locks and daemon.json
	Sockets string // Run, or a short directory elsewhere if Run is too long
	Control string
	MCP     string
}

// PathsOf computes the paths for an absolute state directory without accessing the disk. Sockets whose path would
// exceed MaxSocketPath are placed in XDG_RUNTIME_DIR or a per-user temporary directory, under a hash of dir. If that
// path is also too long, the error contains the path, its length and the limit.
func PathsOf(dir string) (Paths, error) {
	p := Paths{Dir: dir, Run: filepath.Join(dir, RunDir)}
	p.Sockets = p.Run
	if len(filepath.Join(p.Run, ControlName)) > MaxSocketPath {
		p.Sockets = filepath.Join(shortRoot(), "service-"+hash(dir))
	}
	p.Control = filepath.Join(p.Sockets, ControlName)
	p.MCP = filepath.Join(p.Sockets, MCPName)
	if n := len(p.Control); n > MaxSocketPath {
		return Paths{}, fmt.Errorf("socket path %s is %d bytes long, over the limit of %d: set %s to a shorter directory",
			p.Control, n, MaxSocketPath, dirVariable)
	}
	return p, nil
}

// Adapters returns the parent of the directories for adapters' sockets and temporary files. Each start has one
// directory. The path is short enough for the names that go-plugin creates there.
func (p Paths) Adapters() string {
	if dir := filepath.Join(p.Sockets, "a"); len(dir) <= MaxSocketPath-30 {
		return dir
	}
	return filepath.Join(shortRoot(), "service-"+hash(p.Dir), "a")
}

// shortRoot returns the parent of short socket directories. It ignores TMPDIR, because every program of a user must get
// the same directory.
func shortRoot() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && len(dir) <= 40 {
		return dir
	}
	if runtime.GOOS == "windows" {
		return os.TempDir()
	}
	return "/tmp/service-" + strconv.Itoa(os.Getuid())
}

// hash returns the 64-bit FNV-1a hash of s in hexadecimal. It is a short stable name, not a secret.
func hash(s string) string {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return strconv.FormatUint(h, 16)
}

// ReadyFD is the descriptor to which a daemon started by a client writes one line: "ready\n", or "error: <reason>\n"
// before it exits. The client sets the environment variable ReadyVar to the number of the descriptor.
const (
	ReadyFD  = 3
	ReadyVar = "SERVICE_READY_FD"
)

// Toolsets that a client may choose in its handshake. They determine which tools are listed. The daemon refuses an
// unknown name.
const (
	ToolsetAll   = ""
	ToolsetLocal = "local" // without the tools that need an account
)

// Toolset reports whether name is a known toolset.
func Toolset(name string) bool { return name == ToolsetAll || name == ToolsetLocal }

// MaxHandshake is the maximum length in bytes of the line that opens a stream on mcp.sock. The line is one JSON object,
// e.g.
//
//	{"mcp":1,"protocolMin":1,"protocolMax":1,"version":"1.2.3","client":"service-mcp","cwd":"/home/a",
//	 "env":{"CI":"1"},"clientIO":true,"toolset":"local","agent":"4711-dk3f"}
//
// on one line. clientIO declares that the client understands ClientIOFrame.
//
// The daemon sends one line before any MCP message: {"ok":true,"protocol":1,"version":"1.2.3"}, or
// {"ok":false,"code":"protocol_mismatch","message":"...","fixHint":"..."}, after which it closes the stream. On
// success, "repeatable" lists the read-only tools, whose calls a client may repeat once if the daemon exits before it
// responds. MCP lines follow in both directions. The client may send before it has received the daemon's line.
const MaxHandshake = 64 << 10

// The daemon sends a client one private frame if it needs the client to open a page, or to read or write a file. The
// frame is a line that is not an MCP message, with a token of letters and digits between these two constants. The
// client starts `servicectl client-io` with the token on stdin. That process connects to mcp.sock and executes the
// daemon's requests (internal/clientio). The client does not forward lines with this prefix to the agent.
const (
	ClientIOFrame    = `{"service":{"clientIO":"`
	ClientIOFrameEnd = `"}}`
)
