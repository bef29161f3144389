package mcpgate

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/service-dev/service/daemon/internal/caller"
)

// Notices are texts for the person that are added to the response to a tool call.
type Notices interface {
	// Take claims the notice for one response; ok is false if there is none. Call done once and report whether the
	// response was written to the client.
	Take(who caller.Caller) (text string, done func(written bool), ok bool)
}

// toolCall is the method whose responses may carry a notice.
const toolCall = "tools/call"

// noticeDone is the done function of a notice; nil for none.
type noticeDone func(written bool)

func (t noticeDone) settle(written bool) {
	if t != nil {
		t(written)
	}
}

// withNotices lets the responses on a stream carry notices.
func (w *stream) withNotices(n Notices, who caller.Caller) { w.notices, w.who = n, who }

// attachNotice appends a pending notice to the response to a tool call, as its last text block. It does not change the
// structured content, because a schema describes that.
func (w *stream) attachNotice(c *call, response *jsonrpc.Response) noticeDone {
	if w.notices == nil || c == nil || !c.tool || response.Error != nil {
		return nil
	}
	text, done, ok := w.notices.Take(w.who)
	if !ok {
		return nil
	}
	with, ok := appendText(response.Result, text)
	if !ok {
		done(false)
		return nil
	}
	response.Result = with
	return done
}

// appendText adds a text block to a result. ok is false for a result without content, such as a question to the
// person.
func appendText(result json.RawMessage, text string) (with json.RawMessage, ok bool) {
	var fields map[string]json.RawMessage
	var content []json.RawMessage
	if json.Unmarshal(result, &fields) != nil || json.Unmarshal(fields["content"], &content) != nil || content == nil {
		return nil, false
	}
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		return nil, false
	}
	if fields["content"], err = json.Marshal(append(content, block)); err != nil {
		return nil, false
	}
	with, err = json.Marshal(fields)
	return with, err == nil
}
