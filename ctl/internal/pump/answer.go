package pump

import (
	"strconv"

	"github.com/service-dev/service/proto/mcpline"
)

// Failure is why requests cannot be answered by the daemon, in the words every tool error uses.
type Failure struct {
	Code, Message, FixHint string
	Retryable              bool
}

func (f *Failure) Error() string { return f.Message }

// restarted answers calls that were in flight when the daemon went away.
var restarted = &Failure{
	Code: "daemon_restarted", Retryable: true,
	Message: "the daemon went away before it answered; whether the call had an effect is not known",
	FixHint: "call the tool again; the connection is restored by itself",
}

// inputEnded answers calls that the daemon ended because the client closed its end.
var inputEnded = &Failure{
	Code: "input_closed", Retryable: true,
	Message: "stdin was closed before the call was done, and the call was ended; whether it had an effect is not known",
	FixHint: "keep stdin open until the answer has come",
}

func (f *Failure) object() string {
	return `{"code":` + quote(f.Code) + `,"message":` + quote(f.Message) +
		`,"retryable":` + strconv.FormatBool(f.Retryable) + `,"fixHint":` + quote(f.FixHint) + `}`
}

// modernKey marks a request of the stateless era (MCP 2026-07-28), whose results carry a type.
const modernKey = "io.modelcontextprotocol/protocolVersion"

// pending is a request that was sent and not answered.
type pending struct {
	rawID  string
	method string
	modern bool
	batch  int    // which batch it came in; 0 for none
	line   []byte // to be sent to the next daemon; nil when only this one may have it
	asked  int    // how often the id is in use: a client may repeat one that is not answered
}

func newPending(m message) pending {
	return pending{asked: 1, rawID: string(m.rawID), method: m.method, modern: len(member(m.params, "_meta", modernKey)) > 0}
}

// answer tells the client about f, in a message without the line's end: a tool's result for a tool call, else a
// JSON-RPC error.
func (p pending) answer(f *Failure) string {
	head := `{"jsonrpc":"2.0","id":` + p.rawID
	body := f.object()
	if p.method != "tools/call" {
		return head + `,"error":{"code":-32603,"message":` + quote(f.Message) + `,"data":` + body + "}}"
	}
	kind := ""
	if p.modern {
		kind = `"resultType":"complete",`
	}
	return head + `,"result":{` + kind + `"content":[{"type":"text","text":` + quote(body) + `}],"structuredContent":` + body + `,"isError":true}}`
}

// Why a message of the client is not passed on.
const (
	tooLong    = "the message is longer than 4 MB"
	unreadable = "the message is not JSON-RPC 2.0, or nested too deeply"
	badID      = "message id is neither a string nor an integer within 2^53"
)

// invalidRequest is JSON-RPC's code for a message that is no request.
const invalidRequest = "-32600"

// rejection tells the client that a message was not taken, under the id that it wrote. Without an id that can be
// repeated it is a notification: an answer whose id is null ends the session of several clients.
func rejection(id []byte, why string) string {
	if id == nil {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"service-mcp","data":` + quote(why) + "}}\n"
	}
	return rejected(id, why) + "\n"
}

// rejected is the answer to a request that was not taken.
func rejected(id []byte, why string) string {
	if id == nil {
		id = []byte("null")
	}
	return `{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":` + invalidRequest + `,"message":` + quote(why) + "}}"
}

// echoed returns the id when an answer can carry it, whatever its value.
func echoed(id []byte) []byte {
	if mcpline.Usable(id) {
		return id
	}
	return nil
}
