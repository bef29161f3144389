package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/control"
)

// maxAnswer is the maximum size of an answer, or of a line of a stream, in bytes. The pictures of a tool's result are
// the largest.
const maxAnswer = 96 << 20

// call makes a call that has one answer.
func call[Q, A any](ctx context.Context, c *Client, route control.Call[Q, A], request Q) (*A, error) {
	body, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	response, err := c.send(ctx, route.Route, body) //nolint:bodyclose // answerOf closes it
	if err != nil {
		return nil, err
	}
	return answerOf[A](ctx, response)
}

func answerOf[A any](ctx context.Context, response *http.Response) (*A, error) {
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, broken(ctx)
	}
	answer := new(A)
	if err := json.Unmarshal(data, answer); err != nil {
		return nil, fmt.Errorf("decode the daemon's answer: %w", err)
	}
	return answer, nil
}

// bodyOf returns the body of a request, or nil for control.None.
func bodyOf(request any) ([]byte, error) {
	if _, isEmpty := request.(control.None); isEmpty {
		return nil, nil
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // escaping would make the text of a page six times as long
	err := encoder.Encode(request)
	data := body.Bytes()
	if err == nil && len(data) > control.MaxBody {
		err = &problem.Error{Code: "too_large", Message: "the message is too large for the daemon",
			FixHint: "Send at most 4 MB."}
	}
	return data, err
}

// send makes a request and returns its answer, whose body the caller must close. It returns an error for a refused
// call.
func (c *Client) send(ctx context.Context, route control.Route, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, route.Method, "http://"+control.Host+route.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set(control.CallerHeader, c.caller.Encode())
	response, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, broken(ctx)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	failure, _ := answerOf[control.Failure](ctx, response)
	if failure == nil || failure.Error == nil {
		return nil, &problem.Error{Code: "internal", FixHint: "Run `servicectl doctor`.",
			Message: fmt.Sprintf("the daemon refused the call with status %d and no reason", response.StatusCode)}
	}
	return nil, refusal(failure.Error)
}

// refusal returns the error of a refused call, or context.Canceled for a cancelled one.
func refusal(e *problem.Error) error {
	if e.Code == problem.CodeCancelled {
		return context.Canceled
	}
	return e
}

// broken returns the error of a call whose connection ended, usually because the daemon exited.
func broken(ctx context.Context) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &problem.Error{Code: problem.CodeDaemonNotResponding, Message: "the daemon does not respond", Retryable: true,
			FixHint: "Run `servicectl daemon restart`."}
	case ctx.Err() != nil:
		return context.Canceled
	}
	return gone("the daemon closed the connection")
}

func gone(message string) *problem.Error {
	return &problem.Error{Code: problem.CodeDaemonGone, Message: message, Retryable: true,
		FixHint: "Try again; `servicectl daemon logs` shows more."}
}

// lines are the lines of a stream.
type lines[L any] struct {
	ctx     context.Context
	body    io.ReadCloser
	limited *io.LimitedReader
	buffer  *bufio.Reader
}

// openStream makes a call that is answered with lines. The caller must close them.
func openStream[Q, L any](ctx context.Context, c *Client, route control.Call[Q, L], request Q) (*lines[L], error) {
	body, err := bodyOf(request)
	if err != nil {
		return nil, err
	}
	response, err := c.send(ctx, route.Route, body) //nolint:bodyclose // lines.close closes it
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Canceled
	case err != nil:
		return nil, err
	}
	limited := &io.LimitedReader{R: response.Body}
	return &lines[L]{ctx: ctx, body: response.Body, limited: limited, buffer: bufio.NewReader(limited)}, nil
}

// next returns the next line, or the error with which the daemon ended the call.
func (l *lines[L]) next() (*L, error) {
	l.limited.N = maxAnswer
	data, err := l.buffer.ReadBytes('\n')
	switch {
	case l.ctx.Err() != nil:
		return nil, context.Canceled
	case errors.Is(err, io.EOF):
		return nil, gone("the daemon ended the call without a result")
	case err != nil:
		return nil, broken(l.ctx)
	}
	var failure control.Failure
	if bytes.HasPrefix(data, []byte(`{"error":`)) && json.Unmarshal(data, &failure) == nil {
		return nil, refusal(failure.Error)
	}
	line := new(L)
	if err := json.Unmarshal(data, line); err != nil {
		return nil, fmt.Errorf("decode the daemon's answer: %w", err)
	}
	return line, nil
}

func (l *lines[L]) close() { _ = l.body.Close() }
