package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

func TestStrictBodies(t *testing.T) {
	w := newWorld(t)
	token := w.link()
	padded := func(n int) string {
		return strings.Repeat(" ", n-len(`{"scope":"account_full"}`)) + `{"scope":"account_full"}`
	}
	for _, tc := range []struct {
		name, path, body string
		status           int
		code             string
	}{
		{"as documented", backendapi.PathDeviceCode, ` {"scope" : "account_full"} ` + "\n", 200, ""},
		{"64 KB", backendapi.PathDeviceCode, padded(64 << 10), 200, ""},
		{"over 64 KB", backendapi.PathDeviceCode, padded(64<<10 + 1), 413, "request_too_large"},
		{"wrong scope", backendapi.PathDeviceCode, `{"scope":"admin"}`, 400, "invalid_request"},
		{"scope in another case", backendapi.PathDeviceCode, `{"scope":"ACCOUNT_FULL"}`, 400, "invalid_request"},
		{"no scope", backendapi.PathDeviceCode, `{}`, 400, "invalid_request"},
		{"scope null", backendapi.PathDeviceCode, `{"scope":null}`, 400, "invalid_request"},
		{"scope a number", backendapi.PathDeviceCode, `{"scope":1}`, 400, "invalid_request"},
		{"scope a list", backendapi.PathDeviceCode, `{"scope":["account_full"]}`, 400, "invalid_request"},
		{"unknown field", backendapi.PathDeviceCode, `{"scope":"account_full","x":1}`, 400, "invalid_request"},
		{"name in another case", backendapi.PathDeviceCode, `{"SCOPE":"account_full"}`, 400, "invalid_request"},
		{"name that is right only after case folding", backendapi.PathDeviceCode, `{"ſcope":"account_full"}`, 400,
			"invalid_request"},
		{"field twice", backendapi.PathDeviceCode, `{"scope":"x","scope":"account_full"}`, 400, "invalid_request"},
		{"field twice in two cases", backendapi.PathDeviceCode, `{"scope":"account_full","Scope":"account_full"}`, 400,
			"invalid_request"},
		{"field twice, one escaped", backendapi.PathDeviceCode, `{"scope":"x","\u0073cope":"account_full"}`, 400,
			"invalid_request"},
		{"something behind", backendapi.PathDeviceCode, `{"scope":"account_full"}{}`, 400, "invalid_request"},
		{"noise behind", backendapi.PathDeviceCode, `{"scope":"account_full"}x`, 400, "invalid_request"},
		{"cut off", backendapi.PathDeviceCode, `{"scope":"account_full"`, 400, "invalid_request"},
		{"list", backendapi.PathDeviceCode, `[{"scope":"account_full"}]`, 400, "invalid_request"},
		{"null", backendapi.PathDeviceCode, `null`, 400, "invalid_request"},
		{"string", backendapi.PathDeviceCode, `"scope"`, 400, "invalid_request"},
		{"form", backendapi.PathDeviceCode, `scope=account_full`, 400, "invalid_request"},
		{"deep", backendapi.PathDeviceCode, `{"scope":` + strings.Repeat("[", 30_000), 400, "invalid_request"},
		{"token: unknown field", backendapi.PathDeviceToken, `{"deviceCode":"sdc_x","scope":"x"}`, 400, "invalid_request"},
		{"token: twice", backendapi.PathDeviceToken, `{"deviceCode":"sdc_x","deviceCode":"sdc_y"}`, 400, "invalid_request"},
		{"token: number", backendapi.PathDeviceToken, `{"deviceCode":7}`, 400, "invalid_request"},
		{"token: missing", backendapi.PathDeviceToken, `{}`, 400, "invalid_request"},
		{"session: unknown field", backendapi.PathSessions, `{"project":"a.b","account":"x"}`, 400, "invalid_request"},
		{"session: wrong type", backendapi.PathSessions, `{"project":"a.b","fresh":"yes"}`, 400, "invalid_request"},
		{"session: over 64 KB", backendapi.PathSessions, `{"project":"` + strings.Repeat("a", 64<<10) + `"}`, 413,
			"request_too_large"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var headers []string
			if tc.path == backendapi.PathSessions {
				headers = []string{"Authorization", "Bearer " + token}
			}
			got := w.call("POST", tc.path, tc.body, headers...)
			if tc.code == "" {
				got.is(tc.status)
				return
			}
			if p := got.problem(tc.status, tc.code); p.Retryable {
				t.Error("got a retryable problem for a request that can never succeed")
			}
		})
	}
}

func TestEmptyBody(t *testing.T) {
	w := newWorld(t)
	w.call("POST", backendapi.PathDeviceCode, "", "Content-Type", "application/json").problem(http.StatusBadRequest,
		"invalid_request")
}

