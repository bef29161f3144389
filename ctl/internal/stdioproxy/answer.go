package stdioproxy

import (
	"strconv"

	"github.com/service-dev/service/internal/mcpline"
	"github.com/service-dev/service/internal/problem"
)

// restarted is the response to calls that were in flight when the daemon exited.
var restarted = &problem.Error{
	Code: "daemon_restarted", Retryable: true,
	Message: "the daemon exited before it responded; the call may or may not have had an effect",
	FixHint: "Call the tool again; the connection is restored automatically.",
}

// inputClosed is the response to calls that ended because the client closed stdin.
var inputClosed = &problem.Error{
	Code: "input_closed", Retryable: true,
	Message: "the call was ended, because stdin was closed; it may have taken effect",
	FixHint: "Keep stdin open until the response arrives.",
}

func object(f *problem.Error) string {
	return `{"code":` + quote(f.Code) + `,"message":` + quote(f.Message) +
		`,"retryable":` + strconv.FormatBool(f.Retryable) + `,"fixHint":` + quote(f.FixHint) + `}`
}

// modernKey marks a request of the stateless protocol (MCP 2026-07-28), whose results contain a type.
const modernKey = "io.modelcontextprotocol/protocolVersion"

// pending is a request that has no response yet.
type pending struct {
	rawID  string
	method string
	modern bool
	batch  int    // number of its batch; 0 if it is in no batch
	line   []byte // kept so that it can be repeated with the next daemon; nil if it must not be repeated
	uses   int    // calls in flight with this ID, because a client may reuse one
}

func newPending(m message) pending {
	return pending{uses: 1, rawID: string(m.rawID), method: m.method,
		modern: len(member(m.params, "_meta", modernKey)) > 0}
}

// answer returns a message about f without a newline: a tool result for a tool call, or a JSON-RPC error for other
// requests.
func (p pending) answer(f *problem.Error) string {
	head := `{"jsonrpc":"2.0","id":` + p.rawID
	body := object(f)
	if p.method != "tools/call" {
		return head + `,"error":{"code":-32603,"message":` + quote(f.Message) + `,"data":` + body + "}}"
	}
	kind := ""
	if p.modern {
		kind = `"resultType":"complete",`
	}
	return head + `,"result":{` + kind + `"content":[{"type":"text","text":` + quote(body) + `}],"structuredContent":` +
		body + `,"isError":true}}`
}

// Reasons why a client's message is not forwarded.
const (
	tooLong    = "the message is longer than 4 MB"
	unreadable = "the message is not JSON-RPC 2.0, or nested too deeply"
	badID      = "message id must be a string or an integer within 2^53"
)

// invalidRequest is JSON-RPC's code for an invalid request.
const invalidRequest = "-32600"

// rejection returns the line that reports a rejected message to the client under the message's ID. Without a usable ID
// it is a notification, because several clients end the session on a response whose ID is null.
func rejection(id []byte, why string) string {
	if id == nil {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"service-mcp","data":` +
			quote(why) + "}}\n"
	}
	return rejected(id, why) + "\n"
}

// rejected returns the error response to a rejected request.
func rejected(id []byte, why string) string {
	if id == nil {
		id = []byte("null")
	}
	return `{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":` + invalidRequest + `,"message":` + quote(why) + "}}"
}

// echoed returns the ID if it can be repeated in a response, or nil otherwise.
func echoed(id []byte) []byte {
	if mcpline.Usable(id) {
		return id
	}
	return nil
}
