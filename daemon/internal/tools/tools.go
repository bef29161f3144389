// Package tools is the catalogue of tools for agents. Each tool has a file with its arguments, its answer and its
// handler. Its schemas are inferred from the arguments and the answer; its description is in descriptions.md. The
// package is independent of MCP and the control socket, which both call it, and of how a backend is reached.
package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/service-dev/service/internal/rendezvous"
)

// Tool is an entry of the catalogue. The list is the same for every caller and every state of the link.
type Tool struct {
	Name        string
	Title       string
	Description string
	// InputSchema and OutputSchema are JSON Schema 2020-12. One output schema covers every status and every error.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  Annotations
	// NeedsAccount is true if the tool does not work at all without a link. Tools for sessions answer auth_required only
	// for browser sessions.
	NeedsAccount bool
	// Waits is true if a call may wait a long time for the user or an app. Such a call is not repeated on the agent's
	// behalf, and it ends when the agent disconnects.
	Waits bool
	// AboutAccount is true for a tool that works without a link but concerns only the account.
	AboutAccount bool `json:",omitempty"`
	// Pictures is true if the answer may contain pictures.
	Pictures bool `json:",omitempty"`
}

// In reports whether a toolset lists the tool. Tools outside it still work when called.
func (t Tool) In(set string) bool {
	return set != ToolsetLocal || !t.NeedsAccount && !t.AboutAccount
}

// The toolsets from which clients choose the list of tools.
const (
	ToolsetAll   = rendezvous.ToolsetAll
	ToolsetLocal = rendezvous.ToolsetLocal // without the tools of the account
)

// Annotations are MCP's hints about the effects of a call. Unattended clients refuse destructive calls and calls that
// change something in an open world.
type Annotations struct {
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	// OpenWorld is true for data that others write or see: a shipped app's settings and what its users sent. The
	// account's own sessions, link and projects are a closed world, wherever their backend runs.
	OpenWorld bool
}

// IO contains the functions that the caller's connection offers during a call.
type IO struct {
	// Progress reports the progress of the call; nil if the caller did not request it.
	Progress func(done, total float64, message string)
	// Elicit asks the user to open a URL and returns whether they agreed; nil if the client cannot ask. It returns
	// ErrDeferred if the answer comes with a repetition of the call.
	Elicit func(ctx context.Context, message, url string) (accepted bool, err error)
}

// ErrDeferred ends a call that its caller will repeat with the user's answer. Its Result is not shown.
var ErrDeferred = errors.New("the user's answer comes with the repeated call")

// Result is a tool's answer.
type Result struct {
	IsError bool
	// Structured is a JSON object as described by the tool's output schema.
	Structured json.RawMessage
	// Text contains the same information for clients that read only text.
	Text string
	// Images are the answer's pictures, in the order that Structured describes them.
	Images []Image
	// Outcome is "ok", "auth_required" or the code of the error. It is for telemetry and for the caller's transport.
	Outcome string
}

// Image is a picture in an answer.
type Image struct {
	MIME string
	Data []byte
}

// Outcomes that are not error codes.
const (
	OutcomeOK       = "ok"
	OutcomeDeferred = "input_required"
)
