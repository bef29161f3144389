package credentials

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

func builtInOf(t *testing.T) Catalogue {
	t.Helper()
	c, err := LoadProviders("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestBuiltInProviders(t *testing.T) {
	c := builtInOf(t)
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, good := range [][2]string{
		{"openai", "sk-proj-" + x(40)}, {"openai", "sk-" + x(48)}, {"anthropic", "sk-ant-api03-" + x(90)}, {"google", "AIza" +
			x(35)},
		{"elevenlabs", "sk_" + strings.Repeat("0a", 24)}, {"elevenlabs", strings.Repeat("0a", 16)},
	} {
		p, ok := c.find(good[0])
		if value, err := p.check(" \n" + good[1] + "\t"); !ok || err != nil || value != good[1] {
			t.Errorf("%s: %v", good[0], err)
		}
	}
	openai, _ := c.find("openai")
	for says, bad := range map[string]string{
		"8 to 512": "sk-" + x(600), "right provider": "sk-ant-api03-" + x(90), "no spaces": "sk-" + x(20) + " " + x(20),
		"own secrets": secret.New(credential.Token), "all of it": x(40), "has 8": "",
	} {
		_, err := openai.check(bad)
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(invalid.Message, says) || bad != "" && strings.Contains(err.Error(),
			bad) {
			t.Errorf("%q: %v", says, err)
		}
	}
	if _, err := openai.check("sk-" + strings.Repeat("é", 30)); err == nil {
		t.Error("a value with non-ASCII letters was accepted")
	}
	for value, want := range map[string]string{"sk-4567890123456789w": "...789w", "sk-456789012345678w": "...",
		"": "..."} {
		if got := hint(value); got != want {
			t.Errorf("got hint %q for a value of %d characters", got, len(value))
		}
	}
}

const oneProvider = `providers:
  - id: own
    name: Our own
    pattern: '^k-'
    test: {url: 'https://ai.example.org/models', header: Authorization, prefix: 'Bearer '}
`

func TestLoadProviders(t *testing.T) {
	load := func(text string) (Catalogue, error) {
		file := filepath.Join(t.TempDir(), "providers.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return LoadProviders(file)
	}
	if c, err := load(oneProvider); err != nil || len(c.list) != 1 || c.list[0].ID != "own" {
		t.Errorf("%v (%v)", c, err)
	}
	for name, text := range map[string]string{
		"nothing":         "",
		"no providers":    "providers: []\n",
		"unknown field":   oneProvider + "more: 1\n",
		"two documents":   oneProvider + "---\n" + oneProvider,
		"plain http":      strings.Replace(oneProvider, "https:", "http:", 1),
		"a user in url":   strings.Replace(oneProvider, "https://", "https://a:b@", 1),
		"bad id":          strings.Replace(oneProvider, "id: own", "id: Own", 1),
		"no name":         strings.Replace(oneProvider, "Our own", "' '", 1),
		"no pattern":      strings.Replace(oneProvider, "'^k-'", "''", 1),
		"bad pattern":     strings.Replace(oneProvider, "^k-", "(", 1),
		"no header":       strings.Replace(oneProvider, "header: Authorization", "header: ''", 1),
		"a line break":    strings.Replace(oneProvider, "'Bearer '", `"a\nb"`, 1),
		"the key's twice": strings.Replace(oneProvider, "prefix: 'Bearer '", "headers: {authorization: x}", 1),
		"id twice":        oneProvider + strings.TrimPrefix(oneProvider, "providers:\n"),
		"a good refusal":  strings.Replace(oneProvider, "prefix: 'Bearer '", "refused: [200]", 1),
	} {
		if _, err := load(text); err == nil {
			t.Errorf("%s: an invalid file was accepted", name)
		}
	}
	if _, err := LoadProviders(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v, want os.ErrNotExist", err)
	}
}

// FuzzLoadProviders checks that nothing panics and that every accepted file can be used.
func FuzzLoadProviders(f *testing.F) {
	f.Add([]byte(oneProvider))
	f.Add(builtIn)
	f.Add([]byte("providers: [{id: a}]"))
	f.Add([]byte("&a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := parseProviders(text)
		if err != nil {
			return
		}
		for _, p := range c.list {
			if p.pattern == nil || p.valid() != nil {
				t.Fatalf("an invalid provider was accepted: %q", p.ID)
			}
			if _, err := http.NewRequest(http.MethodGet, p.Test.URL, http.NoBody); err != nil {
				t.Fatal(err)
			}
			_, _ = p.check("sk-456789012345678w")
		}
	})
}

// The key is sent only in its header, and never to the target of a redirect.
func TestAsk_SendsValueToProviderOnly(t *testing.T) {
	const value = "k-the-value-of-the-key"
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	status := 0
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer "+value ||
			r.Header.Get("X-Version") != "1" ||
			strings.Contains(r.URL.String(), value) || r.ContentLength > 0 {
			t.Errorf("got request %s %s with headers %v, want the key only in its header", r.Method, r.URL, r.Header)
		}
		rw.Header().Set("Location", other.URL)
		rw.WriteHeader(status)
	}))
	s := New(Options{})
	p := provider{Provider: Provider{ID: "own"}, Test: testCall{URL: server.URL, Header: "Authorization",
		Prefix:  "Bearer ",
		Headers: map[string]string{"X-Version": "1"}, Refused: []int{400}}}
	for code, want := range map[int]string{200: TestOK, 204: TestOK, 400: TestRefused, 401: TestRefused, 403: TestRefused,
		302: TestUnreachable, 307: TestUnreachable, 404: TestUnreachable, 429: TestUnreachable, 500: TestUnreachable} {
		status = code
		if got := s.ask(t.Context(), p, value); got != want {
			t.Errorf("%d: %s", code, got)
		}
	}
	server.Close()
	if got := s.ask(t.Context(), p, value); got != TestUnreachable {
		t.Errorf("provider that is not running: got %s, want TestUnreachable", got)
	}
	if elsewhere != 0 {
		t.Error("the key was sent to the target of a redirect")
	}
}
