package mcpgate

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/service-dev/service/daemon/internal/caller"
)

// Notices have a word for the person now and then, which an answer to a tool call carries beside its content.
type Notices interface {
	// Take claims the notice for one answer; ok is false when there is none. done must be called once, with whether the
	// answer was written to the client.
	Take(who caller.Caller) (text string, done func(written bool), ok bool)
}

// toolCall is the method whose answers may carry a notice.
const toolCall = "tools/call"

// told is the done of a notice; nil for none.
type told func(written bool)

func (t told) settle(written bool) {
	if t != nil {
		t(written)
	}
}

// withNotices lets the answers of a wire carry notices.
func (w *wire) withNotices(n Notices, who caller.Caller) { w.notices, w.who = n, who }

// announce puts a notice that is due into the answer to a tool call, as its last block of text; never into the
// structured content, which a schema describes.
func (w *wire) announce(c *call, response *jsonrpc.Response) told {
	if w.notices == nil || c == nil || !c.tool || response.Error != nil {
		return nil
	}
	text, done, ok := w.notices.Take(w.who)
	if !ok {
		return nil
	}
	with, ok := withText(response.Result, text)
	if !ok {
		done(false)
		return nil
	}
	response.Result = with
	return done
}

// withText adds a block of text to a result; ok is false for one without content, such as a question to the person.
func withText(result json.RawMessage, text string) (with json.RawMessage, ok bool) {
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
