package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/internal/problem"
)

func TestGatedTools_AskForALink(t *testing.T) {
	for tool, args := range map[string]string{
		"createSimulatorSession": `{}`, "getSessionStatus": `{"sessionId":"` + testID + `"}`,
		"getEventLog": `{}`, "closeSession": `{"sessionId":"` + testID + `"}`,
		"getDisplayState": `{}`, "injectInput": `{"kind":"tap"}`, "waitForEvent": `{}`,
		"expectDisplay": `{"text":["Hello"]}`,
	} {
		w := newWorld()
		result, fields := w.call(t, tool, args, IO{})
		want := map[string]any{
			"status": "auth_required", "code": "auth_required", "retryable": true, "deviceCode": testDevice,
			"userCode":        testUser,
			"verificationUrl": testURL, "expiresInSeconds": 600.0, "reason": "not_linked", "browserOpened": true,
		}
		for field, value := range want {
			if fields[field] != value {
				t.Errorf("%s: %s is %v, want %v", tool, field, fields[field], value)
			}
		}
		hint, _ := fields["fixHint"].(string)
		if result.IsError || !strings.Contains(hint, testUser) || !strings.Contains(hint, testURL) ||
			!strings.Contains(hint, "completeAuthLink") {
			t.Errorf("%s: error %v, hint %q; want the code and the page in the hint", tool, result.IsError, hint)
		}
		if len(w.browsed) != 1 || w.browsed[0] != testURL {
			t.Errorf("%s: opened %v, want the page of the code", tool, w.browsed)
		}
		if w.gated == nil || w.gated.Tool != tool || w.gated.Caller.Cwd != "/home/a/app" {
			t.Errorf("%s: the stored call is %+v, want this call from /home/a/app", tool, w.gated)
		}
	}
}

func TestGate_OpensThePage(t *testing.T) {
	for _, test := range []struct {
		args  string
		shown bool
		want  int
	}{
		{`{}`, false, 1}, {`{}`, true, 0},
		{`{"openBrowser":false}`, false, 0}, {`{"openBrowser":true}`, true, 1},
	} {
		w := newWorld()
		w.shown = test.shown
		_, fields := w.call(t, "createSimulatorSession", test.args, IO{})
		if len(w.browsed) != test.want || fields["browserOpened"] != (test.want == 1) {
			t.Errorf("%s, shown %v: opened %v", test.args, test.shown, w.browsed)
		}
	}
}

func TestCreateSimulatorSession(t *testing.T) {
	for _, test := range []struct {
		args    string
		created bool
		status  string
		browsed int
	}{
		{`{}`, true, "active", 1}, {`{}`, false, "resumed", 0},
		{`{"openBrowser":false}`, true, "active", 0}, {`{"openBrowser":true}`, false, "resumed", 1},
	} {
		w := newWorld().linked()
		w.opened.Created = test.created
		_, fields := w.call(t, "createSimulatorSession", test.args, IO{})
		want := map[string]any{
			"status": test.status, "sessionId": testID, "project": "com.example.app", "platform": "web",
			"deviceModel": "rayban_display",
			"sessionUrl":  w.opened.SessionURL, "appEndpoint": w.opened.AppEndpoint, "appTokenFile": w.opened.AppTokenFile,
			"expiresAt": "2026-01-03T03:04:05Z",
		}
		for field, value := range want {
			if fields[field] != value {
				t.Errorf("%s: %s is %v, want %v", test.args, field, fields[field], value)
			}
		}
		if len(w.browsed) != test.browsed {
			t.Errorf("%s %s: opened %v", test.args, test.status, w.browsed)
		}
	}
	w := newWorld().linked()
	w.call(t, "createSimulatorSession", `{"project":"a.b","platform":"ios","deviceModel":"even_g1","fresh":true}`, IO{})
	if r := w.request; r.Project != "a.b" || r.Platform != "ios" || r.DeviceModel != "even_g1" || !r.Fresh ||
		w.caller.Cwd != "/home/a/app" {
		t.Errorf("requested %+v, want the arguments passed on", r)
	}
}

func TestGate_AsksAgainAfterRevocation(t *testing.T) {
	w := newWorld().linked()
	w.sessionErr = &problem.Error{Code: problem.CodeAuthRequired, Message: "the token was revoked", HTTPStatus: 401}
	result, fields := w.call(t, "createSimulatorSession", `{}`, IO{})
	if result.IsError || fields["status"] != "auth_required" || fields["reason"] != "revoked" ||
		fields["userCode"] != testUser {
		t.Errorf("answered %v", fields)
	}
	if summary, _ := fields["summary"].(string); !strings.Contains(summary, "revoked") {
		t.Errorf("summary %q does not say that the link was revoked", summary)
	}
	if len(w.revoked) != 1 || w.revoked[0] != testToken {
		t.Errorf("tokens marked as revoked: %v, want the link's", w.revoked)
	}
}

