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
)

// maxCalls bounds the calls of one connection that run at a time.
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
	pending  int                  // calls whose answer is not written yet
	draining bool
	drained  chan struct{} // closed once draining and nothing is pending

	// Used by read's goroutine alone.
	declared    *declared // nil checks nothing
	initialized bool      // the client has begun a session

	room    *room         // nil for one without bounds
	notices Notices       // nil for none
	who     caller.Caller // whose notices
}

// call is a request that was read and not yet answered.
type call struct {
	tool      bool // it calls a tool
	cancelled bool
	batch     *batch
}

// batch collects the answers of a JSON-RPC batch, which revision 2025-03-26 asks servers to take.
type batch struct {
	open    int
	answers []json.RawMessage
	told    told // the notice that one of the answers carries
}

func newWire(in io.Reader, lines *lineReader, out io.Writer) *wire {
	if lines == nil {
		lines = newLineReader(in, MaxLine)
	}
	w := &wire{lines: lines, out: out, calls: map[jsonrpc.ID]*call{}, drained: make(chan struct{})}
	for i := range w.eras {
		w.eras[i] = &era{wire: w, in: make(chan jsonrpc.Message), closed: make(chan struct{}), gone: make(chan struct{})}
	}
	return w
}

// read hands every message on until the stream ends, which is reported as nil. open is called with an era before its
// first message.
func (w *wire) read(ctx context.Context, open func(*era) error) error {
	for {
		line, err := w.lines.next()
		if errors.Is(err, errLineTooLong) {
			w.refuse(jsonrpc.CodeInvalidRequest, "message is longer than 4194304 bytes")
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
		w.refuse(jsonrpc.CodeParseError, "message is not JSON")
		return nil
	}
	parts, group := split(line)
	if len(parts) == 0 || len(parts) > maxCalls {
		w.refuse(jsonrpc.CodeInvalidRequest, "batch is empty or too long")
		return nil
	}
	for _, m := range w.admit(parts, group) {
		if err := w.deliver(ctx, m, open); err != nil {
			return err
		}
	}
	return nil
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
		if id, present := member(part, "id"); present && !validID(id) {
			w.refuse(jsonrpc.CodeInvalidRequest, "message id is neither a string nor an integer within 2^53")
			continue
		}
		m, err := jsonrpc.DecodeMessage(part)
		if err != nil {
			w.refuse(jsonrpc.CodeInvalidRequest, "message is not a JSON-RPC 2.0 request, notification or response")
			continue
		}
		if req, ok := m.(*jsonrpc.Request); ok {
			if id, present := member(req.Params, "requestId"); req.Method == cancelled && present && !validID(id) {
				continue // it names no call, but rounded it may
			}
			problem, busy := w.register(req, group)
			switch {
			case busy:
				w.busy(req, problem)
				continue
			case problem != "":
				w.refuse(jsonrpc.CodeInvalidRequest, problem)
				continue
			}
		}
		messages = append(messages, m)
	}
	return messages
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
	if len(w.calls) >= maxCalls {
		return fmt.Sprintf("%d calls are running on this connection, which is the most there may be", maxCalls), true
	}
	if !w.room.take() {
		return fmt.Sprintf("%d calls of all agents are running, which is the most there may be", w.room.calls), true
	}
	w.calls[req.ID] = &call{tool: req.Method == toolCall, batch: group}
	w.pending++
	if group != nil {
		group.open++
	}
	return "", false
}

// leave gives back what calls hold that nobody will answer any more: their room, and the notice of a batch that one of
// them kept from being written.
func (w *wire) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room.give(len(w.calls))
	for _, c := range w.calls {
		if c.batch != nil {
			c.batch.told.settle(false)
			c.batch.told = nil
		}
	}
	clear(w.calls)
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
// its end and reads on gets its answers.
func (w *wire) drain(ctx context.Context, grace time.Duration) {
	w.mu.Lock()
	w.draining = true
	w.settle()
	w.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-w.drained:
	case <-timer.C:
	case <-ctx.Done():
	case <-w.eras[eraInitialize].gone:
	case <-w.eras[eraStateless].gone:
	}
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
