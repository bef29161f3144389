package outbound

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestSettings_Proxy(t *testing.T) {
	const proxy = "http://ada:geheim@proxy.test:3128"
	for _, c := range []struct {
		settings Settings
		url      string
		want     string
	}{
		{Settings{}, "https://backend.test", ""},
		{Settings{HTTPSProxy: proxy}, "https://backend.test", proxy},
		{Settings{HTTPSProxy: "proxy.test:3128"}, "https://backend.test", "http://proxy.test:3128"},
		{Settings{HTTPSProxy: "socks5://proxy.test:1080"}, "https://backend.test:8443", "socks5://proxy.test:1080"},
		{Settings{HTTPSProxy: proxy, NoProxy: "other.test"}, "https://backend.test", proxy},
		{Settings{HTTPSProxy: proxy, NoProxy: "other.test,.test"}, "https://backend.test", ""},
		{Settings{HTTPSProxy: proxy, NoProxy: "10.0.0.0/8"}, "https://10.1.2.3", ""},
		{Settings{HTTPSProxy: proxy, NoProxy: "*"}, "https://backend.test", ""},
		// No proxy for this machine, and none for plain HTTP, which is only for this machine.
		{Settings{HTTPSProxy: proxy}, "https://localhost:8443", ""},
		{Settings{HTTPSProxy: proxy}, "https://127.0.0.1:8443", ""},
		{Settings{HTTPSProxy: proxy}, "https://[::1]:8443", ""},
		{Settings{HTTPSProxy: proxy}, "http://backend.test", ""},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		got := c.settings.Proxy(u)
		if got == nil && c.want != "" || got != nil && got.String() != c.want {
			t.Errorf("%v for %s: got %v, want %q", c.settings, c.url, got, c.want)
		}
	}
}

func TestFromEnvironment_LowerCaseWins(t *testing.T) {
	env := map[string]string{"HTTPS_PROXY": "upper", "https_proxy": "lower", "NO_PROXY": "n", "HTTP_PROXY": "h"}
	got := FromEnvironment(func(name string) string { return env[name] })
	if got.HTTPSProxy != "lower" || got.NoProxy != "n" {
		t.Errorf("got %v", got)
	}
	own := Settings{HTTPSProxy: "own", CAFile: "/ca"}
	if got := own.Or(Settings{HTTPSProxy: "other", NoProxy: "n"}); got != (Settings{"own", "n", "/ca"}) {
		t.Errorf("got %v, want the own settings first", got)
	}
}

// Errors do not quote any address, because it may contain a password.
func TestParseProxy_RefusesOthersWithoutQuotingThem(t *testing.T) {
	for _, text := range []string{"ftp://u:geheim@h", "http://u:geheim@", "http://u:geheim@h/path", "http://u:geheim@h?q",
		"http://u:geheim@h#f", "http://u:ge%heim@h:1", "geheim geheim", "://geheim"} {
		if u, err := ParseProxy(text); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: got %v, %v; want an error without it", text, u, err)
		}
	}
	u, err := ParseProxy("http://ada:geheim@h:1/")
	if err != nil || DisplayProxy(u) != "http://h:1" {
		t.Errorf("got %v, %v", u, err)
	}
	for _, proxy := range []string{"http://ada:geheim@h:1", "http://u:ge%heim@h"} {
		s := Settings{HTTPSProxy: proxy}
		if text := fmt.Sprintf("%v %+v", s, &struct{ S Settings }{s}); strings.Contains(text, "heim") {
			t.Errorf("the settings print the password: %s", text)
		}
	}
}

func TestSettings_Roots(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var wide []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + string(text))) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name    string
		content []byte
		problem string
	}{
		{"plain", text, ""},
		{"mark", append([]byte("\xef\xbb\xbf"), text...), ""},
		{"wide", wide, "UTF-16"},
		{"empty", nil, "no certificate"},
		{"other", []byte("hello"), "no certificate"},
		{"large", make([]byte, maxCAFile+1), "at most"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		roots, err := Settings{CAFile: path}.Roots()
		if c.problem == "" && (err != nil || roots == nil) ||
			c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem) ||
				!strings.Contains(err.Error(), path)) {
			t.Errorf("%s: got %v, want the problem %q", c.name, err, c.problem)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := (Settings{CAFile: path}).Roots(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want an error that names it", path, err)
		}
	}
	if roots, err := (Settings{}).Roots(); roots != nil || err != nil {
		t.Errorf("without a file: got %v, %v; want nil for the system's", roots, err)
	}
}