func TestCompleteAuthLink(t *testing.T) {
	w := newWorld()
	w.call(t, "createSimulatorSession", `{"openBrowser":false}`, IO{})
	result, fields := w.call(t, "completeAuthLink", `{"deviceCode":"`+testDevice+`"}`, IO{})
	if result.IsError || fields["linked"] != true || fields["tier"] != "free_account" || fields["accountId"] != "acc" ||
		fields["linkedAt"] != "2026-01-02T03:04:05Z" || fields["pollCount"] != 4.0 {
		t.Errorf("answered %v", fields)
	}
	if value, present := fields["expiresAt"]; !present || value != nil {
		t.Errorf("expiresAt is %v, present %v; want null", value, present)
	}
	file, _ := fields["authTokenFile"].(map[string]any)
	if value, present := file["error"]; file["path"] != "/state/auth.json" || file["written"] != true || !present ||
		value != nil {
		t.Errorf("authTokenFile is %v, want it written", file)
	}
	retried, _ := fields["retried"].(map[string]any)
	if retried["status"] != "active" || retried["sessionId"] != testID || fields["retriedTool"] != "createSimulatorSession" {
		t.Errorf("retried is %v of %v, want the active session", retried, fields["retriedTool"])
	}
	if w.caller.Cwd != "/home/a/app" || len(w.browsed) != 1 || w.browsed[0] != testURL {
		t.Errorf("retried for %+v, opened %v; want the first caller and the page of the code", w.caller, w.browsed)
	}
	if strings.Contains(result.Text, testToken) {
		t.Error("the answer contains the token")
	}
}

// TestCompleteAuthLink_NamesTheRetriedTool links on behalf of a tool other than createSimulatorSession.
func TestCompleteAuthLink_NamesTheRetriedTool(t *testing.T) {
	w := newWorld()
	w.call(t, "listProjects", `{"openBrowser":false}`, IO{})
	_, fields := w.call(t, "completeAuthLink", `{"deviceCode":"`+testDevice+`"}`, IO{})
	if summary, _ := fields["summary"].(string); fields["retriedTool"] != "listProjects" ||
		!strings.Contains(summary, "The call of listProjects") {
		t.Errorf("answered %v", fields)
	}
	_, fields = w.call(t, "completeAuthLink", `{"deviceCode":"`+testDevice+`x"}`, IO{})
	if _, named := fields["retriedTool"]; named || strings.Contains(fields["summary"].(string), "The call of") {
		t.Errorf("without a stored call: %v, want no retry", fields)
	}
}

func TestFresh_ReportsWhatClosePreviousDid(t *testing.T) {
	const other = "loc_zzzzzzzzzzzzzzzzzzzz"
	for tool, opened := range map[string]string{"startLocalSimulation": testLocal, "createSimulatorSession": testID} {
		for _, replaced := range []session.Replaced{{Closed: other}, {WhyNot: other + " belongs to com.example.other"}} {
			w := newWorld().linked()
			w.opened.SessionID, w.opened.Clock, w.replaced = opened, "real", replaced
			if _, fields := w.call(t, tool, `{"fresh":true}`, IO{}); len(w.closed) > 0 || fields["notClosed"] != nil {
				t.Errorf("%s without closePrevious: %v, want no session closed", tool, fields)
			}
			_, fields := w.call(t, tool, `{"fresh":true,"closePrevious":true}`, IO{})
			closed, _ := fields["closedSessionId"].(string)
			why, _ := fields["notClosed"].(string)
			summary, _ := fields["summary"].(string)
			if !slices.Equal(w.closed, []string{opened}) || closed != replaced.Closed || why != replaced.WhyNot ||
				!strings.Contains(summary, replaced.Closed+replaced.WhyNot) {
				t.Errorf("%s: got %v, want %+v in the answer and its summary", tool, fields, replaced)
			}
		}
	}
	if _, fields := newWorld().call(t, "startLocalSimulation", `{"closePrevious":true}`,
		IO{}); fields["code"] != problem.CodeInvalidRequest {
		t.Errorf("closePrevious without fresh: %v, want it refused", fields)
	}
}

