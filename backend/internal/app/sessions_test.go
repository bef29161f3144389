package app

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
)

func TestSessionRoutes(t *testing.T) {
	b := startBackend(t)
	var s backendapi.CreatedSession
	if status := b.call("POST", "/api/sessions", `{"project":"com.example.hello","platform":"ios"}`,
		&s); status != http.StatusCreated || !s.Created {
		t.Fatalf("create: got status %d, session %+v, want 201", status, s)
	}
	if !regexp.MustCompile(`^ses_[a-z2-7]{20}$`).MatchString(s.SessionID) || s.SessionURL != b.url+"/s/"+s.SessionID ||
		s.AppEndpoint != strings.Replace(b.url, "http", "ws", 1)+"/api/sessions/"+s.SessionID+"/app" {
		t.Errorf("created session: got %+v, want an id and the URLs made from it", s.Session)
	}
	var again backendapi.CreatedSession
	if status := b.call("POST", "/api/sessions", `{"project":"com.example.hello","platform":"ios"}`,
		&again); status != http.StatusOK ||
		again.Created || again.SessionID != s.SessionID {
		t.Errorf("resume: got status %d, session %+v, want 200 and the same session", status, again)
	}
	var list backendapi.SessionList
	if status := b.call("GET", "/api/sessions", "", &list); status != http.StatusOK || len(list.Sessions) != 1 {
		t.Errorf("list: got status %d, sessions %+v, want 200 and one session", status, list)
	}
	var page map[string]json.RawMessage
	if status := b.call("GET", "/api/sessions/"+s.SessionID+"/events", "", &page); status != http.StatusOK ||
		string(page["events"]) != "[]" {
		t.Errorf("events: got status %d, events %s, want 200 and []", status, page["events"])
	}
	var closed map[string]any
	for range 2 {
		if status := b.call("DELETE", "/api/sessions/"+s.SessionID, "", &closed); status != http.StatusOK ||
			closed["state"] != "closed" || closed["closedAt"] == nil {
			t.Errorf("close: got status %d, session %+v, want a closed session", status, closed)
		}
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/api/sessions", `{"project":"hello"}`, 400, "invalid_request"},
		{"POST", "/api/sessions", `{"project":"a.b","platform":"tv"}`, 400, "invalid_request"},
		{"POST", "/api/sessions", `{"project":"a.b","deviceModel":"x"}`, 400, "invalid_request"},
		{"POST", "/api/sessions", `{"project":"a.b","colour":1}`, 400, "invalid_request"},
		{"GET", "/api/sessions/ses_missing", "", 404, "not_found"},
		{"DELETE", "/api/sessions/ses_missing", "", 404, "not_found"},
		{"GET", "/api/sessions/" + s.SessionID + "/events?since=-1", "", 400, "invalid_request"},
		{"GET", "/api/sessions/" + s.SessionID + "/events?limit=x", "", 400, "invalid_request"},
		{"POST", "/api/sessions/" + s.SessionID + "/secrets", "", 409, "conflict"},
	} {
		var p backendapi.Problem
		if status := b.call(c.method, c.path, c.body, &p); status != c.status || p.Code != c.code || p.FixHint == "" {
			t.Errorf("%s %s %s: got status %d, problem %+v, want the one in the table", c.method, c.path, c.body, status, p)
		}
	}
}
