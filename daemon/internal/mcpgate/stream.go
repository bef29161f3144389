package mcpgate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/mcpline"
)

// maxCalls is the maximum number of concurrent tool calls of one connection, and also the maximum number of its other
// unanswered requests.
const maxCalls = 128

// stream frames the messages of one connection. It passes them to one of two SDK sessions: one for clients that send
// initialize, one for the stateless protocol. The SDK cannot do this: it keeps one protocol state per session and ends
// the session at the first invalid line. A client may probe with server/discover and then send initialize, and a stray
// line must not end a session.
type stream struct {
	lines     *lineReader
	protocols [2]*protocolConn

	writeMu sync.Mutex
	out     io.Writer

	mu       sync.Mutex
	calls    map[jsonrpc.ID]*call // by ID, until their response is about to be written
	tools    int                  // number of calls that call a tool
	asked    map[jsonrpc.ID]bool  // requests to the client without a response
	pending  int                  // calls whose response has not been written
	draining bool
	left     bool          // calls no longer get responses
	drained  chan struct{} // closed when the stream is draining and no calls are pending

	flow    *flowControl
	cut     func() error    // ends the stream; nil if the caller ends it
	waiting map[string]bool // tools that wait for the user or an app
	limiter *limiter        // nil means no limits
	notices Notices         // nil means no notices
	who     caller.Caller   // the caller for whom notices are claimed

	// The following fields are used only by the goroutine of read.
	declared    *declared // nil means no checks
	initialized bool      // the client has begun a session
}

// call is a request that has been read and has no response yet.
type call struct {
	tool      bool // it calls a tool
	waits     bool // it waits for the user or an app
	cancelled bool
	batch     *batch
}

// patience returns how long the response may wait for the client to read. It is zero in a batch, because a batch's
// responses are written together.
func (c *call) patience() time.Duration {
	if c != nil && c.batch != nil {
		return 0
	}
	return readWait
}

// batch collects the responses to a JSON-RPC batch, which revision 2025-03-26 requires servers to accept.
type batch struct {
	open       int
	answers    []json.RawMessage
	held       int        // bytes of answers that are counted as unread
	noticeDone noticeDone // for the notice attached to one of the answers
}

func newStream(in io.Reader, lines *lineReader, out io.Writer) *stream {
	if lines == nil {
		lines = newLineReader(in, MaxLine)
	}
	w := &stream{lines: lines, out: out, flow: newFlowControl(), calls: map[jsonrpc.ID]*call{},
		asked: map[jsonrpc.ID]bool{}, drained: make(chan struct{})}
	for i := range w.protocols {
		w.protocols[i] = &protocolConn{stream: w, in: make(chan jsonrpc.Message), ended: make(chan struct{}),
			closed: make(chan struct{})}
	}
	return w
}

// read passes every message to its session until the stream ends, and then returns nil. It calls open with a connection
// before the connection's first message.
func (w *stream) read(ctx context.Context, open func(*protocolConn) error) error {
	for {
		w.flow.wait()
		line, err := w.lines.next()
		if errors.Is(err, errLineTooLong) {
			if err := w.unread(ctx, w.lines.head, jsonrpc.CodeInvalidRequest, "message is longer than 4194304 bytes",
				open); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return ended(err)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := w.take(ctx, line, open); err != nil {
			return err
		}
	}
}

// ended returns nil if err indicates the regular end of a stream, and err otherwise.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// take handles a non-empty line.
func (w *stream) take(ctx context.Context, line []byte, open func(*protocolConn) error) error {
	if !json.Valid(line) {
		return w.unread(ctx, mcpline.Of(line), jsonrpc.CodeParseError, "message is not JSON, or nested too deeply", open)
	}
	parts, group := split(line)
	if len(parts) == 0 {
		w.refuse(nil, nil, jsonrpc.CodeInvalidRequest, "batch is empty")
		return nil
	}
	messages := w.admit(parts, group)
	w.answerBatchWithoutCalls(group)
	for _, m := range messages {
		if err := w.deliver(ctx, m, open); err != nil {
			return err
		}
	}
	return nil
}

// unread handles a message of which only the head can be read. If the message is a request, it informs the client; if
// it is a response, it informs the session that sent the request.
func (w *stream) unread(ctx context.Context, h *mcpline.Head, code int, why string,
	open func(*protocolConn) error) error {
	if !h.IsResponse() {
		w.refuse(nil, h.ID(), code, why)
		return nil
	}
	answer, err := jsonrpc.DecodeMessage(errorResponse(h.ID(), code, why))
	if err != nil {
		return nil // no request waits for it
	}
	return w.deliver(ctx, answer, open)
}

// split returns the messages in a line of JSON. group is nil unless the line is a batch.
func split(line []byte) (parts []json.RawMessage, group *batch) {
	if line[0] != '[' {
		return []json.RawMessage{line}, nil
	}
	_ = json.Unmarshal(line, &parts) // cannot fail for an array
	return parts, &batch{}
}

// admit decodes messages, registers their calls and refuses calls above a limit. It registers all calls of a batch
// before it delivers the first, so that the batch is not completed too early.
func (w *stream) admit(parts []json.RawMessage, group *batch) []jsonrpc.Message {
	var messages []jsonrpc.Message
	for _, part := range parts {
		m, problem := decode(part)
		if len(parts) > maxCalls {
			problem = "batch is too long"
		}
		req, isRequest := m.(*jsonrpc.Request)
		if problem == "" && isRequest {
			if req.Method == cancelled && !namesValidRequest(req.Params) {
				continue
			}
			var refuseBusy bool
			if problem, refuseBusy = w.register(req, group); refuseBusy {
				w.refuseBusy(group, req, problem)
				continue
			}
		}
		if problem != "" {
			w.refuse(group, requestID(part), jsonrpc.CodeInvalidRequest, problem)
			continue
		}
		messages = append(messages, m)
	}
	return messages
}

// requestID returns the ID for which the sender of a message expects a response, or nil.
func requestID(part json.RawMessage) json.RawMessage {
	if h := mcpline.Of(part); !h.IsResponse() {
		return h.ID()
	}
	return nil
}

// register registers a call, or its cancellation. If a call is refused, register returns the reason and whether the
// client may try again later.
func (w *stream) register(req *jsonrpc.Request, group *batch) (problem string, refuseBusy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !req.IsCall() {
		if req.Method == cancelled {
			if c := w.calls[cancelledID(req.Params)]; c != nil {
				c.cancelled = true
			}
		}
		return "", false
	}
	if w.calls[req.ID] != nil {
		return "a running call uses this request id", false
	}
	c := &call{tool: req.Method == toolCall, batch: group}
	switch {
	case !c.tool:
		w.flow.add(0, 0, 1)
	case w.tools >= maxCalls:
		return fmt.Sprintf("this connection has reached its limit of %d running calls", maxCalls), true
	case !w.limiter.acquireCall():
		return fmt.Sprintf("all agents together have reached the limit of %d running calls", w.limiter.maxCalls), true
	default:
		w.tools++
		c.waits = w.waiting[toolName(req)]
	}
	w.calls[req.ID] = c
	w.pending++
	if group != nil {
		group.open++
	}
	return "", false
}

// leave releases the calls that will get no response, and the responses and notices of their batches.
func (w *stream) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limiter.releaseCalls(w.tools)
	w.tools, w.left = 0, true
	for _, c := range w.calls {
		if c.batch != nil {
			w.drop(c.batch)
			c.batch.noticeDone.settle(false)
			c.batch.noticeDone = nil
		}
	}
	clear(w.calls)
}

