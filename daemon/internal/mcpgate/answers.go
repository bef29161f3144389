package mcpgate

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// answer sends a response. It sends none if the call was cancelled, because MCP forbids that. The call counts as
// running until the response can be queued.
func (w *stream) answer(response *jsonrpc.Response) error {
	response.Error = clientError(response.Error)
	response.Result = tidyInputRequired(response.Result)
	w.mu.Lock()
	c := w.calls[response.ID]
	w.mu.Unlock()
	done := w.attachNotice(c, response)
	data, err := encode(response)
	if err == nil && !w.flow.reserve(len(data), c.patience()) {
		done.settle(false)
		done = nil
		data, err = jsonrpc.EncodeMessage(droppedAnswer(response.ID))
		w.flow.add(0, len(data), 0)
	}
	w.mu.Lock()
	c = w.calls[response.ID]
	if c != nil && c.tool {
		w.tools--
	}
	delete(w.calls, response.ID) // delete it before the client can read the response and reuse the ID
	w.mu.Unlock()
	switch {
	case c != nil && c.tool:
		w.limiter.releaseCalls(1)
	case c != nil:
		defer w.flow.add(0, 0, -1)
	}
	if err != nil {
		done.settle(false)
		return err
	}
	if c == nil {
		err = w.put(data, len(data))
		done.settle(err == nil)
		return err
	}
	err = w.answerCall(c, data, done)
	w.mu.Lock()
	w.pending--
	w.closeIfDrained()
	w.mu.Unlock()
	return err
}

// answerCall writes data, a response that is already counted. In a batch, it keeps data until the batch is complete.
func (w *stream) answerCall(c *call, data []byte, done noticeDone) error {
	w.mu.Lock()
	held := len(data)
	silent := c.cancelled
	if silent {
		done.settle(false)
		done = nil
		w.flow.add(0, -held, 0)
		held = 0
	}
	if group := c.batch; group != nil {
		group.open--
		if !silent {
			group.answers = append(group.answers, data)
			group.held += held
			w.flow.hold(held)
		}
		if done == nil {
			done = group.noticeDone
		}
		group.noticeDone = done
		silent = group.open > 0 || len(group.answers) == 0
		if !silent {
			data, _ = json.Marshal(group.answers) // these are valid JSON, so this cannot fail
			held, group.held = group.held, 0
			w.flow.hold(-held)
		} else if w.left {
			w.drop(group)
		}
	}
	w.mu.Unlock()
	if silent {
		return nil
	}
	err := w.put(data, held)
	done.settle(err == nil)
	return err
}

// drop stops counting the responses of a batch that will never be written. The caller holds mu.
func (w *stream) drop(group *batch) {
	w.flow.hold(-group.held)
	w.flow.add(0, -group.held, 0)
	group.held, group.answers = 0, nil
}

// refuse responds to a message that was not accepted. Without a usable ID it sends a notification, because some clients
// end the session on a response with the ID null. In a batch, which those clients never send, the ID is null as
// JSON-RPC requires.
func (w *stream) refuse(group *batch, id json.RawMessage, code int, message string) {
	if group == nil && id == nil {
		w.send(nil, errorNotification(message))
		return
	}
	w.send(group, errorResponse(id, code, message))
}

func errorResponse(id json.RawMessage, code int, message string) []byte {
	answer := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{Version: "2.0", ID: id, Error: &jsonrpc.Error{Code: int64(code), Message: message}}
	data, _ := json.Marshal(answer) // the ID is a JSON scalar, so this cannot fail
	return data
}

// errorNotification encodes an error that cannot be attributed to a call.
func errorNotification(message string) []byte {
	data, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": "notifications/message",
		"params": map[string]any{"level": "error", "logger": "service-mcp", "data": message},
	})
	return data
}

// send writes a response created by this package. In a batch, it keeps the response until the batch is complete.
func (w *stream) send(group *batch, data []byte) {
	if group == nil {
		_ = w.write(data) // the next read reports a broken stream
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	group.answers = append(group.answers, data)
	group.held += len(data)
	w.flow.hold(len(data))
	w.flow.add(0, len(data), 0)
}

// answerBatchWithoutCalls answers a batch in which no call is pending.
func (w *stream) answerBatchWithoutCalls(group *batch) {
	if group == nil {
		return
	}
	w.mu.Lock()
	open, answers, held := group.open, group.answers, group.held
	if open == 0 {
		w.flow.hold(-held)
		group.held = 0
	}
	w.mu.Unlock()
	if open > 0 || len(answers) == 0 {
		return
	}
	data, _ := json.Marshal(answers) // the answers are valid JSON, so this cannot fail
	_ = w.put(data, held)            // the next read reports a broken stream
}

func (w *stream) write(data []byte) error {
	w.flow.add(0, len(data), 0)
	return w.put(data, len(data))
}

// put writes data. held is the number of bytes of data that already count as unread.
func (w *stream) put(data []byte, held int) error {
	w.flow.add(1, 0, 0)
	defer w.flow.add(-1, -held, 0)
	w.writeMu.Lock()
	defer w.writeMu.Unlock()
	_, err := w.out.Write(append(data, '\n'))
	return err
}

// inputRequired is the resultType of a result that asks the client for input.
const inputRequired = "input_required"

// tidyInputRequired removes the empty content from an input_required result, which must not contain content.
func tidyInputRequired(result json.RawMessage) json.RawMessage {
	var head struct {
		ResultType string `json:"resultType"`
	}
	if !bytes.Contains(result, []byte(inputRequired)) || json.Unmarshal(result, &head) != nil ||
		head.ResultType != inputRequired {
		return result
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(result, &fields) != nil {
		return result
	}
	delete(fields, "content")
	tidy, err := json.Marshal(fields)
	if err != nil {
		return result
	}
	return tidy
}
