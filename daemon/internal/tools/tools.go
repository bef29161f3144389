// Package tools is the catalogue of tools for agents. Each tool has a file with its arguments, its answer and its
// handler; its schemas are inferred from the first two, and its description is in descriptions.md. The package knows
// neither MCP nor the control socket, which both call it, nor how a backend is reached.
package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/service-dev/service/proto/rendezvous"
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
	// NeedsAccount is true if the tool does not work at all without a link. Tools on sessions answer auth_required only
	// for browser sessions.
	NeedsAccount bool
	// Waits is true if a call may wait long for a person or an app. Such a call is not repeated on the agent's behalf and
	// ends when the agent is gone.
	Waits bool
	// AboutAccount is true for a tool that works without a link but is about the account and nothing else.
	AboutAccount bool `json:",omitempty"`
	// Pictures is true if the answer may contain pictures.
	Pictures bool `json:",omitempty"`
}

// In reports whether a toolset lists the tool. Tools outside it still work.
func (t Tool) In(set string) bool {
	return set != ToolsetLocal || !t.NeedsAccount && !t.AboutAccount
}

// Toolsets, as clients choose them for the list of tools.
const (
	ToolsetAll   = rendezvous.ToolsetAll
	ToolsetLocal = rendezvous.ToolsetLocal // without the tools of the account
)

// Annotations are MCP's hints about what a call may do. Unattended clients refuse destructive calls and calls that
// change something in an open world.
type Annotations struct {
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	// OpenWorld is for what other people write or see: a shipped app's settings and what its users sent. The account's
	// own sessions, link and projects are a closed world, wherever their backend runs.
	OpenWorld bool
}

// IO is what the caller's connection can do during a call.
type IO struct {
	// Progress reports how far the call is; nil if the caller did not ask for it.
	Progress func(done, total float64, message string)
	// Elicit asks the person to open a URL and returns whether they agreed; nil if the client cannot. It returns
	// ErrDeferred if the answer comes with a repetition of the call.
	Elicit func(ctx context.Context, message, url string) (accepted bool, err error)
}

// ErrDeferred ends a call that its caller will repeat with the person's answer; its Result is not shown.
var ErrDeferred = errors.New("the person's answer comes with the repeated call")

// Result is a tool's answer.
type Result struct {
	IsError bool
	// Structured is one JSON object that the tool's output schema describes.
	Structured json.RawMessage
	// Text is the same for clients that only read text.
	Text string
	// Images are the answer's pictures, in the order in which Structured describes them.
	Images []Image
	// Outcome is "ok", "auth_required" or the code of the error: for telemetry and for the caller's transport.
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
