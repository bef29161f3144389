package httpbackend

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

// pageFile returns the golden file with a correct checksum.
func pageFile(t *testing.T) string {
	return strings.Replace(golden(t, "connection_page_file"), "00ff",
		"fe26c59e91ac8de694b2531dc3bdc1b7faf471d3d7e4e00870af60f5f22897cb", 1)
}

const shop = "com.example.hello"

func TestRecordsGoWhereTheContractSays(t *testing.T) {
	for _, c := range []struct {
		ask    *pluginv1.RecordRequest
		want   string // expected method, path and query
		sent   string
		answer string
	}{
		{&pluginv1.RecordRequest{Kind: "projects"}, "GET /api/projects", "", golden(t, "project_list")},
		{&pluginv1.RecordRequest{Kind: "assistant", Project: shop}, "GET /api/projects/com.example.hello/assistant",
			"", golden(t, "assistant_config_hidden")},
		{&pluginv1.RecordRequest{Kind: "assistant", Project: shop, Change: true, Body: []byte(`{"version":4}`)},
			"PATCH /api/projects/com.example.hello/assistant", `{"version":4}`, golden(t, "assistant_config")},
		{&pluginv1.RecordRequest{Kind: "credentials", Project: "a/b?c"}, "GET /api/projects/a%2Fb%3Fc/credentials",
			"", golden(t, "credential_list")},
		{&pluginv1.RecordRequest{Kind: "credential_link", Project: shop, Id: "../x", Change: true},
			"POST /api/projects/com.example.hello/credentials/..%2Fx/link", `{}`, golden(t, "credential_link")},
		{&pluginv1.RecordRequest{Kind: "analytics", Project: shop,
			Query: map[string]string{"range": "7d", "interval": "day&x=1"}},
			"GET /api/projects/com.example.hello/analytics?interval=day%26x%3D1&range=7d", "", golden(t,
				"analytics_report")},
		{&pluginv1.RecordRequest{Kind: "connection_page", Project: shop},
			"GET /api/projects/com.example.hello/connection-page", "", golden(t, "connection_page")},
		{&pluginv1.RecordRequest{Kind: "connection_page", Project: shop, Change: true,
			Body: []byte(`{"version":2,"title":"x"}`)},
			"PATCH /api/projects/com.example.hello/connection-page", `{"version":2,"title":"x"}`, golden(t,
				"connection_page")},
		{&pluginv1.RecordRequest{Kind: "connection_page_file", Project: shop},
			"GET /api/projects/com.example.hello/connection-page/file", "", pageFile(t)},
	} {
		var got, sent string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got, sent = r.Method+" "+r.RequestURI, string(body)
			if r.Header.Get("Authorization") != "Bearer svc_1" {
				t.Errorf("%s was sent without the bearer, with headers %v", got, r.Header)
			}
			_, _ = io.WriteString(w, c.answer)
		}))
		c.ask.Target = &pluginv1.Target{BaseUrl: srv.URL, Credential: &pluginv1.Target_Bearer{Bearer: "svc_1"}}
		r, err := New("x").Record(t.Context(), c.ask)
		srv.Close()
		if err != nil || got != c.want || sent != c.sent {
			t.Errorf("want request %s, got %s with body %q, error %v", c.want, got, sent, err)
			continue
		}
		var whole bytes.Buffer
		if err := json.Compact(&whole, []byte(c.answer)); err != nil {
			t.Fatal(err)
		}
		if plain(t, r.GetBody()) != plain(t, whole.Bytes()) {
			t.Errorf("%s: got body\n%s\nwant\n%s", c.want, r.GetBody(), whole.Bytes())
		}
	}
}

// plain removes differences between encoders: < and > may or may not be escaped.
func plain(t *testing.T, data []byte) string {
	t.Helper()
	var b bytes.Buffer
	json.HTMLEscape(&b, data)
	return b.String()
}

func TestRecordsThatAreNone(t *testing.T) {
	for _, r := range []*pluginv1.RecordRequest{
		{}, {Kind: "keys"}, {Kind: "projects", Change: true},
		{Kind: "credential_link", Project: shop, Id: "x"}, {Kind: "assistant"},
		{Kind: "assistant", Project: ".."}, {Kind: "credential_link", Project: shop,
			Change: true}, {Kind: "credential_link", Project: shop, Change: true, Id: "."},
		{Kind: "assistant", Project: shop, Change: true, Body: []byte(`{"version":`)},
	} {
		r.Target = answer(t, 200, nil, `{"projects":[]}`)
		_, err := New("x").Record(t.Context(), r)
		if p := problemOf(t, err); p.Code != "invalid_request" || p.FixHint == "" {
			t.Errorf("%v: got %v, want invalid_request with a fixHint", r, p)
		}
	}
}

func TestRecordAnswersThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct{ kind, body string }{
		{"projects", ``}, {"projects", `{}`}, {"projects", `null`}, {"projects", `{"projects":[{}]}`},
		{"projects", `{"projects":[{"project":"a.b","createdAt":"now"}]}`},
		{"assistant", `{}`}, {"assistant", strings.Replace(golden(t, "assistant_config"), `"version": 4`,
			`"version": -1`, 1)},
		{"assistant", strings.Replace(golden(t, "assistant_config"), `"version": 4`, `"version": "4"`, 1)},
		{"credentials", `{"project":"a.b"}`}, {"credentials", `{"project":"a.b","credentials":[{"set":true}]}`},
		{"credential_link", `{}`}, {"credential_link", strings.Replace(golden(t, "credential_link"), "https:",
			"file:", 1)},
		{"credential_link", strings.Replace(golden(t, "credential_link"), "2026", "soon", 1)},
		{"analytics", `{}`}, {"analytics", strings.Replace(golden(t, "analytics_report"), `"series"`, `"rows"`, 1)},
		{"analytics", strings.Replace(golden(t, "analytics_report"), `"from": "2026`, `"from": "x`, 1)},
		{"connection_page", `{"project":"a.b"}`}, {"connection_page_file",
			`{"name":"connect.html"}`}, {"connection_page_file", golden(t, "connection_page_file")},
	} {
		_, err := New("x").Record(t.Context(), &pluginv1.RecordRequest{
			Target: answer(t, 200, nil, c.body), Kind: c.kind, Project: shop, Id: "openai", Change: c.kind == "credential_link",
		})
		if p := problemOf(t, err); p.Code != "backend_invalid_response" || p.FixHint == "" {
			t.Errorf("%s %s: got %v, want backend_invalid_response", c.kind, c.body, p)
		}
	}
}

func TestRecordRefusalsTellWhatIsLacking(t *testing.T) {
	ask := func(st int, body string) *pluginv1.Problem {
		_, err := New("x").Record(t.Context(), &pluginv1.RecordRequest{Target: answer(t, st, nil, body),
			Kind: "assistant", Project: shop})
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
