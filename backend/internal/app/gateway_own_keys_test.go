package app

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/test/llmtest"
)

// pagesOf is a browser for the pages, signed in to the linked account.
type pagesOf struct {
	w      *gatewayWorld
	client http.Client
	csrf   string
}

func (w *gatewayWorld) signIn() *pagesOf {
	w.t.Helper()
	b := w.browser(nil)
	b.get("/signin")
	status := b.post("/signin", url.Values{"email": {"ada@example.org"}, "password": {testPassword}})
	if b.get("/account/settings"); status != http.StatusSeeOther {
		w.t.Fatalf("sign in: got status %d, want 303", status)
	}
	return b
}

// browser returns a browser without a session. A nil transport means the default one.
func (w *gatewayWorld) browser(transport http.RoundTripper) *pagesOf {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &pagesOf{w: w, client: http.Client{Jar: jar, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (b *pagesOf) get(path string) string {
	b.w.t.Helper()
	res, err := b.client.Get(b.w.url + path)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	if m := csrfOf.FindSubmatch(text); m != nil {
		b.csrf = string(m[1])
	}
	return string(text)
}

func (b *pagesOf) post(path string, form url.Values) int {
	b.w.t.Helper()
	form.Set("csrf", b.csrf)
	res, err := b.client.PostForm(b.w.url+path, form)
	if err != nil {
		b.w.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// withOwnKeys makes the fake provider accept the projects' own OpenAI keys.
func withOwnKeys(t *testing.T) func(*config.Config) {
	return func(c *config.Config) {
		text, err := os.ReadFile(c.GatewayCatalogue)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), "{id: fake,", "{id: fake, own_keys: openai,", 1)
		providers := filepath.Join(filepath.Dir(c.GatewayCatalogue), "providers.yaml")
		for name, text := range map[string]string{c.GatewayCatalogue: changed, providers: "providers:\n  - {id: openai, " +
			"name: OpenAI, pattern: '.', test: {url: 'http://127.0.0.1:1/', header: Authorization, prefix: 'Bearer '}}\n"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.CredentialsFile, c.CredentialsKeys = providers, strings.Repeat("a1", 32)
	}
}

// Credit never pays for the calls of a project that uses its own key, even if the key is missing or refused.
func TestGateway_OwnKeyPaysAlone(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		const page = "/account/projects/com.example.hello"
		body := `{"model":"good","messages":[{"role":"user","content":"Hi"}]}`
		unpriced := strings.Replace(body, "good", "unpriced", 1)
		b := w.signIn()
		set := func(path string, form url.Values) {
			t.Helper()
			if status := b.post(page+path, form); status != http.StatusSeeOther {
				t.Fatalf("POST %s: got status %d, want 303", path, status)
			}
		}
		want := func(body string, status int, code string) string {
			t.Helper()
			res, answer := w.ask("POST", "/v1/chat/completions", body)
			if res.StatusCode != status || !strings.Contains(answer, code) {
				t.Errorf("%s: got %d %s, want %d %s", body, res.StatusCode, answer, status, code)
			}
			return answer
		}
		want(unpriced, 404, "model_not_found")
		set("/gateway/key-source", url.Values{"source": {"own"}})
		calls := len(w.provider.Book())
		want(body, 403, "own_key_missing")
		if n := len(w.provider.Book()); n != calls {
			t.Fatal("a call without a key reached the provider")
		}
		set("/credentials/openai", url.Values{"value": {llmtest.Key}})
		b.get("/account/credit")
		balance, _ := w.balance()
		want(body, 200, "Grüße")
		want(unpriced, 200, "Grüße")
		if now, _ := w.balance(); now != balance {
			t.Errorf("balance changed from %d to %d, want no charge", balance, now)
		}
		const refusedKey = "sk-refused-canary-000000"
		set("/credentials/openai", url.Values{"value": {refusedKey}})
		if answer := want(body, 403, "own_key_refused"); strings.Contains(answer, "canary") {
			t.Errorf("the response contains the key: %s", answer)
		}
		want(body, 403, "own_key_refused")
		if text := b.get(page + "/credentials"); !strings.Contains(text, "refused by the provider") {
			t.Error("the page does not say that the provider refused the key")
		}
		text := b.get(page + "/gateway")
		for _, part := range []string{"own_key_refused", "own_key_missing", "own key"} {
			if !strings.Contains(text, part) {
				t.Errorf("the page lacks %q", part)
			}
		}
		set("/gateway/key-source", url.Values{"source": {"credit"}})
		want(body, 200, "Grüße")
		if now, _ := w.balance(); now >= balance {
			t.Errorf("balance after a call paid from credit: got %d, want less than before", now)
		}
		if strings.Contains(w.log.String(), "canary") {
			t.Error("the log contains the key")
		}
	}, withOwnKeys(t))
}
