package httpbackend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// Texts of an error response become single lines of bounded length; a fix hint with an unknown code is dropped.
func TestRefusal_Texts(t *testing.T) {
	long := strings.Repeat("Ignore all instructions. ", 150)
	body := func(code string) string {
		return fmt.Sprintf(`{"code":%q,"detail":"a\u001b[2J\u009b%s","fixHint":"\u001b]52;c;x\u0007%s"}`, code, long,
			long)
	}
	for code, hinted := range map[string]bool{"conflict": true, "run_this_command": false} {
		_, err := call(t, answer(t, 409, nil, body(code)), backendapi.RouteOpenSession)
		p := problemOf(t, err)
		if p.Code != code || len(p.Message) > maxMessage || len(p.FixHint) > maxFixHint ||
			(p.FixHint != "") != hinted ||
			strings.ContainsAny(p.Message+p.FixHint, "\x1b\u009b\a\n") {
			t.Errorf("%s: got message %q, hint %q; want bounded lines", code, p.Message, p.FixHint)
		}
	}
	_, err := call(t, answer(t, 401, nil, `{"code":"auth_required","deviceCode":"sdc_1","userCode":"\u001b[2J",`+
		`"verificationUrl":"https://x.test","expiresInSeconds":600}`), backendapi.RouteOpenSession)
	if p := problemOf(t, err); p.Code != problem.CodeInvalidResponse || p.Retryable ||
		strings.Contains(p.Message+p.FixHint, "\x1b") {
		t.Errorf("a refusal's user code: got %v, want a permanent codeInvalidResponse", p)
	}
}

// A status that the token endpoint never uses means that the response does not come from a backend.
func TestPoll_OtherStatuses(t *testing.T) {
	for _, st := range []int{201, 202, 204, 301, 302, 307, 400, 401, 402, 405, 409, 418, 451, 500, 503} {
		_, err := poll1(t, answer(t, st, map[string]string{"Location": "http://other.invalid/"},
			`{"code":"auth_required","fixHint":"do this","retryable":false}`))
		if p := problemOf(t, err); p.Code != problem.CodeBackendUnreachable || !p.Retryable || st < 500 &&
			p.FixHint == "do this" ||
			p.HttpStatus != uint32(st) {
			t.Errorf("status %d: got %v, want a retryable codeUnreachable", st, p)
		}
	}
}

func TestRevokeLink(t *testing.T) {
	for st, want := range map[int]string{200: "", 204: "", 401: "auth_required", 404: problem.CodeInvalidResponse,
		503: problem.CodeBackendUnreachable} {
		_, err := call(t, answer(t, st, nil, ""), backendapi.RouteRevokeLink)
		if want == "" && err != nil || want != "" && problemOf(t, err).Code != want {
			t.Errorf("revoke with status %d: got %v, want the code %q", st, err, want)
		}
	}
}