func TestCompleteAuthLink_SharesTheRetriedCall(t *testing.T) {
	w := newWorld()
	c := w.catalogue()
	c.Call(t.Context(), "createSimulatorSession", json.RawMessage(`{"fresh":true}`), IO{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			result := c.Call(t.Context(), "completeAuthLink", json.RawMessage(`{"deviceCode":"`+testDevice+`"}`), IO{})
			if !strings.Contains(result.Text, `"retried":{"status":"active"`) {
				t.Errorf("answered %s", result.Text)
			}
		})
	}
	all.Wait()
	if w.opens != 1 {
		t.Errorf("the call was repeated %d times, want 1", w.opens)
	}
	if result := c.Call(t.Context(), "completeAuthLink", json.RawMessage(`{"deviceCode":"sdc_other"}`),
		IO{}); !strings.Contains(result.Text, `"retried":null`) {
		t.Errorf("a code without a stored call: %s, want no retry", result.Text)
	}
}

func TestRetries_AreBounded(t *testing.T) {
	r := newRetries()
	runs := 0
	for i := range 3 * maxRetries {
		for range 2 {
			r.of(t.Context(), strconv.Itoa(i), func() (string, json.RawMessage) { runs++; return "", null })
		}
	}
	if runs != 3*maxRetries || len(r.byCode.values) != maxRetries || len(r.byCode.order) != maxRetries {
		t.Errorf("%d calls, %d remembered; want at most maxRetries remembered", runs, len(r.byCode.values))
	}
}

func TestCompleteAuthLink_ClampsWaits(t *testing.T) {
	for _, test := range []struct {
		args          string
		max, interval time.Duration
	}{
		{``, 600 * time.Second, 5 * time.Second},
		{`,"maxWaitSeconds":0,"pollIntervalSeconds":0`, time.Second, time.Second},
		{`,"maxWaitSeconds":601,"pollIntervalSeconds":31`, 600 * time.Second, 30 * time.Second},
		{`,"maxWaitSeconds":-5,"pollIntervalSeconds":-5`, time.Second, time.Second},
		{`,"maxWaitSeconds":1e300,"pollIntervalSeconds":7.0`, 600 * time.Second, 7 * time.Second},
		{`,"maxWaitSeconds":null`, 600 * time.Second, 5 * time.Second},
	} {
		w := newWorld()
		w.call(t, "completeAuthLink", `{"deviceCode":"x"`+test.args+`}`, IO{})
		if w.wait.Max != test.max || w.wait.Interval != test.interval {
			t.Errorf("%s: waits %v, polls every %v", test.args, w.wait.Max, w.wait.Interval)
		}
	}
}

func TestCompleteAuthLink_Errors(t *testing.T) {
	for code, retryable := range map[string]bool{
		problem.CodeUnknownDeviceCode: false, problem.CodeDeviceCodeExpired: true, problem.CodeDeviceCodeDenied: true,
		problem.CodeBackendUnreachable: true, problem.CodeInvalidResponse: false, problem.CodeAuthTimeout: true,
	} {
		w := newWorld()
		w.complete = func(context.Context, link.Wait) error {
			return &problem.Error{Code: code, Message: "no link", Retryable: retryable}
		}
		result, fields := w.call(t, "completeAuthLink", `{"deviceCode":"x"}`, IO{})
		if !result.IsError || fields["code"] != code || fields["retryable"] != retryable {
			t.Errorf("%s: %v", code, fields)
		}
		if want := problem.Of(code).FixHint; want != "" && fields["fixHint"] != want {
			t.Errorf("%s: fixHint %q, want %q", code, fields["fixHint"], want)
		}
	}
}

func TestProgress_OnlyGrows(t *testing.T) {
	w := newWorld()
	w.complete = func(_ context.Context, wait link.Wait) error {
		for i := range 4 {
			wait.OnPoll(link.PollEvent{PollCount: i + 1, Remaining: wait.Max - time.Duration(i/2)*time.Second})
		}
		return nil
	}
	last := -1.0
	count := 0
	w.call(t, "completeAuthLink", `{"deviceCode":"x"}`, IO{Progress: func(done, total float64, message string) {
		if count++; done <= last || total != 600 || message == "" {
			t.Errorf("progress %v of %v after %v with message %q; want it to grow", done, total, last, message)
		}
		last = done
	}})
	if count != 4 {
		t.Errorf("%d notifications for 4 polls, want 4", count)
	}
}

