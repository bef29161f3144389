package tools

import (
	"context"
	"encoding/json"
)

// maxRetries is the number of remembered calls.
const maxRetries = 16

// retries caches the answers of calls that were repeated after a device code was approved. A call is repeated once, and
// all waiters for the code get its answer.
type retries struct{ byCode *recent[*retry] }

func newRetries() *retries { return &retries{newRecent[*retry](maxRetries)} }

type retry struct {
	done chan struct{}
	// tool is empty and answer is null if no call needed the link.
	tool   string
	answer json.RawMessage
}

var null = json.RawMessage("null")

// of returns the answer for a code. The first caller computes it with run. Other callers wait for it until ctx ends.
func (r *retries) of(ctx context.Context, code string,
	run func() (tool string, answer json.RawMessage)) (string, json.RawMessage) {
	entry, first := r.byCode.getOrSet(code, &retry{done: make(chan struct{})})
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