func TestContentTypes(t *testing.T) {
	w := newWorld(t)
	for kind, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200,
		"": 415, "text/plain": 415, "text/json": 415, "application/x-www-form-urlencoded": 415, "application/json; =": 415,
		"multipart/form-data": 415,
	} {
		got := w.call("POST", backendapi.PathDeviceCode, `{"scope":"account_full"}`, "Content-Type", kind)
		if status == 200 {
			got.is(status)
		} else {
			got.problem(status, "unsupported_media")
		}
	}
}

// A truncated body is reported as the caller's error, not as an internal one.
func TestBody_EndsEarly(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.mux)
	defer server.Close()
	conn, err := server.Client().Post(server.URL+backendapi.PathDeviceCode, "application/json",
		&cutOff{left: []byte(`{"scope":"acc`)})
	if err == nil {
		defer conn.Body.Close()
		if conn.StatusCode != http.StatusBadRequest {
			t.Errorf("got status %d, want 400", conn.StatusCode)
		}
	}
	if strings.Contains(w.log.String(), `"level":"ERROR"`) {
		t.Errorf("a caller's error was logged as an internal one:\n%s", w.log)
	}
}

type cutOff struct{ left []byte }

func (c *cutOff) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, http.ErrBodyReadAfterClose
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func TestRoutes_Missing(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/api/", 404, "not_found", ""},
		{"GET", "/api/v1/account", 404, "not_found", ""},
		{"POST", "/api/auth/device", 404, "not_found", ""},
		{"GET", "/api/sessions/a/b/c", 404, "not_found", ""},
		{"GET", "/api/" + strings.Repeat("x", 5000), 404, "not_found", ""},
		{"GET", backendapi.PathDeviceCode, 405, "method_not_allowed", "POST"},
		{"PUT", backendapi.PathDeviceToken, 405, "method_not_allowed", "POST"},
		{"POST", backendapi.PathAccount, 405, "method_not_allowed", "GET"},
		{"DELETE", backendapi.PathHealth, 405, "method_not_allowed", "GET"},
		{"PATCH", backendapi.PathSessions, 405, "method_not_allowed", "GET, POST"},
		{"PUT", backendapi.PathProjects + "/com.example.app/assistant", 405, "method_not_allowed", "GET, PATCH"},
		{"POST", backendapi.PathSessions + "/ses_x", 405, "method_not_allowed", "GET, DELETE"},
		{"BREW", backendapi.PathSessions + "/ses_x/secrets", 405, "method_not_allowed", "POST"},
	} {
		got := w.call(tc.method, tc.path, "")
		got.problem(tc.status, tc.code)
		if allow := got.header.Get("Allow"); allow != tc.allow {
			t.Errorf("%s %s: got Allow %q, want %q", tc.method, tc.path, allow, tc.allow)
		}
		if len(got.body) > 1000 {
			t.Errorf("%s: got a response of %d bytes, want at most 1,000", got.what, len(got.body))
		}
	}
}

// FuzzDecode compares the strict decoder with encoding/json. An accepted body has only documented fields, each at most
// once and in its exact spelling.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"project":"a.b","platform":"ios","deviceModel":"rayban_display","fresh":true}`, `{}`, `null`, `[]`, ``,
		`{"project":"a"}{}`,
		`{"project":"a","project":"b"}`, `{"Project":"a"}`, `{"project":1}`, `{"fresh":null}`, `{"\u0070roject":"a"}`,
		"{\"project\":\"\xff\"}",
		`{"project":"a",}`, `{"project":{"project":"a"}}`, "\ufeff{}", `{"fresh":1e999}`, `{"":0}`,
	} {
		f.Add([]byte(seed))
	}
	known := []string{"project", "platform", "deviceModel", "fresh"}
	f.Fuzz(func(t *testing.T, data []byte) {
		var strict, plain backendapi.SessionRequest
		if err := decodeBytes(data, &strict); err != nil {
			if e := known400(err); e == nil || e.Message == "" || len([]rune(e.Message)) > 200 {
				t.Fatalf("%q: got %v, want a refusal with a short message", data, err)
			}
			return
		}
		if err := json.Unmarshal(data, &plain); err != nil || !reflect.DeepEqual(strict, plain) {
			t.Fatalf("%q: got %+v, want %+v as from encoding/json (error %v)", data, strict, plain, err)
		}
		if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatalf("%q was accepted, encoding/json refuses it: %v", data, err)
		}
		for name := range fields {
			if !slices.Contains(known, name) {
				t.Fatalf("%q was accepted with the unknown field %q", data, name)
			}
		}
	})
}

func known400(err error) *problem.Error {
	if e := refusalOf(err); e != nil && e.Code == problem.CodeInvalidRequest {
		return e
	}
	return nil
}
