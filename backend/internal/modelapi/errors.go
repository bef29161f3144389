package modelapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/backend/internal/httpjson"
	"github.com/service-dev/service/internal/problem"
)

// statusOf returns the HTTP status of a code. Official clients repeat a call automatically after 408, 409, 429 and 5xx,
// so permanent failures use other statuses. Some statuses therefore differ from the rest of the HTTP API.
func statusOf(code string) int {
	switch code {
	case problem.CodeRequestTooLarge:
		return http.StatusPaymentRequired
	case problem.CodeNotConfigured, problem.CodeTooManyCalls:
		return http.StatusServiceUnavailable
	}
	return cmp.Or(problem.Of(code).Status, http.StatusInternalServerError)
}

// types maps a status to two error types: one for the chat and responses interfaces, one for the messages interface.
var types = map[int][2]string{
	http.StatusUnauthorized:          {"authentication_error", "authentication_error"},
	http.StatusPaymentRequired:       {"insufficient_quota", "billing_error"},
	http.StatusForbidden:             {"permission_error", "permission_error"},
	http.StatusNotFound:              {"not_found_error", "not_found_error"},
	http.StatusRequestEntityTooLarge: {"invalid_request_error", "request_too_large"},
	http.StatusTooManyRequests:       {"rate_limit_error", "rate_limit_error"},
	http.StatusInternalServerError:   {"api_error", "api_error"},
	http.StatusBadGateway:            {"api_error", "api_error"},
	http.StatusServiceUnavailable:    {"api_error", "overloaded_error"},
	http.StatusGatewayTimeout:        {"api_error", "timeout_error"},
}

func typeOf(status int, messages bool) string {
	both, ok := types[status]
	switch {
	case !ok:
		return "invalid_request_error"
	case messages:
		return both[1]
	}
	return both[0]
}

// fail writes an error in the form of the route's interface.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *gateway.Refusal
	if !errors.As(err, &refusal) {
		if r.Context().Err() != nil {
			return // the client has disconnected
		}
		a.Log.ErrorContext(r.Context(), "failed to serve request", "method", r.Method, "path", r.URL.Path, "err", err)
		refusal = gateway.Refuse(problem.CodeUnavailable, "the gateway cannot serve now: try again").After(time.Second)
	}
	status := statusOf(refusal.Code)
	if refusal.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(httpjson.Seconds(refusal.RetryAfter)))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	httpjson.Write(w, a.Log, status, envelope(refusal, status, isMessages(r)))
}

func isMessages(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, wire.Messages.Path()) }

// envelope returns the body of an error. Clients ignore unknown members.
func envelope(refusal *gateway.Refusal, status int, messages bool) any {
	detail := map[string]any{"message": refusal.Message, "type": typeOf(status, messages), "param": nil,
		"code": refusal.Code}
	if refusal.Param != "" {
		detail["param"] = refusal.Param
	}
	maps.Copy(detail, refusal.Money)
	body := map[string]any{"error": detail}
	if messages {
		body["type"] = "error"
	}
	return body
}

// brokenFrame returns the last event of a stream that breaks off.
func brokenFrame(api wire.API, err error) []byte {
	refusal := gateway.Refuse(problem.CodeProviderError, gateway.ErrBroken.Error())
	errors.As(err, &refusal)
	event := envelope(refusal, statusOf(refusal.Code), api == wire.Messages)
	named := "event: error\n"
	switch api {
	case wire.Responses:
		event = map[string]any{"type": "error", "code": refusal.Code, "message": refusal.Message, "param": nil}
	case wire.Chat:
		named = ""
	case wire.Messages:
	}
	data, _ := json.Marshal(event) // contains only strings
	return []byte(named + "data: " + string(data) + "\n\n")
}
