// Package caller describes the shell on whose behalf a call is made: its relevant environment variables and its working
// directory. A shell's settings apply to its own calls only and are never stored. Of the daemon's own environment, the
// package uses only the user's home directory.
package caller

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/rendezvous"
)

// Caller is immutable once it has been read from a request or a handshake.
type Caller struct {
	// Env contains only variables on the allow-list of internal/rendezvous.
	Env map[string]string
	// Cwd is absolute, or empty if unknown.
	Cwd string
	// Client is the name of the calling program, e.g. "service-mcp" or, once known from MCP,
	// "claude-code".
	Client string
	// Version is that program's build version.
	Version string
	// Agent identifies the agent's process; empty for a call from a terminal.
	Agent string
	// Toolset selects the tools offered to the caller (internal/rendezvous); empty means all.
	Toolset string
	// IO is the caller's own process, which opens pages and reads and writes files on behalf of this caller. It is nil
	// if the process supports none of this.
	IO IO
}

// IO executes one operation in the caller's process.
type IO interface {
	Do(ctx context.Context, r clientio.Request) (clientio.Response, error)
}

// Workspace returns the key under which the caller's sessions are remembered: the working directory. Agents started in
// a shared directory are unrelated, so each of them has its own workspace.
func (c Caller) Workspace() string {
	if c.Agent != "" && (c.Cwd == "" || IsShared(c.Cwd)) {
		return c.Cwd + "#" + c.Agent
	}
	return c.Cwd
}

// IsShared reports whether a directory usually contains several apps: the home directory, a directory that contains it,
// or the root of a file system. Programs that are not started from a shell run there. The daemon does not regard such a
// directory as an app's directory.
func IsShared(dir string) bool {
	home, err := rendezvous.Home()
	switch {
	case !filepath.IsAbs(dir):
		return false
	case dir == filepath.Dir(dir):
		return true
	case err != nil:
		return false
	}
	for _, home := range []string{home, resolved(home)} {
		if home == dir || strings.HasPrefix(home, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// resolved returns path with symbolic links resolved, as in the working directories of callers.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

type key struct{}

// With returns a context that carries c.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the context's caller, or the zero Caller.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(key{}).(Caller)
	return c
}

// New returns a caller from a client's description of itself, restricted to the allow-list and bounds of
// internal/rendezvous.
func New(env map[string]string, cwd, client, version string) Caller {
	c := Caller{Env: map[string]string{}, Client: Printable(client), Version: Printable(version)}
	for name, value := range env {
		if slices.Contains(rendezvous.Variables, name) && isBounded(value) {
			c.Env[name] = value
		}
	}
	if filepath.IsAbs(cwd) && isBounded(cwd) {
		c.Cwd = filepath.Clean(cwd)
	}
	return c
}

func isBounded(value string) bool {
	return len(value) <= rendezvous.MaxVariable && !strings.ContainsRune(value, 0)
}

// maxName is the maximum length of a program's name and version, in bytes; the backend rejects longer ones.
const maxName = 100

// Printable returns a program's name or version in a form that is safe to display, cut to 100 bytes.
func Printable(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s[:min(len(s), 4*maxName)]))
	for len(s) > maxName {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
