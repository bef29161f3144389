package mcpgate

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The SDK's message functions allocate 32 KB for each value that they decode, and check and compact a result that the
// SDK has just encoded. This file therefore handles the common forms of requests and responses itself, with the same
// result.

// decode decodes one message. If the message is invalid, problem is the reason.
func decode(part json.RawMessage) (m jsonrpc.Message, problem string) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(part, &members) // the SDK rejects messages that are not objects
	if id, present := members["id"]; present && !validID(id) {
		return nil, "message id must be a string or an integer within 2^53"
	}
	if req := plainRequest(members); req != nil {
		return req, ""
	}
	m, err := jsonrpc.DecodeMessage(part)
	if r, ok := m.(*jsonrpc.Response); err != nil || ok && r.Result == nil && r.Error == nil {
		return nil, "message must be a JSON-RPC 2.0 request, notification or response"
	}
	return m, ""
}

// manyBrackets is safely below the nesting depth that the SDK accepts in a message.
const manyBrackets = 900

// plainRequest returns the request or notification with these members. It returns nil if the SDK must decode the
// message: a response, text with escapes or non-ASCII characters, and any message that the SDK may reject. The ID must
// be valid.
func plainRequest(members map[string]json.RawMessage) *jsonrpc.Request {
	method, ok := plainText(members["method"])
	if !ok || string(members["jsonrpc"]) != `"2.0"` || members["error"] != nil {
		return nil
	}
	req := &jsonrpc.Request{Method: method, Params: members["params"]}
	if bytes.Count(req.Params, []byte("{"))+bytes.Count(req.Params, []byte("[")) > manyBrackets {
		return nil
	}
	raw, present := members["id"]
	if !present {
		return req
	}
	var id any
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		id = float64(n) // exact, because the ID is valid
	} else if id, ok = plainText(raw); !ok {
		return nil
	}
	var err error
	if req.ID, err = jsonrpc.MakeID(id); err != nil {
		return nil
	}
	return req
}

// plainText returns the value of a JSON string of ASCII characters without escapes. ok is false for other values.
func plainText(raw json.RawMessage) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	raw = raw[1 : len(raw)-1]
	for _, c := range raw {
		if c == '\\' || c >= 0x80 {
			return "", false
		}
	}
	return string(raw), true
}

// encode encodes a response.
func encode(response *jsonrpc.Response) ([]byte, error) {
	id, ok := response.ID.Raw().(int64)
	if !ok || response.Error != nil || len(response.Result) == 0 {
		return jsonrpc.EncodeMessage(response)
	}
	const head, middle = `{"jsonrpc":"2.0","id":`, `,"result":`
	data := make([]byte, 0, len(head)+20+len(middle)+len(response.Result)+2) // and digits, brace, newline
	data = strconv.AppendInt(append(data, head...), id, 10)
	data = append(append(data, middle...), response.Result...)
	return append(data, '}'), nil
}
