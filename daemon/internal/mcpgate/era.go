package mcpgate

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// era is the connection that one SDK session sees.
type era struct {
	wire   *wire
	in     chan jsonrpc.Message
	opened bool // used by wire.read's goroutine alone

	end    sync.Once
	closed chan struct{} // the stream has ended: the session reads EOF
	leave  sync.Once
	gone   chan struct{} // the session is done with this connection
}

// Connect makes era its own transport.
func (e *era) Connect(context.Context) (mcp.Connection, error) { return e, nil }

// Read returns the next message of the client.
func (e *era) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-e.in:
		return m, nil
	case <-e.closed:
	case <-e.gone:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return nil, io.EOF
}

// Write sends an answer, a notification or a request to the client.
func (e *era) Write(_ context.Context, m jsonrpc.Message) error {
	if response, ok := m.(*jsonrpc.Response); ok {
		return e.wire.answer(response)
	}
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() && !e.wire.ask(req.ID) {
		return io.ErrClosedPipe
	}
	return e.wire.write(data)
}

// Close is called by the SDK when its session ends.
func (e *era) Close() error {
	e.leave.Do(func() { close(e.gone) })
	return nil
}

// SessionID is empty: a stream has no session id of its own.
func (e *era) SessionID() string { return "" }

// hangUp lets the session read EOF.
func (e *era) hangUp() { e.end.Do(func() { close(e.closed) }) }

// answer sends a response, unless its call was cancelled: MCP wants silence then. A call counts as running until there is
// room for its answer.
func (w *wire) answer(response *jsonrpc.Response) error {
	response.Error = clientError(response.Error)
	response.Result = tidyInputRequired(response.Result)
	w.mu.Lock()
	c := w.calls[response.ID]
	w.mu.Unlock()
	done := w.announce(c, response)
	data, err := jsonrpc.EncodeMessage(response)
	if err == nil && !w.flow.takes(len(data), c.patience()) {
		done.settle(false)
		done = nil
		data, err = jsonrpc.EncodeMessage(lost(response.ID))
		w.flow.add(0, len(data), 0)
	}
	w.mu.Lock()
	c = w.calls[response.ID]
	if c != nil && c.tool {
		w.tools--
	}
	delete(w.calls, response.ID) // before the client can read the answer and use the id again
	w.mu.Unlock()
	switch {
	case c != nil && c.tool:
		w.room.give(1)
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
	w.settle()
	w.mu.Unlock()
	return err
}

// answerCall writes an answer that is counted already, or keeps it for the answers to a batch.
func (w *wire) answerCall(c *call, data []byte, done told) error {
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
			done = group.told
		}
		group.told = done
		silent = group.open > 0 || len(group.answers) == 0
		if !silent {
			data, _ = json.Marshal(group.answers) // raw messages of our own
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

// drop takes the answers to a batch that nobody will write off the count. mu is held.
func (w *wire) drop(group *batch) {
	w.flow.hold(-group.held)
	w.flow.add(0, -group.held, 0)
	group.held, group.answers = 0, nil
}

// refuse tells the client that a message was not taken, under the id that it wrote. Without an id that can be repeated it
// is a notification: an answer whose id is null ends the session of several clients. In the answers to a batch, which
// those clients never send, it is null as JSON-RPC has it.
func (w *wire) refuse(group *batch, id json.RawMessage, code int, message string) {
	if group == nil && id == nil {
		w.send(nil, rejection(message))
		return
	}
	w.send(group, refusal(id, code, message))
}

func refusal(id json.RawMessage, code int, message string) []byte {
	answer := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{Version: "2.0", ID: id, Error: &jsonrpc.Error{Code: int64(code), Message: message}}
	data, _ := json.Marshal(answer) // the id is a JSON scalar
	return data
}

// rejection is a refusal that belongs to no call.
func rejection(message string) []byte {
	data, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "method": "notifications/message",
		"params": map[string]any{"level": "error", "logger": "service-mcp", "data": message},
	})
	return data
}

// send writes an answer of the wire's own, or keeps it for the answers to a batch.
func (w *wire) send(group *batch, data []byte) {
	if group == nil {
		_ = w.write(data) // a broken stream shows at the next read
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	group.answers = append(group.answers, data)
	group.held += len(data)
	w.flow.hold(len(data))
	w.flow.add(0, len(data), 0)
}

// answerRefused answers a batch that has no call to wait for.
func (w *wire) answerRefused(group *batch) {
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
	data, _ := json.Marshal(answers) // raw messages of our own
	_ = w.put(data, held)            // a broken stream shows at the next read
}

func (w *wire) write(data []byte) error {
	w.flow.add(0, len(data), 0)
	return w.put(data, len(data))
}

// put writes data, for which held bytes are counted already.
func (w *wire) put(data []byte, held int) error {
	w.flow.add(1, 0, 0)
	defer w.flow.add(-1, -held, 0)
	w.writeMu.Lock()
	defer w.writeMu.Unlock()
	_, err := w.out.Write(append(data, '\n'))
	return err
}

// tidyInputRequired takes the empty content out of an input_required result, where it does not belong.
func tidyInputRequired(result json.RawMessage) json.RawMessage {
	var head struct {
		ResultType string `json:"resultType"`
	}
	if len(result) == 0 || json.Unmarshal(result, &head) != nil || head.ResultType != "input_required" {
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
