// Package local carries out the operations of proto/clientio in this process, with its rights and in its environment:
// it opens a page in the person's browser, and reads and writes files. It validates each request by its form and lets the
// system decide about the rest. Only a client's own process may use it: the daemon does in no process but the one that
// an agent's sandbox forces it to share. It must not know why anything is opened, read or written.
package local

import (
	"context"

	"github.com/service-dev/service/proto/clientio"
)

// Executor carries out requests, one after the other or at once. Make it with New.
type Executor struct{ slots chan struct{} }

// New makes an executor.
func New() *Executor { return &Executor{slots: make(chan struct{}, maxRunning)} }

// Do carries out one request. The error is always nil: what went wrong is in the response.
func (e *Executor) Do(ctx context.Context, r clientio.Request) (clientio.Response, error) {
	answer := clientio.Response{ID: r.ID}
	if r.Op == clientio.Open {
		result := e.open(ctx, r.URL)
		answer.Opened, answer.Reason = result.opened, result.reason
		return answer, nil
	}
	if err := onFiles(r, &answer); err != nil {
		answer = clientio.Response{ID: r.ID}
		answer.Code, answer.Message = codeOf(err)
	}
	return answer, nil
}