func TestCompleteAuthLink_EndsWhenCancelled(t *testing.T) {
	w := newWorld()
	w.complete = func(ctx context.Context, _ link.Wait) error {
		<-ctx.Done()
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	result, fields := w.callIn(ctx, t, "completeAuthLink", `{"deviceCode":"x"}`, IO{})
	if !result.IsError || fields["code"] != problem.CodeCancelled {
		t.Errorf("answered %v", fields)
	}
}

// The filters of getEventLog return rows of one type or chip, and read on after the last row that was looked at.
func TestGetEventLog_Filters(t *testing.T) {
	w := newWorld().locally()
	const row = `{"seq":%d,"kind":"%s","chip":"%s","type":"%s","sender":"app","payload":{}}`
	w.page = rows(
		fmt.Sprintf(row, 1, "request", "display", "display.show"), fmt.Sprintf(row, 2, "event", "custom", "score"),
		fmt.Sprintf(row, 3, "request", "display", "display.show"), fmt.Sprintf(row, 4, "event", "custom", "score"))
	for args, want := range map[string]string{
		`{"type":"display.show"}`:           "2 rows, next 4, more false",
		`{"type":"display.show","limit":1}`: "1 rows, next 2, more true",
		`{"chip":"custom"}`:                 "2 rows, next 4, more false",
		`{"type":"input"}`:                  "0 rows, next 4, more false",
		`{"type":"input","chip":"voice"}`:   "invalid_request",
	} {
		_, fields := w.call(t, "getEventLog", args, IO{})
		events, _ := fields["events"].([]any)
		got := fmt.Sprintf("%d rows, next %v, more %v", len(events), fields["next"], fields["more"])
		if got != want && fields["code"] != want {
			t.Errorf("%s: got %s (%v), want %s", args, got, fields["code"], want)
		}
	}
}

func TestSessionTools(t *testing.T) {
	w := newWorld().linked()
	_, fields := w.call(t, "getSessionStatus", `{}`, IO{})
	if list, _ := fields["sessions"].([]any); len(list) != 1 || fields["session"] != nil {
		t.Errorf("listed %v", fields)
	}
	_, fields = w.call(t, "getSessionStatus", `{"sessionId":"`+testID+`"}`, IO{})
	if s, _ := fields["session"].(map[string]any); s["state"] != "open" || s["lastSeq"] != 3.0 || s["closedAt"] != nil {
		t.Errorf("status is %v, want the open session", fields)
	}
	_, fields = w.call(t, "getEventLog", `{"since":2,"limit":9999}`, IO{})
	if fields["sessionId"] != testID || fields["next"] != 1.0 || fields["more"] != true || w.since != 2 ||
		w.limit != 500 {
		t.Errorf("log %v, requested since %d limit %d; want row 1, since 2 and limit 500", fields, w.since, w.limit)
	}
	_, fields = w.call(t, "closeSession", `{"sessionId":"`+testID+`"}`, IO{})
	if fields["status"] != "closed" || fields["closedAt"] != "2026-01-02T03:04:05Z" {
		t.Errorf("closed: %v", fields)
	}
	w.open = nil
	_, fields = w.call(t, "getSessionStatus", ``, IO{})
	if list, ok := fields["sessions"].([]any); !ok || len(list) != 0 {
		t.Errorf("without a session: %v, want an empty list", fields)
	}
	if _, fields = w.call(t, "getEventLog", ``, IO{}); fields["code"] != problem.CodeNotFound {
		t.Errorf("the log of a missing session: %v, want not_found", fields)
	}
}

func TestWhoAmI(t *testing.T) {
	for _, state := range []account.State{account.NotLinked, account.Linked, account.Revoked, account.Expired,
		account.Corrupt, account.OtherBackend} {
		w := newWorld().linked()
		w.link.State = state
		if state == account.NotLinked || state == account.Corrupt {
			w.link = account.Link{State: state}
		}
		result, fields := w.call(t, "whoAmI", `{}`, IO{})
		linked := state == account.Linked
		if fields["state"] != string(state) || fields["linked"] != linked || fields["installId"] != "inst_1" ||
			fields["backendUrl"] != "embedded:x" {
			t.Errorf("%s: %v", state, fields)
		}
		if (fields["tier"] != nil) != linked || strings.Contains(result.Text, testToken) {
			t.Errorf("%s: %s", state, result.Text)
		}
	}
}

// A tool cannot complete a code if the account is linked at another backend. The answer reports that before the user
// opens a page.
func TestAuthRequired_OtherBackendIsLinked(t *testing.T) {
	code := link.Code{DeviceCode: backend.DeviceCode{UserCode: testUser, VerificationURL: testURL},
		Replaces: account.Link{State: account.Linked, AccountID: "acc", BackendURL: "embedded:x"}}
	got := authRequired(code, account.OtherBackend, false)
	if !strings.Contains(got.FixHint, "servicectl login --replace") ||
		strings.Contains(got.FixHint+got.Summary, "embedded:") {
		t.Errorf("%+v", got)
	}
	if !conflicting(code, account.OtherBackend) {
		t.Error("the page would be opened")
	}
	code.Replaces.State = account.Revoked
	if got := authRequired(code, account.OtherBackend, false); !strings.Contains(got.FixHint, testUser) ||
		conflicting(code, account.OtherBackend) {
		t.Errorf("a revoked link: %+v, want a request to link again", got)
	}
}
