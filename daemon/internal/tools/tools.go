// Package tools is the agent's catalogue: what each tool is called, says of itself, takes, does and answers. One file
// holds one tool, with its text, its schemas and its handler. The package knows neither MCP nor the control socket;
// both call it alike, and it must not know how a backend is reached.
package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/service-dev/service/proto/rendezvous"
)

// Tool is one entry of the catalogue. The list is the same for every caller and every state of the link.
type Tool struct {
	Name        string
	Title       string
	Description string
	// InputSchema and OutputSchema are JSON Schema 2020-12. One output schema covers every status and every error.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  Annotations
	// NeedsAccount is true when nothing of the tool works without a link. Tools on sessions answer auth_required only when
	// they are asked about a browser session.
	NeedsAccount bool
	// Waits is true when a call may wait long for a person or an app. Nobody repeats such a call on the agent's behalf, and
	// nobody waits for it once the agent has gone.
	Waits bool
	// AboutAccount is true for a tool that works without a link but is about the account and nothing else.
	AboutAccount bool `json:",omitempty"`
	// Pictures is true for a tool whose answer may hold some.
	Pictures bool `json:",omitempty"`
}

// In reports whether a toolset lists the tool. A tool that it leaves out still answers.
func (t Tool) In(set string) bool {
	return set != ToolsetLocal || !t.NeedsAccount && !t.AboutAccount
}

// Toolsets, as clients choose them for the list of tools.
const (
	ToolsetAll   = rendezvous.ToolsetAll
	ToolsetLocal = rendezvous.ToolsetLocal // without the tools of the account
)

// Annotations are hints to a client about what a call may do; MCP defines the words. Clients without a person at them
// refuse calls that are destructive, and calls that change something in an open world.
type Annotations struct {
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	// OpenWorld is for what other people write or see: a shipped app's settings and what its users sent. The account's
	// own sessions, link and projects are a closed world, wherever their backend runs.
	OpenWorld bool
}

// IO is what the caller's connection can do while a call runs.
type IO struct {
	// Progress tells how far the call is; nil when the caller did not ask for it.
	Progress func(done, total float64, message string)
	// Elicit asks the person to open a URL and tells whether they agreed; nil when the client cannot. It returns
	// ErrDeferred when the answer comes with a repetition of the call.
	Elicit func(ctx context.Context, message, url string) (accepted bool, err error)
}

// ErrDeferred ends a call whose caller will make it again with the person's answer; its Result is not shown.
var ErrDeferred = errors.New("the person's answer comes with the repeated call")

// Result is a tool's answer.
type Result struct {
	IsError bool
	// Structured is one JSON object that the tool's output schema describes.
	Structured json.RawMessage
	// Text is the same for clients that read text only.
	Text string
	// Images are pictures that belong to the answer, in order; Structured tells of them. Few answers have any.
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
