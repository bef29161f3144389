package assistantscript

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/service-dev/service/glasses"
)

// Failure is an error response. Its status is not 200.
type Failure struct {
	Status int
	// Type and Code are the fields of the interface's error object.
	Type, Code, Message string
	// Param is the invalid field of the request, if any.
	Param string
	// RetryAfter is the number of seconds after which to retry, or 0 if a retry does not help.
	RetryAfter int
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

// Row returns the payload of assistant.failed about a failure.
func (f *Failure) Row() glasses.AssistantFailed {
	return glasses.AssistantFailed{Code: f.Code, Message: glasses.Spoken(f.Message)}
}

// refusals maps the gateway's error codes that a script may use to the rest of the gateway's error response.
var refusals = map[string]Failure{
	"no_credit": {Status: http.StatusPaymentRequired, Type: "insufficient_quota",
		Message: "the account has too little credit for this call"},
	"credit_reserved": {Status: http.StatusTooManyRequests, Type: "rate_limit_error", RetryAfter: 1,
		Message: "the rest of the account's credit is reserved for calls in flight: try again when they have ended"},
	"credit_locked": {Status: http.StatusForbidden, Type: "permission_error",
		Message: "the account's owner has to confirm the e-mail address before credit can be spent"},
	"cap_reached": {Status: http.StatusPaymentRequired, Type: "insufficient_quota",
		Message: "the project's spending cap is reached"},
	"request_too_large": {Status: http.StatusPaymentRequired, Type: "insufficient_quota",
		Message: "the credit covers only a shorter answer"},
	"too_many_calls": {Status: http.StatusServiceUnavailable, Type: "api_error", RetryAfter: 1,
		Message: "too many calls at once: try again"},
	"unavailable": {Status: http.StatusServiceUnavailable, Type: "api_error", RetryAfter: 1,
		Message: "the gateway cannot serve now: try again"},
	"provider_busy": {Status: http.StatusServiceUnavailable, Type: "api_error", RetryAfter: 1,
		Message: "the model's provider is busy: try again"},
	"provider_timeout": {Status: http.StatusGatewayTimeout, Type: "api_error", RetryAfter: 1,
		Message: "the model's provider did not answer in time: try again"},
	"provider_unavailable": {Status: http.StatusServiceUnavailable, Type: "api_error", RetryAfter: 1,
		Message: "the model's provider is not available"},
	"provider_error": {Status: http.StatusBadGateway, Type: "api_error", RetryAfter: 1,
		Message: "the model's provider sent an invalid answer: try again"},
	"provider_refused": {Status: http.StatusBadRequest, Type: "invalid_request_error",
		Message: "the provider refused the request"},
}

// Codes returns the sorted error codes that a rule can use.
func Codes() []string {
	var list []string
	for code := range refusals {
		list = append(list, code)
	}
	slices.Sort(list)
	return list
}

func (e *Error) failure() *Failure {
	f := refusals[e.Code]
	f.Code, f.Message = e.Code, cmp.Or(e.Message, f.Message)
	return &f
}

func invalid(code, param, format string, args ...any) *Failure {
	return &Failure{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: code, Param: param,
		Message: fmt.Sprintf(format, args...)}
}

// Body returns the interface's error object as JSON.
func (f *Failure) Body() []byte {
	type detail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	d := detail{Message: f.Message, Type: f.Type, Code: f.Code}
	if f.Param != "" {
		d.Param = &f.Param
	}
	return encode(map[string]detail{"error": d})
}
