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
	"github.com/service-dev/service/proto/mcpline"
)

// maxCalls bounds the tools that run at a time for one connection, and its other requests that are not answered.
const maxCalls = 128

// wire is the framing of one connection. The SDK keeps one protocol state for a session and ends it at the first line
// that it does not understand; a client may probe with server/discover and then initialize, and a stray line must not
// cost a session. So wire reads the lines itself, answers those that are no message, and hands the others to one of two
// SDK sessions: one for clients that initialize, one for the stateless era.
type wire struct {
	lines *lineReader
	eras  [2]*era

	writeMu sync.Mutex
	out     io.Writer

	mu       sync.Mutex
	calls    map[jsonrpc.ID]*call // by id, until their answer is about to be written
	tools    int                  // how many of them call a tool
	asked    map[jsonrpc.ID]bool  // requests to the client that it has not answered
	pending  int                  // calls whose answer is not written yet
	draining bool
	left     bool          // nobody answers calls any more
	drained  chan struct{} // closed once draining and nothing is pending

	flow    *flow
	cut     func() error    // ends the stream; nil where that is not ours to do
	waiting map[string]bool // tools that wait for a person or an app
	room    *room           // nil for one without bounds
	notices Notices         // nil for none
	who     caller.Caller   // whose notices

	// Used by read's goroutine alone.
	declared    *declared // nil checks nothing
	initialized bool      // the client has begun a session
}

// call is a request that was read and not yet answered.
type call struct {
	tool      bool // it calls a tool
	waits     bool // for a person or an app
	cancelled bool
	batch     *batch
}

// patience is how long the answer may wait for the client to read. The answers to a batch are read all at once: waiting
// for one of them is in vain.
func (c *call) patience() time.Duration {
	if c != nil && c.batch != nil {
		return 0
	}
	return readWait
}

// batch collects the answers of a JSON-RPC batch, which revision 2025-03-26 asks servers to take.
type batch struct {
	open    int
	answers []json.RawMessage
	held    int  // bytes of answers, which count as unread
	told    told // the notice that one of the answers carries
}

func newWire(in io.Reader, lines *lineReader, out io.Writer) *wire {
	if lines == nil {
		lines = newLineReader(in, MaxLine)
	}
	w := &wire{lines: lines, out: out, flow: newFlow(), calls: map[jsonrpc.ID]*call{}, asked: map[jsonrpc.ID]bool{}, drained: make(chan struct{})}
	for i := range w.eras {
		w.eras[i] = &era{wire: w, in: make(chan jsonrpc.Message), closed: make(chan struct{}), gone: make(chan struct{})}
	}
	return w
}

