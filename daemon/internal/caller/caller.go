// Package caller holds the shell on whose behalf a call is made: its environment, as far as it matters, and its
// working directory. Settings of a shell apply to its own calls only; nothing here is ever stored. The package knows
// neither sockets nor the daemon's own environment.
package caller

import (
	"context"

	"github.com/service-dev/service/proto/clientio"
)

// Caller is immutable after it was read from a request or a stream preface.
type Caller struct {
	// Env holds the variables of proto/rendezvous's allow-list and nothing else.
	Env map[string]string
	// Cwd is absolute, or empty when the caller did not say.
	Cwd string
	// Client names the program that calls, e.g. "service-mcp" or, once known from MCP, "claude-code".
	Client string
	// Version is that program's build version.
	Version string
	// Toolset is which tools its list holds (proto/rendezvous); empty is all of them.
	Toolset string
	// IO is the caller's own process, which opens pages and reads and writes files for this caller's calls; nil when it
	// does neither.
	IO IO
}

// IO carries out one operation in the caller's process.
type IO interface {
	Do(ctx context.Context, r clientio.Request) (clientio.Response, error)
}

type key struct{}

// With returns a context that carries c.
func With(ctx context.Context, c Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the context's caller; the zero Caller when there is none.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(key{}).(Caller)
	return c
}
