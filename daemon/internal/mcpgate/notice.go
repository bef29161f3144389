package mcpgate

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/tools"
)

// Notices provides texts for the user, which are added to the responses to tool calls.
type Notices interface {
	// Take claims the notice for one response. ok is false if there is none. The caller must call done exactly once;
	// written reports whether the response was written to the client.
	Take(who caller.Caller) (text string, done func(written bool), ok bool)
}

// toolCall is the method whose responses may contain a notice.
const toolCall = "tools/call"

// noticeDone is the done function of a notice, or nil if there is no notice.
type noticeDone func(written bool)

func (t noticeDone) settle(written bool) {
	if t != nil {
		t(written)
	}
}

// withNotices makes the stream add notices to its responses.
func (w *stream) withNotices(n Notices, who caller.Caller) { w.notices, w.who = n, who }

// attachNotice adds a pending notice to the response to a successful tool call.
func (w *stream) attachNotice(c *call, response *jsonrpc.Response) noticeDone {
	if w.notices == nil || c == nil || !c.tool || response.Error != nil {
		return nil
	}
	text, done, ok := w.notices.Take(w.who)
	if !ok {
		return nil
	}
	with, ok := addNotice(response.Result, text)
	if !ok {
		done(false)
		return nil
	}
	response.Result = with
	return done
}

// addNotice adds a notice to a result, both as its last text block and as a field of its structured content, because
// some clients show their models only one of the two. ok is false for an error, and for a result without content, such
// as a question to the user.
func addNotice(result json.RawMessage, text string) (with json.RawMessage, ok bool) {
	var fields map[string]json.RawMessage
	var content []json.RawMessage
	if json.Unmarshal(result, &fields) != nil || string(fields["isError"]) == "true" ||
		json.Unmarshal(fields["content"], &content) != nil || content == nil {
		return nil, false
	}
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		return nil, false
	}
	if fields["content"], err = json.Marshal(append(content, block)); err != nil {
		return nil, false
	}
	if structured, present := fields["structuredContent"]; present {
		if fields["structuredContent"], ok = withField(structured, tools.NoticeField, text); !ok {
			return nil, false
		}
	}
	with, err = json.Marshal(fields)
	return with, err == nil
}

// withField appends a field to a JSON object and keeps the order of the other fields.
func withField(object json.RawMessage, name, value string) (with json.RawMessage, ok bool) {
	field, err := json.Marshal(map[string]string{name: value})
	object = bytes.TrimSpace(object)
	if err != nil || len(object) < 2 || object[0] != '{' {
		return nil, false
	}
	rest := bytes.TrimSpace(object[1 : len(object)-1])
	if len(rest) == 0 {
		return field, true
	}
	return slices.Concat([]byte("{"), rest, []byte(","), field[1:]), true
}
