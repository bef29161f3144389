package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/llmtest"
)

// localServer simulates a model server that a user runs. It lists its models and forwards calls to the fake provider.
type localServer struct {
	*httptest.Server
	models atomic.Pointer[string] // the list of models; if nil, the server refuses every key
}

func startLocalServer(t *testing.T, provider *llmtest.Provider) *localServer {
	t.Helper()
	to, err := url.Parse(provider.URL)
	if err != nil {
		t.Fatal(err)
	}
	to.Path = ""
	s := &localServer{}
	list := `{"object":"list","data":[{"id":"good"},{"id":"llama3.2:1b","object":"model","owned_by":"library"}]}`
	s.models.Store(&list)
	mux := http.NewServeMux()
	mux.Handle("/v1/chat/completions", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		list := s.models.Load()
		if list == nil || r.Header.Get("Authorization") != "Bearer "+llmtest.Key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, *list)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

const serversPath = "/account/projects/com.example.hello/gateway/servers"

// offered returns the models listed by /v1/models.
func (w *gatewayWorld) offered() string {
	w.t.Helper()
	res, text := w.ask("GET", "/v1/models", "")
	var list struct {
		Data []struct{ ID, Resolves string }
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || res.StatusCode != http.StatusOK {
		w.t.Fatalf("list models: got %d %s (error %v), want 200", res.StatusCode, text, err)
	}
	ids := []string{}
	for _, m := range list.Data {
		ids = append(ids, strings.TrimSuffix(m.ID+"="+m.Resolves, "="))
	}
	return strings.Join(ids, " ")
}

// When a user adds a server in the dashboard, apps can use its models at no cost, even after a restart.
func TestGateway_ServesModelsOfAServerThatThePersonAdded(t *testing.T) {
	eachGateway(t, testLocalServer, func(c *config.Config) {
		c.GatewayCatalogue, c.FreeCredit, c.CredentialsKeys = "", "0.00", strings.Repeat("a1", 32)
	})
}

func testLocalServer(t *testing.T, w *gatewayWorld) {
	server, pages := startLocalServer(t, w.provider), w.signIn()
	add := func(id, address, key string) int {
		t.Helper()
		return pages.post(serversPath, url.Values{"server-id": {id}, "server-url": {address}, "server-key": {key}})
	}
	page := func(want ...string) {
		t.Helper()
		text := pages.get("/account/projects/com.example.hello/gateway")
		for _, one := range want {
			if !strings.Contains(text, one) {
				t.Errorf("the page lacks %q", one)
			}
		}
		if strings.Contains(text, llmtest.Key) {
			t.Error("the page shows the key")
		}
	}
	if status := add("ollama", server.URL, ""); status != http.StatusSeeOther || w.offered() != "" {
		t.Fatalf("server without its key: got status %d, models %q; want 303 and none", status, w.offered())
	}
	page("it requires a key", "paid by: nothing")
	if status := add("ollama", server.URL, llmtest.Key); status != http.StatusSeeOther {
		t.Fatalf("add a server: got status %d, want 303", status)
	}
	w.restart()
	const want = "assistant=ollama/good ollama/good ollama/llama3.2:1b"
	if got := w.offered(); got != want {
		t.Fatalf("got models %q, want the server's models", got)
	}
	for _, path := range []string{"ollama/llama3.2:1b", "ollama%2Fllama3.2:1b"} { // official clients escape the ID
		if res, text := w.ask("GET", "/v1/models/"+path, ""); res.StatusCode != http.StatusOK ||
			!strings.Contains(text, `"id":"ollama/llama3.2:1b"`) {
			t.Errorf("%s: got %d %s, want 200 and the model", path, res.StatusCode, text)
		}
	}
	page("answers", "with a key", "ollama/llama3.2:1b", "paid by: local, free")
	for _, model := range []string{"assistant", "ollama/llama3.2:1b"} {
		if res, text := w.ask("POST", "/v1/chat/completions", chatBody(model, "")); res.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %d %s, want 200", model, res.StatusCode, text)
		}
		if row := w.last(); row.Outcome != "ok" || row.Source != "local" || row.MicroUSD != 0 || row.In == 0 {
			t.Errorf("got recorded call %+v, want one to a local server without a charge", row)
		}
	}
	book := w.provider.Book()
	if len(book) != 2 || book[0].Model != "good" || book[1].Model != "llama3.2:1b" {
		t.Errorf("the server received %+v, want a call to each model", book)
	}
	if u := w.usage(""); *u.KeySource != "local" || u.Totals.MicroUSD != 0 || u.Totals.Calls != 2 {
		t.Errorf("got usage %+v, want two calls at no charge, paid by local", u)
	}
	var config backendapi.AssistantConfig
	const assistant = helloProject + backendapi.PathAssistant
	chosen := w.call("PATCH", assistant, `{"version":0,"textModel":"ollama/llama3.2:1b"}`, &config)
	const changed = "assistant=ollama/llama3.2:1b ollama/good ollama/llama3.2:1b"
	if chosen != http.StatusOK || len(config.Choices.TextModels) != 2 || w.offered() != changed {
		t.Errorf("set the assistant's model: got status %d, choices %+v, models %q; want 200 and the model", chosen,
			config.Choices.TextModels, w.offered())
	}
	w.call("PATCH", assistant, `{"version":1,"textModel":""}`, &config)
	less := `{"data":[{"id":"good"}]}`
	server.models.Store(&less)
	if status := pages.post(serversPath+"/ollama/check", url.Values{}); status != http.StatusSeeOther ||
		w.offered() != "assistant=ollama/good ollama/good" {
		t.Errorf("check the server: got status %d, models %q; want 303 and one model", status, w.offered())
	}
	server.Close()
	if res, text := w.ask("POST", "/v1/chat/completions", chatBody("assistant", "")); res.StatusCode !=
		http.StatusServiceUnavailable || !strings.Contains(text, "provider_unreachable") {
		t.Errorf("stopped server: got %d %s, want 503 provider_unreachable", res.StatusCode, text)
	}
	pages.post(serversPath+"/ollama/check", url.Values{})
	page("it does not answer: start it", "A local model server did not answer.")
	if strings.Contains(w.log.String(), llmtest.Key) {
		t.Error("the log contains the key")
	}
	status := pages.post(serversPath+"/ollama/remove", url.Values{})
	if status != http.StatusSeeOther || w.offered() != "" {
		t.Errorf("remove the server: got status %d, models %q; want 303 and none", status, w.offered())
	}
	var keys int
	if err := w.db.QueryRow("SELECT COUNT(*) FROM credentials").Scan(&keys); err != nil || keys != 0 {
		t.Errorf("%d keys left (error %v), want none", keys, err)
	}
}

// The gateway calls local servers only at addresses of this machine and of private networks, for every host name.
func TestGateway_CallsNoServerElsewhere(t *testing.T) {
	w := startGateway(t, func(c *config.Config) { c.CredentialsKeys = strings.Repeat("a1", 32) })
	pages := w.signIn()
	for _, form := range []url.Values{
		{"server-id": {"cloud"}, "server-url": {"http://169.254.169.254/v1"}},
		{"server-id": {"far"}, "server-url": {"http://192.0.2.1/v1"}, "server-key": {"k"}},
		{"server-id": {"odd"}, "server-url": {"ftp://localhost"}},
		{"server-id": {"Not an id"}, "server-url": {"http://localhost:1"}},
		{"server-id": {"key"}, "server-url": {"http://localhost:1"}, "server-key": {"a b"}},
	} {
		if status := pages.post(serversPath, form); status != http.StatusUnprocessableEntity {
			t.Errorf("add a server with %v: got status %d, want 422", form, status)
		}
	}
	var stored int
	if err := w.db.QueryRow("SELECT COUNT(*) FROM local_servers").Scan(&stored); err != nil || stored != 0 {
		t.Errorf("%d servers were stored (error %v), want none", stored, err)
	}
	for _, path := range []string{"/nothing/check", "/nothing/remove"} {
		if status := pages.post(serversPath+path, url.Values{}); status != http.StatusNotFound {
			t.Errorf("POST %s: got status %d, want 404", path, status)
		}
	}
}

// A backend that is set up as its own local server would call itself until it reached a limit. Instead it refuses the
// calls and explains why.
func TestGateway_IsNoLocalServerOfItself(t *testing.T) {
	w := startGateway(t, func(c *config.Config) { c.CredentialsKeys = strings.Repeat("a1", 32) })
	pages := w.signIn()
	form := url.Values{"server-id": {"self"}, "server-url": {w.url + "/v1"}, "server-key": {w.key}}
	if status := pages.post(serversPath, form); status != http.StatusSeeOther || strings.Contains(w.offered(), "self/") {
		t.Errorf("add the backend itself: got status %d, models %s; want 303 and none of its models", status, w.offered())
	}
	text := pages.get("/account/projects/com.example.hello/gateway")
	if !strings.Contains(text, "it is an AI gateway itself") {
		t.Error("the page does not say that the server is an AI gateway itself")
	}
	w.exec(`UPDATE local_servers SET models = '["self/good","good"]'`) // as an older version stored them
	for _, model := range []string{"self/good", "self/self/good"} {
		before := len(w.calls())
		res, text := w.ask("POST", "/v1/chat/completions", chatBody(model, ""))
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(text, "an AI gateway called this one") {
			t.Errorf("%s: got %d %s, want 400 because the gateway called itself", model, res.StatusCode, text)
		}
		if made := len(w.calls()) - before; made != 1 {
			t.Errorf("%s: got %d calls, want 1", model, made)
		}
	}
}

// The models of a local server added by the project's owner are equivalent to the operator's models: the apps of a
// session get a gateway, including apps that were attached before.
func TestSessionGateway_OffersModelsOfALocalServer(t *testing.T) {
	w := startGateway(t, func(c *config.Config) {
		c.GatewayCatalogue, c.FreeCredit, c.CredentialsKeys = "", "0.00", strings.Repeat("a1", 32)
	})
	server, pages := startLocalServer(t, w.provider), w.signIn()
	var s backendapi.Session
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
	early, welcome := attachSession(t, w.backendUnderTest, s, `,"gateway":true`)
	if welcome.Gateway != nil {
		t.Fatalf("welcome has gateway %+v without models, want none", welcome.Gateway)
	}
	add := func(key string) {
		t.Helper()
		form := url.Values{"server-id": {"ollama"}, "server-url": {server.URL}, "server-key": {key}}
		if status := pages.post(serversPath, form); status != http.StatusSeeOther {
			t.Fatalf("add a server: got status %d, want 303", status)
		}
	}
	add("") // it requires a key, so its models are unknown
	if _, welcome := attachSession(t, w.backendUnderTest, s, ""); welcome.Gateway != nil {
		t.Errorf("welcome has gateway %+v while the server lists no models, want none", welcome.Gateway)
	}
	add(llmtest.Key)
	var given glasses.Gateway
	early.next(glasses.TypeGatewayToken, &given)
	_, welcome = attachSession(t, w.backendUnderTest, s, "")
	if welcome.Gateway == nil {
		t.Fatal("welcome has no gateway, want one because the server has models")
	}
	var other backendapi.Session
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.other"}`, &other)
	if _, welcome := attachSession(t, w.backendUnderTest, other, ""); welcome.Gateway != nil {
		t.Errorf("another project's welcome has gateway %+v, want none", welcome.Gateway)
	}
	for _, w.key = range []string{given.Token, welcome.Gateway.Token} {
		if res, body := w.ask("POST", "/v1/chat/completions", chatBody("assistant", "")); res.StatusCode != http.StatusOK {
			t.Errorf("got %d %s, want an answer by the local server", res.StatusCode, body)
		}
	}
}
