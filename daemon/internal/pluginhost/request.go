package pluginhost

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

type request struct {
	route string // the name of a route of backendapi
	// path and query are the values of the parameters. Query parameters without a value are not sent.
	path, query map[string]string
	body        any           // encoded as JSON, except a json.RawMessage; nil for a request without a body
	wait        time.Duration // how much longer than for an ordinary call the backend may wait before it responds
	// hosted is set for requests about sessions. If the backend is on another machine, browsersim makes these requests.
	hosted bool
}

// fetch makes a request to t's backend and returns the decoded response. It returns the same errors as call.
func fetch[T any](ctx context.Context, h *Host, t backend.Target, r request) (T, error) {
	var answer, none T
	resp, err := h.send(ctx, t, r)
	if err != nil {
		return none, err
	}
	if err := backendapi.Decode(resp.GetBody(), &answer); err != nil {
		return none, &problem.Error{
			Code:       problem.CodeInvalidResponse,
			Message:    "the backend's response is invalid: " + err.Error(),
			FixHint:    backendapi.FixHintMismatch,
			HTTPStatus: int(resp.GetStatus()),
		}
	}
	return answer, nil
}

// send makes a request to t's backend and returns the undecoded response. It returns the same errors as call.
func (h *Host) send(ctx context.Context, t backend.Target, r request) (*pluginv1.CallResponse, error) {
	body, err := encode(r.body)
	if err != nil {
		return nil, problem.New(problem.CodeInvalidRequest, "the request to the backend is not JSON", "Send a JSON object.")
	}
	maps.DeleteFunc(r.query, func(_, value string) bool { return value == "" })
	req := &pluginv1.CallRequest{
		Target: h.target(t), Route: r.route, Path: r.path, Query: r.query, Body: body, WaitMs: uint32(r.wait.Milliseconds()),
	}
	a := h.pick(t)
	if r.hosted && a.name == HTTP {
		a = h.adapters[BrowserSim]
	}
	return call(ctx, h, a, t, callTimeout+r.wait,
		func(ctx context.Context, c pluginv1.BackendClient) (*pluginv1.CallResponse, error) {
			return c.Call(ctx, req)
		})
}

var errNotJSON = errors.New("not JSON")

// encode returns a request's body as JSON. It keeps raw JSON unchanged, because escaping could make it too long.
func encode(body any) ([]byte, error) {
	raw, isRaw := body.(json.RawMessage)
	switch {
	case body == nil:
		return nil, nil
	case isRaw && !json.Valid(raw):
		return nil, errNotJSON
	case isRaw:
		return raw, nil
	}
	return json.Marshal(body)
}
