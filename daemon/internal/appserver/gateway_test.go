package appserver

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/clientio/local"
)

// gateway sets a session's script, attaches an app and returns the gateway from its welcome.
func gateway(t *testing.T, m *session.Manager, s session.Opened) glasses.Gateway {
	t.Helper()
	const script = `{"rules":[{"when":{"contains":"milk"},"reply":{"text":"It is on the list."}},` +
		`{"when":{"contains":"outage"},"reply":{"error":{"code":"provider_busy"}}},` +
		`{"when":{"contains":"slow"},"reply":{"text":"never","delayMs":60000}}]}`
	path := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := m.StartLocal(t.Context(), caller.Caller{IO: local.New()},
		session.LocalRequest{Project: "com.example.app", AssistantScript: path}); err != nil {
		t.Fatal(err)
	}
	return welcomeGateway(t, s)
}

// welcomeGateway attaches an app to a session and returns the gateway in its welcome.
func welcomeGateway(t *testing.T, s session.Opened) glasses.Gateway {
	t.Helper()
	ws, err := dial(t, s.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	send(t, ws, helloFrame(secretOf(t, s)))
	f, err := until(t, ws, func(f glasses.Frame) bool { return f.Type == glasses.TypeWelcome })
	if err != nil {
		t.Fatal(err)
	}
	var w glasses.Welcome
	if err := json.Unmarshal(f.Payload, &w); err != nil || w.Gateway == nil {
		t.Fatalf("%s %v", f.Payload, err)
	}
	return *w.Gateway
}

// ask calls the gateway like an official client, with additional headers.
func ask(t *testing.T, g glasses.Gateway, method, path, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, g.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+g.Token)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

func says(text, more string) string {
	return `{"model":"assistant","messages":[{"role":"user","content":"` + text + `"}]` + more + `}`
}

func TestGateway_AnswersAsOfficialClientsExpect(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{})
	g := gateway(t, m, s)
	const chat = "/chat/completions"
	long := says(strings.Repeat("x", maxChat), "")
	for _, c := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		want                     string
	}{
		{"whole", "POST", chat, says("milk", ""), nil, 200, `"content":"It is on the list."`},
		{"key in the other header", "POST", chat, says("milk", ""), []string{"Authorization", "", "X-Api-Key", g.Token}, 200,
			"It is on the list."},
		{"streamed", "POST", chat, says("milk", `,"stream":true`), nil, 200, `"delta":{"content":"list."}`},
		{"end of a stream", "POST", chat, says("milk", `,"stream":true,"stream_options":{"include_usage":true}`), nil, 200,
			"\"total_tokens\":6}}\n\ndata: [DONE]\n\n"},
		{"error of the script", "POST", chat, says("outage", ""), nil, 503, `"code":"provider_busy"`},
		{"no rule", "POST", chat, says("hello", ""), nil, 400, `"code":"script_no_rule"`},
		{"models", "GET", "/models", "", nil, 200, `{"id":"assistant","object":"model"`},
		{"one model", "GET", "/models/script", "", nil, 200, `"id":"script"`},
		{"no such model", "GET", "/models/gpt", "", nil, 404, `"code":"model_not_found"`},
		{"another interface", "POST", "/responses", "{}", nil, 404, `"code":"not_found"`},
		{"no token", "POST", chat, says("milk", ""), []string{"Authorization", ""}, 401, `"code":"invalid_key"`},
		{"wrong token", "GET", "/models", "", []string{"Authorization", "Bearer sgt_wrong"}, 401, `"code":"invalid_key"`},
		{"no JSON", "POST", chat, "hello", []string{"Content-Type", "text/plain"}, 415, `"code":"unsupported_media_type"`},
		{"too large", "POST", chat, long, nil, 413, `"code":"body_too_large"`},
		{"a page of another site", "POST", chat, says("milk", ""), []string{"Origin", "https://evil.example"}, 403,
			"pages of"},
	} {
		status, _, text := ask(t, g, c.method, c.path, c.body, c.header...)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %.300s", c.name, status, text)
		}
	}
	if _, h, _ := ask(t, g, "POST", chat, says("outage", "")); h.Get("Retry-After") != "1" {
		t.Errorf("%v", h)
	}
	status, h, _ := ask(t, g, "OPTIONS", chat, "",
		"Origin", "http://localhost:5173", "Access-Control-Request-Headers", "x-a")
	if status != 204 || h.Get("Access-Control-Allow-Origin") != "http://localhost:5173" ||
		h.Get("Access-Control-Allow-Headers") != "x-a" {
		t.Errorf("preflight: %d %v; want 204 and the page's origin", status, h)
	}
}

// A call that is still pending when its session closes receives an answer that official clients do not retry.
func TestGateway_EndsCallsWithTheSession(t *testing.T) {
	m, s, _ := serve(t, t.TempDir(), Options{})
	g := gateway(t, m, s)
	began := make(chan struct{})
	body := io.MultiReader(strings.NewReader(says("slow", "")), closing(began))
	answered := make(chan int, 1)
	go func() {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", g.URL+"/chat/completions", body)
		r.Header.Set("Authorization", "Bearer "+g.Token)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		res.Body.Close()
		answered <- res.StatusCode
	}()
	<-began
	if _, err := m.Close(t.Context(), backend.Target{}, s.SessionID); err != nil {
		t.Fatal(err)
	}
	if status := <-answered; status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
	if status, _, _ := ask(t, g, "GET", "/models", ""); status != http.StatusUnauthorized {
		t.Errorf("after the session closed: status %d, want 401", status)
	}
}

// closing is an empty body that signals when it is read.
func closing(c chan struct{}) io.Reader {
	return readerFunc(func([]byte) (int, error) { close(c); return 0, io.EOF })
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
