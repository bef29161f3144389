package mcpgate

import (
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/service-dev/service/daemon/internal/limits"
	"github.com/service-dev/service/internal/problem"
)

// limiter counts the streams, calls and unread bytes of all clients.
type limiter struct {
	streams, calls *limits.Usage
	maxCalls       int
	processOf      func(net.Conn) int // returns 0 for an unknown process; nil if all are unknown

	unread atomic.Int64 // bytes of unread responses
}

func newLimiter(opts Options) *limiter {
	return &limiter{
		streams: limits.New(0, max(opts.MaxConnections/2, 1)), calls: limits.New(opts.MaxCalls, 0),
		maxCalls: opts.MaxCalls, processOf: opts.Process,
	}
}

// admitStream counts a stream of a process. The caller must call leave. It refuses a process that already uses half of
// all streams.
func (r *limiter) admitStream(conn net.Conn) (leave func(), refused *handshakeReply) {
	pid := 0
	if r.processOf != nil {
		pid = r.processOf(conn)
	}
	if excess := r.streams.Acquire(pid, 0); excess != nil {
		return func() {}, &handshakeReply{
			Code: problem.CodeTooManyClients, Message: excess.OfProcess("connections"),
			FixHint: "Close unused connections, or end that process.",
		}
	}
	return func() { r.streams.Release(pid, 1) }, nil
}

// acquireCall counts a new call. It returns false if too many calls are running.
func (r *limiter) acquireCall() bool { return r == nil || r.calls.Acquire(0, 0) == nil }

// releaseCalls releases n calls.
func (r *limiter) releaseCalls(n int) {
	if r != nil && n > 0 {
		r.calls.Release(0, n)
	}
}

// Limits on unread responses. Above them, the gate stops reading the client's stream. A client that reads slowly, or
// is suspended for an hour, still receives every response.
const (
	maxUnreadMessages = 1024
	maxUnreadBytes    = 8 << 20
)

// Limits for clients that open many streams without reading them. While all streams together have maxUnreadInAll unread
// bytes, the gate does not read a stream with at least fewUnreadBytes unread bytes. If the client does not read within
// readWait, the gate replaces further responses of at least largeAnswer bytes with an error. Clients that read their
// responses are not affected.
const (
	maxUnreadInAll = 64 << 20
	fewUnreadBytes = 256 << 10
	largeAnswer    = 64 << 10
	readWait       = 5 * time.Second
)

// flowControl stops reading a stream while it has too many unanswered requests or unread
// responses.
type flowControl struct {
	mu       sync.Mutex
	changed  sync.Cond
	messages int           // waiting to be written
	bytes    int           // waiting to be written
	held     int           // part of bytes that waits for the rest of a batch, not for the client
	quick    int           // unanswered requests that do not call a tool; excess ones are queued, not refused
	unread   int           // limit on bytes
	all      *atomic.Int64 // bytes waiting to be written on all streams
}

func newFlowControl() *flowControl {
	f := &flowControl{unread: maxUnreadBytes, all: new(atomic.Int64)}
	f.changed.L = &f.mu
	return f
}

func (f *flowControl) add(messages, bytes, quick int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages += messages
	f.bytes += bytes
	f.all.Add(int64(bytes))
	f.quick += quick
	f.changed.Broadcast()
}

// hold counts n more bytes that wait for the rest of a batch.
func (f *flowControl) hold(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held += n
	f.changed.Broadcast()
}

// wait returns when the stream may be read. On a broken stream it returns soon, because pending writes fail.
func (f *flowControl) wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.messages >= maxUnreadMessages || f.bytes-f.held >= f.limit() || f.quick >= maxCalls {
		f.changed.Wait()
	}
}

// limit returns the number of unread bytes above which the gate stops reading the stream.
func (f *flowControl) limit() int {
	if f.isSharedLimitReached() {
		return min(f.unread, fewUnreadBytes)
	}
	return f.unread
}

func (f *flowControl) isSharedLimitReached() bool { return f.all.Load() >= maxUnreadInAll }

// reserve counts a response of n bytes that is waiting to be written. If all streams together have too much unread
// data, it waits up to patience for the client to read. It returns false if the response still does not fit.
func (f *flowControl) reserve(n int, patience time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.fits(n) && patience > 0 {
		late := false
		timer := time.AfterFunc(patience, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			late = true
			f.changed.Broadcast()
		})
		defer timer.Stop()
		for !f.fits(n) && !late {
			f.changed.Wait()
		}
	}
	if !f.fits(n) {
		return false
	}
	f.bytes += n
	f.all.Add(int64(n))
	return true
}

// fits reports whether a response of n bytes may be queued. The caller holds f.mu.
func (f *flowControl) fits(n int) bool {
	return n < largeAnswer || f.bytes < fewUnreadBytes || !f.isSharedLimitReached()
}

// droppedAnswer returns the error that replaces a response that could not be queued.
func droppedAnswer(id jsonrpc.ID) *jsonrpc.Response {
	const message = "the answer was dropped: this client does not read its answers, " +
		"and all clients together have too much unread output"
	data, _ := json.Marshal(map[string]any{
		"code": problem.CodeTooManyUnread, "message": message, "retryable": false,
		"fixHint": "Read the answers to earlier calls; this call was executed.",
	})
	problem := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message, Data: data}
	return &jsonrpc.Response{ID: id, Error: problem}
}

// refuseBusy responds with a tool error to a call above a limit.
func (w *stream) refuseBusy(group *batch, req *jsonrpc.Request, message string) {
	problem := map[string]any{
		"code": problem.CodeTooManyCalls, "message": message, "retryable": true,
		"fixHint": "Wait for the answers to running calls, then call again.",
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": req.ID.Raw()}
	if req.Method == toolCall {
		text, _ := json.Marshal(problem)
		result := map[string]any{
			"isError": true, "structuredContent": problem,
			"content": []any{map[string]any{"type": "text", "text": string(text)}},
		}
		if protocolOf(req) == protocolStateless {
			result["resultType"] = "complete"
		}
		answer["result"] = result
	} else {
		answer["error"] = map[string]any{"code": jsonrpc.CodeInternalError, "message": message, "data": problem}
	}
	data, err := json.Marshal(answer)
	if err == nil {
		w.send(group, data)
	}
}
