// Package controltest calls the control API of a daemon on a socket, for tests.
package controltest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/control"
)

// Client calls the daemon that listens on a socket, on behalf of Caller.
type Client struct {
	Caller control.Caller
	HTTP   *http.Client
}

// New returns a client without a caller. Its connections are closed at the end of the test.
func New(t testing.TB, socket string) *Client {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{HTTP: &http.Client{Transport: transport}}
}

// As returns a client with another caller and the same connections.
func (c *Client) As(who control.Caller) *Client { return &Client{Caller: who, HTTP: c.HTTP} }

// Call makes a call that has one answer. The error of a refused call is a *problem.Error.
func Call[Q, A any](ctx context.Context, c *Client, route control.Call[Q, A], request Q) (answer A, err error) {
	response, err := c.send(ctx, route.Route, request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	return answer, json.NewDecoder(response.Body).Decode(&answer)
}

func (c *Client) send(ctx context.Context, route control.Route, request any) (*http.Response, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, route.Method, "http://"+control.Host+route.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set(control.CallerHeader, c.Caller.Encode())
	response, err := c.HTTP.Do(r)
	if err != nil {
		return nil, err
	}
	return response, Refusal(response)
}

// Refusal returns the error in a response, whose status is its code's, or nil for a response with status 200. It closes
// the body of a refusal.
func Refusal(response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	var failure control.Failure
	if err := json.Unmarshal(data, &failure); err != nil || failure.Error == nil {
		return fmt.Errorf("status %d without an error: %q", response.StatusCode, data)
	}
	want := problem.Of(failure.Error.Code).Status
	if want == 0 {
		want = http.StatusInternalServerError
	}
	if response.StatusCode != want {
		return fmt.Errorf("status %d with code %s, want %d", response.StatusCode, failure.Error.Code, want)
	}
	return failure.Error
}

// Lines are the lines of a stream.
type Lines[A any] struct {
	body io.ReadCloser
	scan *bufio.Scanner
}

// Stream makes a call that is answered with lines. Cancel ctx to end it.
func Stream[Q, A any](ctx context.Context, c *Client, route control.Call[Q, A], request Q) (*Lines[A], error) {
	response, err := c.send(ctx, route.Route, request) //nolint:bodyclose // Next closes it at the end
	if err != nil {
		return nil, err
	}
	scan := bufio.NewScanner(response.Body)
	scan.Buffer(nil, 64<<20)
	return &Lines[A]{body: response.Body, scan: scan}, nil
}

// Next returns the next line, io.EOF at the end, or the error in the last line.
func (l *Lines[A]) Next() (line A, err error) {
	if !l.scan.Scan() {
		_ = l.body.Close()
		if err := l.scan.Err(); err != nil {
			return line, err
		}
		return line, io.EOF
	}
	var failure control.Failure
	if err := json.Unmarshal(l.scan.Bytes(), &failure); err == nil && failure.Error != nil {
		return line, failure.Error
	}
	return line, json.Unmarshal(l.scan.Bytes(), &line)
}

// Tool calls a tool and returns its result.
func Tool(ctx context.Context, c *Client, name, arguments string) (*control.ToolResult, error) {
	lines, err := Stream(ctx, c, control.CallTool, control.ToolRequest{Name: name, Arguments: json.RawMessage(arguments)})
	for err == nil {
		var line control.ToolEvent
		if line, err = lines.Next(); line.Result != nil {
			_, _ = lines.Next()
			return line.Result, nil
		}
	}
	return nil, err
}
