package pump

import "strconv"

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
}

func newPending(m message) pending {
	return pending{rawID: string(m.rawID), method: m.method, modern: len(member(m.params, "_meta", modernKey)) > 0}
}

// answer is the line that tells the client about f: a tool's result for a tool call, else a JSON-RPC error.
func (p pending) answer(f *Failure) string {
	head := `{"jsonrpc":"2.0","id":` + p.rawID
	body := f.object()
	if p.method != "tools/call" {
		return head + `,"error":{"code":-32603,"message":` + quote(f.Message) + `,"data":` + body + "}}\n"
	}
	kind := ""
	if p.modern {
		kind = `"resultType":"complete",`
	}
	return head + `,"result":{` + kind + `"content":[{"type":"text","text":` + quote(body) + `}],"structuredContent":` + body + `,"isError":true}}` + "\n"
}

// tooLong answers a line whose id is not known.
const tooLong = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is longer than 4 MB"}}` + "\n"

// badID answers a request whose id cannot be repeated. The daemon would say the same, but nobody would wait for it.
const badID = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"message id is neither a string nor an integer within 2^53"}}` + "\n"
