package httpbackend

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// golden returns one of the example bodies of the contract.
func golden(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "proto", "backendapi", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestCallsGoWhereTheContractSays(t *testing.T) {
	type values = map[string]string
	for _, c := range []struct {
		call *pluginv1.CallRequest
		want string // expected method, path and query
	}{
		{&pluginv1.CallRequest{Route: backendapi.RouteProjects}, "GET /api/projects"},
		{&pluginv1.CallRequest{Route: backendapi.RouteRevokeLink}, "DELETE /api/account/link"},
		{&pluginv1.CallRequest{Route: backendapi.RouteChangeAssistant, Path: values{"project": "com.example.hello"},
			Body: []byte(`{"version":4,"voice":"<ember>"}`)}, "PATCH /api/projects/com.example.hello/assistant"},
		{&pluginv1.CallRequest{Route: backendapi.RouteCredentials, Path: values{"project": "a/b?c"}},
			"GET /api/projects/a%2Fb%3Fc/credentials"},
		{&pluginv1.CallRequest{Route: backendapi.RouteCredentialLink, Body: []byte(`{}`),
			Path: values{"project": "{id}", "id": "../x"}}, "POST /api/projects/%7Bid%7D/credentials/..%2Fx/link"},
		{&pluginv1.CallRequest{Route: backendapi.RouteAnalytics, Path: values{"project": "a"},
			Query: values{"range": "7d", "interval": "day&x=1"}}, "GET /api/projects/a/analytics?interval=day%26x%3D1&range=7d"},
	} {
		var got, sent string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got, sent = r.Method+" "+r.RequestURI, string(body)
			if r.Header.Get("Authorization") != "Bearer svc_1" {
				t.Errorf("%s was sent without the bearer, with headers %v", got, r.Header)
			}
			if typ := r.Header.Get("Content-Type"); (typ == "application/json") != (len(body) > 0) {
				t.Errorf("%s: content type %q for the body %s", got, typ, body)
			}
			_, _ = io.WriteString(w, `{}`)
		}))
		c.call.Target = &pluginv1.Target{BaseUrl: srv.URL, Credential: &pluginv1.Target_Bearer{Bearer: "svc_1"}}
		_, err := New("x").Call(t.Context(), c.call)
		srv.Close()
		if err != nil || got != c.want || sent != string(c.call.GetBody()) {
			t.Errorf("want request %s, got %s with body %q, error %v", c.want, got, sent, err)
		}
	}
}

func TestCallsThatAreNone(t *testing.T) {
	type values = map[string]string
	for _, r := range []*pluginv1.CallRequest{
		{}, {Route: "GET /api/keys"}, {Route: "GET /api/sessions/{id}/app", Path: values{"id": "ses_1"}},
		{Route: backendapi.RouteAssistant}, {Route: backendapi.RouteAssistant, Path: values{"project": ".."}},
		{Route: backendapi.RouteCredentialLink, Path: values{"project": "a"}},
		{Route: backendapi.RouteCredentialLink, Path: values{"project": "a", "id": "."}},
	} {
		r.Target = answer(t, 200, nil, `{}`)
		_, err := New("x").Call(t.Context(), r)
		if p := problemOf(t, err); p.Code != "invalid_request" || p.FixHint == "" {
			t.Errorf("%v: got %v, want invalid_request with a fixHint", r, p)
		}
	}
}

func TestRecordRefusalsTellWhatIsLacking(t *testing.T) {
	ask := func(st int, body string) *pluginv1.Problem {
		_, err := call(t, answer(t, st, nil, body), backendapi.RouteAssistant)
		return problemOf(t, err)
	}
	p := ask(403, golden(t, "permission_denied"))
	if p.Code != "permission_denied" || p.Capability != "assistant_config" || p.Field != "voice" ||
		p.Needed != "read_write" || p.Granted != "read" || p.Retryable {
		t.Errorf("got %v, want permission_denied with its fields", p)
	}
	p = ask(409, golden(t, "version_conflict"))
	if p.Code != "version_conflict" || p.CurrentVersion != 9007199254740993 || p.Capability != "" {
		t.Errorf("got %v, want version_conflict with the current version", p)
	}
	p = ask(409, `{"code":"not_configured","detail":"the operator set no key","capability":"x","currentVersion":3}`)
	if p.Code != "not_configured" || p.Retryable || p.Capability != "" || p.CurrentVersion != 0 {
		t.Errorf("got %v, want not_configured without other fields", p)
	}
	p = ask(403, `{"code":"permission_denied","capability":"a\nb`+strings.Repeat("x", 500)+`"}`)
	if len(p.Capability) != 64 || strings.Contains(p.Capability, "\n") {
		t.Errorf("the capability is not a bounded line: %v", p)
	}
}
