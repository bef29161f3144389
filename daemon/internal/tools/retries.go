package tools

import (
	"context"
	"encoding/json"
	"sync"
)

// maxRetries bounds how many retried calls are remembered.
const maxRetries = 16

// retries remembers what came of the calls that had asked for a link, so that everyone who waits for one code gets the
// same answer and the call is repeated once. The zero value is ready.
type retries struct {
	mu     sync.Mutex
	byCode map[string]*retry
	order  []string
}

type retry struct {
	done chan struct{}
	// tool is empty and answer is null when no call had asked.
	tool   string
	answer json.RawMessage
}

var null = json.RawMessage("null")

// of returns the answer for a code. The first caller makes it with run, the others wait for it; a wait that ctx ends
// gives no answer.
func (r *retries) of(ctx context.Context, code string, run func() (tool string, answer json.RawMessage)) (string, json.RawMessage) {
	entry, first := r.enter(code)
	if first {
		entry.tool, entry.answer = run()
		close(entry.done)
		return entry.tool, entry.answer
	}
	select {
	case <-entry.done:
		return entry.tool, entry.answer
	case <-ctx.Done():
		return "", null
	}
}

func (r *retries) enter(code string) (entry *retry, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry = r.byCode[code]; entry != nil {
		return entry, false
	}
	if r.byCode == nil {
		r.byCode = map[string]*retry{}
	}
	entry = &retry{done: make(chan struct{})}
	r.byCode[code] = entry
	if r.order = append(r.order, code); len(r.order) > maxRetries {
		delete(r.byCode, r.order[0])
		r.order = r.order[1:]
	}
	return entry, true
}
