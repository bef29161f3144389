package mcpgate

import (
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// room counts what all streams together hold.
type room struct {
	streams   int                // per process
	calls     int                // of all streams
	processOf func(net.Conn) int // nil: they are not told apart

	unread atomic.Int64 // bytes of answers that are not read

	mu        sync.Mutex
	processes map[int]int
	underWay  int
}

func newRoom(opts Options) *room {
	return &room{
		streams: max(opts.MaxConnections/2, 1), calls: opts.MaxCalls, processes: map[int]int{}, processOf: opts.Process,
	}
}

// enter counts a stream of a process; leave must be called. It refuses a process that has half of all streams already,
// so that one which runs wild leaves the other half to everybody else.
func (r *room) enter(conn net.Conn) (leave func(), refused *prefaceAnswer) {
	pid := 0
	if r.processOf != nil {
		pid = r.processOf(conn)
	}
	if pid == 0 {
		return func() {}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.processes[pid] >= r.streams {
		return func() {}, &prefaceAnswer{
			Code: codeTooManyClients, Message: fmt.Sprintf("process %d has %d connections, which is the most one may have", pid, r.streams),
			FixHint: "close connections that are not used any more, or end that process",
		}
	}
	r.processes[pid]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.processes[pid]--; r.processes[pid] == 0 {
			delete(r.processes, pid)
		}
	}, nil
}

// take counts a call; false when there are too many.
func (r *room) take() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.underWay >= r.calls {
		return false
	}
	r.underWay++
	return true
}

// give takes n calls off the count.
func (r *room) give(n int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.underWay -= n
}

// What one stream may have that is not read by its client, before nothing more is read from it. A client that reads
// slowly, or is stopped for an hour, still gets every answer.
const (
	maxUnreadMessages = 1024
	maxUnreadBytes    = 8 << 20
)

// A client may open many streams and read none of them. When all streams together hold maxUnreadInAll bytes, a stream
// that holds fewUnreadBytes itself is not read, and a further answer of largeAnswer bytes becomes an error when it has
// not gone down within readWait. Clients that read their answers notice nothing.
const (
	maxUnreadInAll = 64 << 20
	fewUnreadBytes = 256 << 10
	largeAnswer    = 64 << 10
	readWait       = 5 * time.Second
)

// flow holds back the reading of a stream while much of what it asked for is not done or not read.
type flow struct {
	mu       sync.Mutex
	eased    sync.Cond
	messages int // that wait to be written
	bytes    int
	held     int           // those of bytes that wait for the rest of a batch: no reading can ease them
	quick    int           // requests that call no tool and are not answered: they are not refused, but wait their turn
	unread   int           // the most there may be of bytes
	all      *atomic.Int64 // bytes that wait to be written on all streams
}

func newFlow() *flow {
	f := &flow{unread: maxUnreadBytes, all: new(atomic.Int64)}
	f.eased.L = &f.mu
	return f
}

func (f *flow) add(messages, bytes, quick int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages += messages
	f.bytes += bytes
	f.all.Add(int64(bytes))
	f.quick += quick
	f.eased.Broadcast()
}

// hold notes n bytes more that wait for the rest of a batch, or fewer.
func (f *flow) hold(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held += n
	f.eased.Broadcast()
}

// wait returns when the stream may be read. A stream that breaks eases at once, for what waits to be written fails.
func (f *flow) wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.messages >= maxUnreadMessages || f.bytes-f.held >= f.most() || f.quick >= maxCalls {
		f.eased.Wait()
	}
}

// most is how many bytes may be unread before the stream is read no further.
func (f *flow) most() int {
	if f.isTight() {
		return min(f.unread, fewUnreadBytes)
	}
	return f.unread
}

// isTight reports whether all streams together hold as much as they may.
func (f *flow) isTight() bool { return f.all.Load() >= maxUnreadInAll }

// takes counts one more answer of n bytes, which then waits to be written, unless there is no room for it. Where all
// streams hold too much, the client has so long to read what it holds: that of one which reads is written meanwhile.
func (f *flow) takes(n int, patience time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.fits(n) && patience > 0 {
		late := false
		timer := time.AfterFunc(patience, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			late = true
			f.eased.Broadcast()
		})
		defer timer.Stop()
		for !f.fits(n) && !late {
			f.eased.Wait()
		}
	}
	if !f.fits(n) {
		return false
	}
	f.bytes += n
	f.all.Add(int64(n))
	return true
}

// fits reports whether one more answer of n bytes may wait. f.mu is held.
func (f *flow) fits(n int) bool { return n < largeAnswer || f.bytes < fewUnreadBytes || !f.isTight() }

// codeTooManyCalls refuses a call above a limit, codeTooManyUnread an answer.
const (
	codeTooManyCalls  = "too_many_calls"
	codeTooManyUnread = "too_many_unread"
)

// lost is the answer in the place of one for which there is no memory.
func lost(id jsonrpc.ID) *jsonrpc.Response {
	const message = "the answer was dropped: this client does not read, and all clients together have too much unread"
	data, _ := json.Marshal(map[string]any{
		"code": codeTooManyUnread, "message": message, "retryable": false,
		"fixHint": "read the answers to earlier calls; this call was made",
	})
	problem := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message, Data: data}
	return &jsonrpc.Response{ID: id, Error: problem}
}

// busy answers a call that is one too many, in the words of every tool error.
func (w *wire) busy(group *batch, req *jsonrpc.Request, message string) {
	problem := map[string]any{
		"code": codeTooManyCalls, "message": message, "retryable": true,
		"fixHint": "wait for answers of calls that are running, then call again",
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": req.ID.Raw()}
	if req.Method == toolCall {
		text, _ := json.Marshal(problem)
		result := map[string]any{"isError": true, "structuredContent": problem, "content": []any{map[string]any{"type": "text", "text": string(text)}}}
		if eraOf(req) == eraStateless {
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
