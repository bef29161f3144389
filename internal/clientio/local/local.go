// Package local executes the operations of internal/clientio in this process, with its permissions and environment. It
// opens pages in the user's browser, and reads and writes files. It validates the form of each request and leaves
// permissions to the system. Only a client's own process may use it, or a daemon that has to run inside an agent's
// process because of a sandbox.
package local

import (
	"context"

	"github.com/service-dev/service/internal/clientio"
)

// Executor executes requests. It is safe for concurrent use. Create one with New.
type Executor struct{ slots chan struct{} }

// New returns an executor.
func New() *Executor { return &Executor{slots: make(chan struct{}, maxRunning)} }

// Do executes one request. It always returns a nil error, because failures are part of the response.
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
