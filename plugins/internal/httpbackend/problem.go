package httpbackend

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// pollStatuses maps status codes of the token endpoint to error codes, for backends that send no error code.
var pollStatuses = map[int]string{
	http.StatusForbidden: problem.CodeDeviceCodeDenied,
	http.StatusNotFound:  problem.CodeUnknownDeviceCode,
	http.StatusGone:      problem.CodeDeviceCodeExpired,
}

// bareStatuses maps status codes that have a single meaning on all other routes to error codes.
var bareStatuses = map[int]string{
	http.StatusUnauthorized:    problem.CodeAuthRequired,
	http.StatusTooManyRequests: problem.CodeRateLimited,
}

// problemBody is a body of application/problem+json, with the additional fields of some codes.
type problemBody struct {
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable"`
	FixHint   string `json:"fixHint"`
	backendapi.DeviceCode

	// Fields of permission_denied.
	Capability string `json:"capability"`
	Field      string `json:"field"`
	Needed     string `json:"needed"`
	Granted    string `json:"granted"`
	// Fields of version_conflict.
	CurrentVersion int64 `json:"currentVersion"`
}

// Limits of the texts of a problem, in characters.
const (
	maxMessage = 300
	maxFixHint = 300
)

// refusal returns the Problem for an error response. body may be truncated or have any content.
func refusal(resp *http.Response, body []byte, isPoll bool) error {
	st := resp.StatusCode
	if st >= 300 && st < 400 {
		return redirected(resp, isPoll)
	}
	var b problemBody
	if json.Unmarshal(body, &b) != nil || !isCode(b.Code) {
		b = problemBody{}
	}
	p := &pluginv1.Problem{
		Code:              b.Code,
		Message:           sentence(cmp.Or(b.Detail, b.Message, b.Title), maxMessage),
		HttpStatus:        uint32(st),
		RetryAfterSeconds: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	// Pass on the hint only with a code of the contract, because agents follow hints.
	if problem.Of(b.Code).Title != "" {
		p.FixHint = sentence(b.FixHint, maxFixHint)
	}
	switch {
	case st == http.StatusGatewayTimeout && b.Code == problem.CodeTimeout:
		// The backend works, but the simulator page did not respond.
	case st >= 500:
		// In all other cases, the backend failed this call and may recover.
		p.Code = problem.CodeBackendUnreachable
	case isPoll && pollStatuses[st] != "":
		p.Code = pollStatuses[st]
	case isPoll && st != http.StatusTooManyRequests:
		// An intermediary sent this response rather than the route, perhaps only temporarily.
		p.Code, b.Retryable, p.FixHint = problem.CodeBackendUnreachable, nil, backendapi.FixHintMismatch
	case p.Code == "":
		p.Code = cmp.Or(bareStatuses[st], problem.CodeInvalidResponse)
	}
	if info := problem.Of(p.Code); info.Title != "" || p.Code == problem.CodeBackendUnreachable {
		p.Retryable = info.Retryable
	}
	if b.Retryable != nil && st < 500 {
		p.Retryable = *b.Retryable
	}
	if p.Message == "" {
		p.Message = fmt.Sprintf("the backend responded with %d %s", st, http.StatusText(st))
	}
	if p.Code == problem.CodeInvalidResponse && p.FixHint == "" {
		p.FixHint = backendapi.FixHintMismatch
	}
	if p.Code == problem.CodeAuthRequired {
		switch err := backendapi.Check(&b.DeviceCode); {
		case err == nil:
			p.DeviceCode, _ = json.Marshal(b.DeviceCode) // never fails, because it contains only texts and integers
		case !errors.Is(err, backendapi.ErrMissing):
			return malformed(st, err.Error())
		}
	}
	b.record(p)
	return serve.Refuse(grpcCode(st), p)
}

// record copies the additional fields of errors about a record.
func (b problemBody) record(p *pluginv1.Problem) {
	switch p.GetCode() {
	case problem.CodePermissionDenied:
		const most = 64
		p.Capability, p.Field = printable(b.Capability, most), printable(b.Field, most)
		p.Needed, p.Granted = printable(b.Needed, most), printable(b.Granted, most)
	case problem.CodeVersionConflict:
		p.CurrentVersion = max(b.CurrentVersion, 0)
	}
}

// redirected returns the Problem for a redirect. During polling it may be temporary, such as the sign-in page of a
// network.
func redirected(resp *http.Response, polling bool) error {
	host := "elsewhere"
	if u, err := resp.Location(); err == nil && u.Host != "" {
		host = "to " + printable(u.Scheme+"://"+u.Host, 100)
	}
	p := &pluginv1.Problem{
		Code:       problem.CodeInvalidResponse,
		Message:    "the backend redirects " + host + ", which is not followed",
		HttpStatus: uint32(resp.StatusCode),
		FixHint:    "Set SERVICE_BACKEND_URL to the backend's own address.",
	}
	if polling {
		p.Code, p.Retryable = problem.CodeBackendUnreachable, true
	}
	return serve.Refuse(codes.FailedPrecondition, p)
}

// malformed returns the Problem for a successful response with invalid content.
func malformed(st int, why string) error {
	return serve.Refuse(codes.Internal, &pluginv1.Problem{
		Code:       problem.CodeInvalidResponse,
		Message:    "the backend's response is invalid: " + why,
		HttpStatus: uint32(st),
		FixHint:    backendapi.FixHintMismatch,
	})
}

// retryAfter parses both forms of the header (RFC 9110 section 10.2.3) and returns at most an hour, or 0 if it is
// absent or invalid.
func retryAfter(value string, now time.Time) uint32 {
	const most = 3600
	if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32); err == nil {
		return uint32(min(n, most))
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return uint32(min(int64(at.Sub(now)/time.Second)+1, most))
	}
	return 0
}

// isCode reports whether s has the form of an error code.
func isCode(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' {
			return false
		}
	}
	return true
}

// sentence makes a backend's text safe to show: one line of printable characters, truncated if necessary.
func sentence(s string, most int) string {
	out := make([]rune, 0, min(len(s), most))
	for _, r := range s {
		if len(out) == most {
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		out = append(out, r)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

func grpcCode(st int) codes.Code {
	switch {
	case st == http.StatusUnauthorized:
		return codes.Unauthenticated
	case st == http.StatusForbidden:
		return codes.PermissionDenied
	case st == http.StatusNotFound, st == http.StatusGone:
		return codes.NotFound
	case st == http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case st >= 500:
		return codes.Unavailable
	}
	return codes.InvalidArgument
}