// read hands every message on until the stream ends, which is reported as nil. open is called with an era before its
// first message.
func (w *wire) read(ctx context.Context, open func(*era) error) error {
	for {
		w.flow.wait()
		line, err := w.lines.next()
		if errors.Is(err, errLineTooLong) {
			if err := w.unread(ctx, w.lines.head, jsonrpc.CodeInvalidRequest, "message is longer than 4194304 bytes", open); err != nil {
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

// ended is nil for a stream that came to its end as it should.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// take deals with one line that is not empty.
func (w *wire) take(ctx context.Context, line []byte, open func(*era) error) error {
	if !json.Valid(line) {
		return w.unread(ctx, mcpline.Of(line), jsonrpc.CodeParseError, "message is not JSON, or nested too deeply", open)
	}
	parts, group := split(line)
	if len(parts) == 0 {
		w.refuse(nil, nil, jsonrpc.CodeInvalidRequest, "batch is empty")
		return nil
	}
	messages := w.admit(parts, group)
	w.answerRefused(group)
	for _, m := range messages {
		if err := w.deliver(ctx, m, open); err != nil {
			return err
		}
	}
	return nil
}

// unread deals with a message of which only the head can be read: the one who waits for it hears that it is lost. That
// is the client, or a session when the message answers one of its requests.
func (w *wire) unread(ctx context.Context, h *mcpline.Head, code int, why string, open func(*era) error) error {
	if !h.IsResponse() {
		w.refuse(nil, h.ID(), code, why)
		return nil
	}
	answer, err := jsonrpc.DecodeMessage(refusal(h.ID(), code, why))
	if err != nil {
		return nil // nobody can be meant
	}
	return w.deliver(ctx, answer, open)
}

// split returns the messages of a line that is JSON; group is nil unless they are a batch.
func split(line []byte) (parts []json.RawMessage, group *batch) {
	if line[0] != '[' {
		return []json.RawMessage{line}, nil
	}
	_ = json.Unmarshal(line, &parts) // an array of anything fits
	return parts, &batch{}
}

// admit decodes messages and registers their calls; what cannot be admitted is answered here. All calls of a batch are
// registered before the first is delivered, so that the batch is not taken for complete too early.
func (w *wire) admit(parts []json.RawMessage, group *batch) []jsonrpc.Message {
	var messages []jsonrpc.Message
	for _, part := range parts {
		m, problem := decode(part)
		if len(parts) > maxCalls {
			problem = "batch is too long"
		}
		req, isRequest := m.(*jsonrpc.Request)
		if problem == "" && isRequest {
			if id, present := member(req.Params, "requestId"); req.Method == cancelled && present && !validID(id) {
				continue // it names no call, but rounded it may
			}
			var busy bool
			if problem, busy = w.register(req, group); busy {
				w.busy(group, req, problem)
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

// decode reads one message, or tells why it is none.
func decode(part json.RawMessage) (m jsonrpc.Message, problem string) {
	if id, present := member(part, "id"); present && !validID(id) {
		return nil, "message id is neither a string nor an integer within 2^53"
	}
	m, err := jsonrpc.DecodeMessage(part)
	if r, ok := m.(*jsonrpc.Response); err != nil || ok && r.Result == nil && r.Error == nil {
		return nil, "message is not a JSON-RPC 2.0 request, notification or response"
	}
	return m, ""
}

// requestID is the id under which the sender of a message waits for an answer; nil when it does not.
func requestID(part json.RawMessage) json.RawMessage {
	if h := mcpline.Of(part); !h.IsResponse() {
		return h.ID()
	}
	return nil
}

// register notes a call, or the wish to cancel one. It returns why a call is not taken; busy tells that it may be later.
func (w *wire) register(req *jsonrpc.Request, group *batch) (problem string, busy bool) {
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
		return "request id is in use by a call that is still running", false
	}
	c := &call{tool: req.Method == toolCall, batch: group}
	switch {
	case !c.tool:
		w.flow.add(0, 0, 1)
	case w.tools >= maxCalls:
		return fmt.Sprintf("%d calls are running on this connection, which is the most there may be", maxCalls), true
	case !w.room.take():
		return fmt.Sprintf("%d calls of all agents are running, which is the most there may be", w.room.calls), true
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

// leave gives back what calls hold that nobody will answer any more: their room, and the answers and the notice of a
// batch that one of them kept from being written.
func (w *wire) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.give(w.tools)
	w.tools, w.left = 0, true
	for _, c := range w.calls {
		if c.batch != nil {
			w.drop(c.batch)
			c.batch.told.settle(false)
			c.batch.told = nil
		}
	}
	clear(w.calls)
}

// toolName is the tool that a request calls; empty when it names none.
func toolName(req *jsonrpc.Request) string {
	var name string
	if raw, ok := member(req.Params, "name"); ok && json.Unmarshal(raw, &name) != nil {
		return ""
	}
	return name
}

// ask notes a request to the client; false when the client has closed its end and cannot answer.
func (w *wire) ask(id jsonrpc.ID) bool {
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

// deliver gives a message to the session it belongs to. A cancellation goes to both: ids are unique on a connection.
func (w *wire) deliver(ctx context.Context, m jsonrpc.Message, open func(*era) error) error {
	if response, ok := m.(*jsonrpc.Response); ok {
		w.mu.Lock()
		delete(w.asked, response.ID)
		w.mu.Unlock()
	}
	if req, ok := m.(*jsonrpc.Request); ok && req.IsCall() && w.declared != nil {
		if refused := w.declared.refusal(req, w.initialized); refused != nil {
			return w.answer(&jsonrpc.Response{ID: req.ID, Error: refused})
		}
		w.initialized = w.initialized || req.Method == methodInitialize
	}
	for i, e := range w.eras {
		if !belongs(m, i) {
			continue
		}
		if !e.opened {
			if req, ok := m.(*jsonrpc.Request); !ok || !req.IsCall() {
				continue // nothing that could be meant
			}
			if err := open(e); err != nil {
				return err
			}
			e.opened = true
		}
		select {
		case e.in <- m:
		case <-e.gone:
			return io.ErrClosedPipe
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// The indexes of wire.eras.
const (
	eraInitialize = iota
	eraStateless
)

// firstStateless is the first protocol revision without initialize; a request says its revision in _meta.
const (
	firstStateless = "2026-07-28"
	metaVersion    = "io.modelcontextprotocol/protocolVersion"
)

func belongs(m jsonrpc.Message, index int) bool {
	req, ok := m.(*jsonrpc.Request)
	switch {
	case !ok: // the answer to a request of ours, which only the first era gets
		return index == eraInitialize
	case !req.IsCall():
		return index == eraInitialize || req.Method == cancelled
	default:
		return index == eraOf(req)
	}
}

func eraOf(req *jsonrpc.Request) int {
	if !bytes.Contains(req.Params, []byte(metaVersion)) {
		return eraInitialize
	}
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	if json.Unmarshal(req.Params, &p) != nil {
		return eraInitialize
	}
	if version, _ := p.Meta[metaVersion].(string); version >= firstStateless {
		return eraStateless
	}
	return eraInitialize
}

// drain waits until every call that was read is answered, at most for grace: a client that writes its calls, closes
// its end and reads on gets its answers. What waits for a person or an app is not waited for.
func (w *wire) drain(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	w.mu.Lock()
	w.draining = true
	hopeless := w.hopeless()
	w.settle()
	w.mu.Unlock()
	for _, m := range hopeless {
		if w.deliver(ctx, m, nil) != nil { // nothing opens an era
			return
		}
	}
	select {
	case <-w.drained:
	case <-ctx.Done():
	case <-w.eras[eraInitialize].gone:
	case <-w.eras[eraStateless].gone:
	}
}

// hopeless are the messages that end what nobody waits for any more: cancellations of the calls that wait, and answers
// to questions that the client cannot answer now. mu is held.
func (w *wire) hopeless() []jsonrpc.Message {
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
		messages = append(messages, &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the client has closed its end"}})
	}
	return messages
}

// settle is called with mu held.
func (w *wire) settle() {
	if w.draining && w.pending == 0 {
		select {
		case <-w.drained:
		default:
			close(w.drained)
		}
	}
}
