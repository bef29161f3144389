package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/internal/problem"
	api "github.com/service-dev/service/proto/control"
)

// endpoint is a route with its handler.
type endpoint struct {
	api.Route
	serve func(context.Context, *exchange) error
}

// unary returns the endpoint of a call with a single response.
func unary[Q, A any](c api.Call[Q, A], handle func(context.Context, Q) (A, error)) endpoint {
	return endpoint{c.Route, func(ctx context.Context, x *exchange) error {
		var request Q
		if err := x.decode(&request); err != nil {
			return err
		}
		answer, err := handle(ctx, request)
		if err != nil {
			return err
		}
		return x.answer(http.StatusOK, answer)
	}}
}

// stream returns the endpoint of a call that responds with lines. handle may call send from several goroutines, but not
// concurrently.
func stream[Q, A any](c api.Call[Q, A],
	handle func(ctx context.Context, request Q, send func(A) error) error) endpoint {
	return endpoint{c.Route, func(ctx context.Context, x *exchange) error {
		var request Q
		if err := x.decode(&request); err != nil {
			return err
		}
		return handle(ctx, request, func(line A) error { return x.line(line) })
	}}
}

// upload returns the endpoint of a call whose body is a file. If the file exceeds limit, handle gets its first limit+1
// bytes.
func upload[A any](c api.Call[api.None, A], limit int64,
	handle func(ctx context.Context, data []byte) (A, error)) endpoint {
	return endpoint{c.Route, func(ctx context.Context, x *exchange) error {
		data, err := x.read(io.LimitReader(x.r.Body, limit+1))
		if err != nil {
			return err
		}
		if int64(len(data)) > limit {
			x.startBody() // the server reads part of the rest before it responds
		}
		answer, err := handle(ctx, data)
		if err != nil {
			return err
		}
		return x.answer(http.StatusOK, answer)
	}}
}

// exchange is one request and its response.
type exchange struct {
	w         http.ResponseWriter
	r         *http.Request
	control   *http.ResponseController
	deadlines deadlines
	started   bool // the status was sent
}

// startBody starts the deadline for reading the body. The deadline also bounds how long the server reads a body that
// the handler ignores.
func (x *exchange) startBody() { _ = x.control.SetReadDeadline(time.Now().Add(x.deadlines.body)) }

// read reads the body within its deadline.
func (x *exchange) read(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, problem.New("too_large", "the message is too large for the daemon", "Send at most 4 MB.")
	case err != nil:
		return nil, problem.New(problem.CodeInvalidRequest, "the body of the request was not received completely",
			"Send the body without a pause.")
	}
	_ = x.control.SetReadDeadline(time.Time{}) // otherwise the deadline would end the call
	return data, nil
}

// decode reads the body as JSON. Without a body, into keeps its zero value.
func (x *exchange) decode(into any) error {
	data, err := x.read(http.MaxBytesReader(x.w, x.r.Body, api.MaxBody))
	if err != nil || len(data) == 0 {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return problem.New(problem.CodeInvalidRequest, "parse the body of the request: "+err.Error(),
			"Send one JSON object with the fields of the call.")
	}
	return nil
}

// answer sends a call's only response.
func (x *exchange) answer(status int, v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	x.start("application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_ = x.control.SetWriteDeadline(time.Now().Add(x.deadlines.write))
	x.w.WriteHeader(status)
	if _, err := x.w.Write(data); err != nil {
		return err
	}
	return x.control.Flush() // before the connection counts as idle
}

// line sends one line of a stream. It returns an error if the client has disconnected or has stopped reading.
func (x *exchange) line(v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	_ = x.control.SetWriteDeadline(time.Now().Add(x.deadlines.write))
	if !x.started {
		x.start("application/x-ndjson")
	}
	if _, err := x.w.Write(data); err != nil {
		return err
	}
	return x.control.Flush()
}

func (x *exchange) start(mediaType string) {
	x.started = true
	x.w.Header().Set("Content-Type", mediaType)
}

// fail sends a call's error. In a stream that has begun, it is the last line; otherwise the response has the status of
// the error's code.
func (x *exchange) fail(err error) {
	failure := api.Failure{Error: errorOf(err)}
	if x.started {
		_ = x.line(failure)
		return
	}
	status := problem.Of(failure.Error.Code).Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	_ = x.answer(status, failure)
}

// encode returns v as one line of JSON. Invalid UTF-8 is replaced with U+FFFD.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	return b.Bytes(), nil
}

// serveHTTP serves one request.
func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 {
		s.refuseGRPC(w, connOf(r.Context()))
		return
	}
	if !s.enter() {
		return
	}
	defer s.handlers.Done()
	x := &exchange{w: w, r: r, control: http.NewResponseController(w), deadlines: s.deadlines}
	x.startBody()
	e, err := s.find(r)
	if err != nil {
		if problem.CodeOf(err) == problem.CodeMethodNotAllowed {
			w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(s.endpoints[r.URL.Path])), ", "))
		}
		x.fail(err)
		return
	}
	conn := connOf(r.Context())
	if refused := s.conns.begin(conn, e.Diagnostic); refused != nil {
		x.fail(refused)
		return
	}
	defer s.conns.end(conn)
	if err := s.run(e, x); err != nil {
		x.fail(err)
	}
}

// find returns the endpoint of a request. It refuses requests that a web page could make through a program that
// forwards them to the socket.
func (s *Server) find(r *http.Request) (endpoint, error) {
	for _, header := range []string{"Origin", "Referer"} {
		if r.Header.Get(header) != "" {
			return endpoint{}, problem.New(problem.CodeRefused, "a request with the header "+header+" is not served",
				"Send the request without it; pages in a browser may not use this socket.")
		}
	}
	if r.Host != api.Host {
		return endpoint{}, problem.New(problem.CodeRefused, fmt.Sprintf("the host is %q instead of %s", r.Host, api.Host),
			"Use addresses that begin with http://"+api.Host+"/v1/.")
	}
	methods := s.endpoints[r.URL.Path]
	if e, ok := methods[r.Method]; ok {
		return e, nil
	}
	code := problem.CodeNotFound
	if methods != nil {
		code = problem.CodeMethodNotAllowed
	}
	return endpoint{}, problem.New(code, fmt.Sprintf("this daemon (%s) has no call %s %s", s.o.About.Version, r.Method,
		r.URL.Path), "Run `servicectl daemon restart` if the program is newer than the daemon.")
}

// run serves a request for its caller. It turns a panic into an error and logs only the type of the panic value, which
// may contain data of the call.
func (s *Server) run(e endpoint, x *exchange) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.o.Log.Error("control call panicked", "path", e.Path, "type", fmt.Sprintf("%T", r))
			err = &problem.Error{Code: "internal", Message: "the daemon had an internal error",
				FixHint: "Report this with the daemon's log (`servicectl daemon logs`)."}
		}
	}()
	ctx, err := s.withCaller(x.r)
	if err != nil {
		return err
	}
	return e.serve(ctx, x)
}
