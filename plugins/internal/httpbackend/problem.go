package httpbackend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/plugins/internal/serve"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Codes that this side gives by itself; all others are the backend's words (proto/backendapi).
const (
	codeUnreachable     = "backend_unreachable"
	codeInvalidResponse = "backend_invalid_response"
)

// pollStatuses are the codes of the token endpoint's statuses, for a backend that sends nothing else.
var pollStatuses = map[int]string{
	http.StatusForbidden: backendapi.CodeDeviceCodeDenied,
	http.StatusNotFound:  backendapi.CodeUnknownDeviceCode,
	http.StatusGone:      backendapi.CodeDeviceCodeExpired,
}

// bareStatuses are the codes of statuses that mean one thing on every other route.
var bareStatuses = map[int]string{
	http.StatusUnauthorized:    backendapi.CodeAuthRequired,
	http.StatusTooManyRequests: backendapi.CodeRateLimited,
}

// problemBody is a body of application/problem+json, with the fields that some codes have beside.
type problemBody struct {
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable"`
	FixHint   string `json:"fixHint"`
	deviceCode

	// of permission_denied
	Capability string `json:"capability"`
	Field      string `json:"field"`
	Needed     string `json:"needed"`
	Granted    string `json:"granted"`
	// of version_conflict
	CurrentVersion int64 `json:"currentVersion"`
}

// misfitHint goes with every answer that is none of a backend of ours.
const misfitHint = "The backend and this version of the service do not fit together: update the service, or check SERVICE_BACKEND_URL."

// knownCodes are the codes whose fixHint is passed on: what a backend says beside another code is not followed.
var knownCodes = map[string]bool{
	backendapi.CodeInvalidRequest: true, backendapi.CodeAuthRequired: true, backendapi.CodeDeviceCodeDenied: true,
	backendapi.CodePermissionDenied: true, backendapi.CodeUnknownDeviceCode: true, backendapi.CodeNotFound: true,
	backendapi.CodeMethodNotAllowed: true, backendapi.CodeConflict: true, backendapi.CodeNotConnected: true,
	backendapi.CodeTooManyKeys: true, backendapi.CodeDeviceCodeExpired: true, backendapi.CodeTooLarge: true,
	backendapi.CodeUnsupportedMedia: true, backendapi.CodeRateLimited: true, backendapi.CodeInternal: true,
	backendapi.CodeUnavailable: true, backendapi.CodeTimeout: true, backendapi.CodeVersionConflict: true,
	backendapi.CodeNotConfigured: true,
}

// Bounds of a refusal's texts, in characters.
const (
	maxMessage = 300
	maxFixHint = 300
)

// refusal is the problem of an answer that is not a success. body may be cut or anything at all.
func refusal(resp *http.Response, body []byte, statuses map[int]string) error {
	st := resp.StatusCode
	if st >= 300 && st < 400 {
		return redirected(resp, statuses != nil)
	}
	var b problemBody
	if json.Unmarshal(body, &b) != nil || !isCode(b.Code) {
		b = problemBody{}
	}
	p := &pluginv1.Problem{
		Code:              b.Code,
		Message:           sentence(first(b.Detail, b.Message, b.Title), maxMessage),
		HttpStatus:        uint32(st),
		RetryAfterSeconds: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	if knownCodes[b.Code] {
		p.FixHint = sentence(b.FixHint, maxFixHint)
	}
	switch {
	case st == http.StatusGatewayTimeout && b.Code == backendapi.CodeTimeout:
		// The backend served; the page did not answer.
	case st >= 500:
		// Whatever its reason: it did not serve, and may later.
		p.Code = codeUnreachable
	case statuses[st] != "":
		p.Code = statuses[st]
	case statuses != nil && st != http.StatusTooManyRequests:
		// No answer of this route: something stands between, and may not for ever.
		p.Code, b.Retryable, p.FixHint = codeUnreachable, nil, misfitHint
	case p.Code == "":
		p.Code = first(bareStatuses[st], codeInvalidResponse)
	}
	p.Retryable = retryable(p.Code)
	if b.Retryable != nil && st < 500 {
		p.Retryable = *b.Retryable
	}
	if p.Message == "" {
		p.Message = fmt.Sprintf("the backend answered %d %s", st, http.StatusText(st))
	}
	if p.Code == codeInvalidResponse && p.FixHint == "" {
		p.FixHint = misfitHint
	}
	if p.Code == backendapi.CodeAuthRequired && b.check() == nil {
		if err := checkForms(b.deviceCode); err != nil {
			return malformed(st, err.Error())
		}
		p.DeviceCode = b.proto()
	}
	b.record(p)
	return serve.Refuse(grpcCode(st), p)
}

// record tells of a record's refusal what its code has beside.
func (b problemBody) record(p *pluginv1.Problem) {
	switch p.GetCode() {
	case backendapi.CodePermissionDenied:
		const most = 64
		p.Capability, p.Field = printable(b.Capability, most), printable(b.Field, most)
		p.Needed, p.Granted = printable(b.Needed, most), printable(b.Granted, most)
	case backendapi.CodeVersionConflict:
		p.CurrentVersion = max(b.CurrentVersion, 0)
	}
}

// redirected is the problem of a redirect. Where a poll meets one, it may pass: a sign-in page of the network, say.
func redirected(resp *http.Response, polling bool) error {
	host := "elsewhere"
	if u, err := resp.Location(); err == nil && u.Host != "" {
		host = "to " + printable(u.Scheme+"://"+u.Host, 100)
	}
	p := &pluginv1.Problem{
		Code:       codeInvalidResponse,
		Message:    "the backend redirects " + host + ", which is not followed",
		HttpStatus: uint32(resp.StatusCode),
		FixHint:    "Set SERVICE_BACKEND_URL to the backend's own address.",
	}
	if polling {
		p.Code, p.Retryable = codeUnreachable, true
	}
	return serve.Refuse(codes.FailedPrecondition, p)
}

// malformed is the problem of a success that does not say what it must.
func malformed(st int, why string) error {
	return serve.Refuse(codes.Internal, &pluginv1.Problem{
		Code:       codeInvalidResponse,
		Message:    "the backend's answer cannot be used: " + why,
		HttpStatus: uint32(st),
		FixHint:    misfitHint,
	})
}

func retryable(code string) bool {
	switch code {
	case codeUnreachable, backendapi.CodeRateLimited, backendapi.CodeTimeout, backendapi.CodeAuthRequired, backendapi.CodeDeviceCodeDenied, backendapi.CodeDeviceCodeExpired:
		return true
	}
	return false
}

// retryAfter reads both forms of the header (RFC 9110 section 10.2.3), capped at an hour; 0 when absent or unreadable.
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

// isCode tells whether s can be one of the list's words.
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

// sentence makes a backend's words safe to show: one line of what prints, at most so many characters.
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

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
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
