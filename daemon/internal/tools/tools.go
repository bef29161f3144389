// Package tools is the catalogue of tools for agents. Each tool has a file with its arguments, its answer and its
// handler. Schemas are inferred from the arguments and the answer, and descriptions are in descriptions.md. MCP and the
// control socket call the package, which is independent of both and of how a backend is reached.
package tools

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/service-dev/service/internal/rendezvous"
)

// Tool is an entry of the catalogue. The list of tools is the same for every caller and every state of the link.
type Tool struct {
	Name        string
	Title       string
	Description string
	// InputSchema and OutputSchema are JSON Schema 2020-12. One output schema covers every status and every error.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Annotations  Annotations
	// NeedsAccount is set if the tool cannot be used without a link. Tools for sessions answer auth_required only for
	// browser sessions.
	NeedsAccount bool
	// Waits is set if a call may wait a long time for the user or an app. Such a call ends when the agent disconnects,
	// and is not repeated on the agent's behalf.
	Waits bool
	// AboutAccount is set for a tool that works without a link but concerns only the account.
	AboutAccount bool `json:",omitempty"`
	// Pictures is set if the answer may contain pictures.
	Pictures bool `json:",omitempty"`
}

// In reports whether a toolset lists the tool. Tools that are not listed can still be called.
func (t Tool) In(set string) bool {
	return set != ToolsetLocal || !t.NeedsAccount && !t.AboutAccount
}

// Toolsets from which clients choose the list of tools.
const (
	ToolsetAll   = rendezvous.ToolsetAll
	ToolsetLocal = rendezvous.ToolsetLocal // without the tools of the account
)

// Annotations contains MCP's hints about the effects of a call. Unattended clients refuse destructive calls and calls
// that change data in an open world.
type Annotations struct {
	ReadOnly    bool
	Destructive bool
	Idempotent  bool
	// OpenWorld is set for data that others write or see: the settings of a published app, and data from its users. The
	// account's own sessions, link and projects are a closed world, regardless of where their backend runs.
	OpenWorld bool
}

// IO contains the functions that the caller's connection offers during a call.
type IO struct {
	// Progress reports the progress of the call. It is nil if the caller did not request progress.
	Progress func(done, total float64, message string)
	// Elicit asks the user to open a URL and reports whether they agreed. It returns ErrDeferred if the user's answer
	// will come with a repetition of the call. It is nil if the client cannot ask.
	Elicit func(ctx context.Context, message, url string) (accepted bool, err error)
}

// ErrDeferred ends a call that its caller will repeat with the user's answer. The call's Result is not shown.
var ErrDeferred = errors.New("the user's answer comes with the repeated call")

// Result is a tool's answer.
type Result struct {
	IsError bool
	// Structured is a JSON object as described by the tool's output schema.
	Structured json.RawMessage
	// Text contains the same information for clients that read only text.
	Text string
	// Images are the answer's pictures, in the order in which Structured describes them.
	Images []Image
	// Outcome is "ok", "auth_required" or the code of the error, for telemetry and the caller's transport.
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