// toolName returns the name of the tool that a request calls, or "".
func toolName(req *jsonrpc.Request) string {
	var name string
	if raw, ok := jsonField(req.Params, "name"); ok && json.Unmarshal(raw, &name) != nil {
		return ""
	}
	return name
}

// ask registers a request to the client. It returns false if the client has closed its end and cannot respond.
func (w *stream) ask(id jsonrpc.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.draining {
		w.asked[id] = true
	}
	return !w.draining
}

func cancelledID(params json.RawMessage) jsonrpc.ID {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return jsonrpc.ID{}
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}

// deliver passes a message to its session. It sends a cancellation to both sessions, because IDs are unique
// on a connection.
func (w *stream) deliver(ctx context.Context, m jsonrpc.Message, open func(*protocolConn) error) error {
	if response, ok := m.(*jsonrpc.Response); ok {
		w.mu.Lock()
		delete(w.asked, response.ID)
		w.mu.Unlock()
	}
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() && w.declared != nil {
		if refused := w.declared.check(req, w.initialized); refused != nil {
			return w.answer(&jsonrpc.Response{ID: req.ID, Error: refused})
		}
		w.initialized = w.initialized || req.Method == methodInitialize
	}
	for i, e := range w.protocols {
		if !belongs(m, i) {
			continue
		}
		if !e.started {
			if req, ok := m.(*jsonrpc.Request); !ok || !req.IsCall() {
				continue // no session is waiting for it
			}
			if err := open(e); err != nil {
				return err
			}
			e.started = true
		}
		select {
		case e.in <- m:
		case <-e.closed:
			return io.ErrClosedPipe
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// drain waits until every call is answered, but no longer than grace. A client that writes its calls, closes its end
// and keeps reading thus receives its responses. Calls that wait for the user or an app are cancelled.
func (w *stream) drain(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	w.mu.Lock()
	w.draining = true
	abandoned := w.abandoned()
	w.closeIfDrained()
	w.mu.Unlock()
	for _, m := range abandoned {
		if w.deliver(ctx, m, nil) != nil { // these messages do not open a protocolConn
			return
		}
	}
	select {
	case <-w.drained:
	case <-ctx.Done():
	case <-w.protocols[protocolInitialize].closed:
	case <-w.protocols[protocolStateless].closed:
	}
}

// abandoned returns the messages that end unfinished work: cancellations of calls that wait for the user or an app, and
// responses to requests that the client can no longer answer. The caller holds mu.
func (w *stream) abandoned() []jsonrpc.Message {
	var messages []jsonrpc.Message
	for id, c := range w.calls {
		if !c.waits {
			continue
		}
		c.cancelled = true
		params, err := json.Marshal(map[string]any{"requestId": id.Raw()})
		if err == nil {
			messages = append(messages, &jsonrpc.Request{Method: cancelled, Params: params})
		}
	}
	for id := range w.asked {
		messages = append(messages, &jsonrpc.Response{ID: id,
			Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client has closed its end"}})
	}
	return messages
}

// closeIfDrained closes drained if the stream is draining and no calls are pending. The caller holds mu.
func (w *stream) closeIfDrained() {
	if w.draining && w.pending == 0 {
		select {
		case <-w.drained:
		default:
			close(w.drained)
		}
	}
}
