package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/test/networktest"
)

func TestParse_Outbound(t *testing.T) {
	ca := networktest.WriteCA(t)
	text := "https_proxy: http://ada:geheim@proxy.test:3128\nno_proxy: .corp\nca_file: '" + ca + "'"
	c, err := parse("config.yaml", []byte(text))
	if err != nil || c.Outbound.HTTPSProxy != "http://ada:geheim@proxy.test:3128" || c.Outbound.NoProxy != ".corp" ||
		c.Outbound.CAFile != ca {
		t.Errorf("%+v, %v", c, err)
	}
	for text, key := range map[string]string{
		"https_proxy: ftp://ada:geheim@h":    "https_proxy",
		"https_proxy: http://ada:geheim@h/x": "https_proxy",
		"https_proxy: ''":                    "https_proxy",
		"https_proxy:":                       "https_proxy",
		"https_proxy: 3128":                  "https_proxy",
		"https_proxy: [a]":                   "https_proxy",
		"no_proxy: [a]":                      "no_proxy",
		"ca_file: ca.pem":                    "ca_file",
	} {
		_, err := parse("config.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), "read config.yaml: "+key) || strings.Contains(err.Error(),
			"geheim") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A missing file of certificates must not stop the daemon, which also serves calls that do not need it.
func TestOpen_AcceptsMissingCertificates(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.pem")
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("ca_file: '"+missing+"'"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir, nil, slog.New(slog.DiscardHandler))
	if err != nil || s.Current().Outbound.CAFile != missing {
		t.Errorf("got %v, want the setting", err)
	}
}

// variables is an environment of the daemon or of a caller.
type variables map[string]string

func TestIgnored_NamesTheCallersVariableAndTheSetting(t *testing.T) {
	const remote = "https://backend.test"
	ca := networktest.WriteCA(t)
	for _, c := range []struct {
		name         string
		file         string
		daemon, call variables
		backend      string
		variable     string // the expected variable; empty if none
		fix          string
	}{
		{"proxy", "", nil, variables{"HTTPS_PROXY": "http://p.test:1"}, remote, "HTTPS_PROXY",
			"https_proxy: 'http://p.test:1'"},
		{"lower case", "", nil, variables{"https_proxy": "p.test:1"}, remote, "https_proxy",
			"https_proxy: 'http://p.test:1'"},
		{"all", "", nil, variables{"ALL_PROXY": "socks5://p.test:1"}, remote, "ALL_PROXY", "'socks5://p.test:1'"},
		{"with a password", "", nil, variables{"HTTPS_PROXY": "http://ada:geheim@p.test:1"}, remote, "HTTPS_PROXY",
			"'http://USER:PASSWORD@p.test:1'"},
		{"quotes", "", nil, variables{"HTTPS_PROXY": "http://p'.test:1"}, remote, "HTTPS_PROXY",
			"to the value of HTTPS_PROXY"},
		{"in the file", "https_proxy: http://ada:x@p.test:1", nil,
			variables{"HTTPS_PROXY": "http://ada:y@p.test:1"}, remote, "", ""},
		{"in the daemon", "", variables{"https_proxy": "http://p.test:1"},
			variables{"HTTPS_PROXY": "http://p.test:1"}, remote, "", ""},
		{"another", "https_proxy: http://q.test:1", nil, variables{"HTTPS_PROXY": "http://p.test:1"}, remote, "HTTPS_PROXY",
			"'http://p.test:1'"},
		{"not for this backend", "", nil, variables{"HTTPS_PROXY": "http://p.test:1", "NO_PROXY": ".test"}, remote, "", ""},
		{"a sandbox's own", "", nil, variables{"HTTPS_PROXY": "http://127.0.0.1:1"}, remote, "", ""},
		{"a sandbox's own name", "", nil, variables{"HTTPS_PROXY": "localhost:1"}, remote, "", ""},
		{"a sandbox's own IPv6", "", nil, variables{"ALL_PROXY": "socks5h://[::1]:1"}, remote, "", ""},
		{"not for this machine", "", nil, variables{"HTTPS_PROXY": "http://p.test:1"}, "http://localhost:8080", "", ""},
		{"not for the embedded", "", nil, variables{"HTTPS_PROXY": "http://p.test:1"}, EmbeddedURL, "", ""},
		{"other variables", "", nil, variables{"HTTP_PROXY": "http://p.test:1", "NO_PROXY": "*"}, remote, "", ""},
		{"direct", "https_proxy: http://p.test:1", nil, variables{"no_proxy": ".test"}, remote, "no_proxy",
			"no_proxy: '.test'"},
		{"no match", "https_proxy: http://p.test:1", nil, variables{"no_proxy": ".other"}, remote, "", ""},

		{"certificate", "", nil, variables{"SSL_CERT_FILE": ca}, remote, "SSL_CERT_FILE", "ca_file: '" + ca + "'"},
		{"relative", "", nil, variables{"SSL_CERT_FILE": "ca.pem"}, remote, "SSL_CERT_FILE", "/app/ca.pem'"},
		{"relative, unknown directory", "", nil, variables{"SSL_CERT_FILE": "ca.pem"}, remote, "SSL_CERT_FILE",
			"to the value of SSL_CERT_FILE, as an absolute path"},
		{"directory", "", nil, variables{"SSL_CERT_DIR": "/certs"}, remote, "SSL_CERT_DIR", "which is in /certs"},
		{"certificate in the file", "ca_file: " + ca, nil, variables{"SSL_CERT_FILE": ca}, remote, "", ""},
		{"certificate in the daemon", "", variables{"SSL_CERT_FILE": ca}, variables{"SSL_CERT_FILE": ca}, remote, "", ""},
		{"certificate on this machine", "", nil, variables{"SSL_CERT_FILE": ca}, "http://localhost:8080", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "SSL_CERT_FILE"} {
				t.Setenv(name, c.daemon[name])
			}
			if path := c.daemon["SSL_CERT_FILE"]; path != OwnCertificates("SSL_CERT_FILE") {
				t.Skip("SKIPPED: Go ignores SSL_CERT_FILE on this system")
			}
			dir := t.TempDir()
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(dir, FileName), []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(dir, nil, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			who := caller.Caller{Env: c.call, Cwd: filepath.FromSlash("/app")}
			if c.name == "relative, unknown directory" {
				who.Cwd = ""
			}
			got, ok := s.IgnoredProxy(who, c.backend)
			if other, isOther := s.IgnoredCertificates(who, c.backend); isOther {
				got, ok = other, true
			}
			if ok != (c.variable != "") || got.Name != c.variable || !strings.Contains(got.Fix, c.fix) ||
				ok && !strings.Contains(got.Fix, s.Path()) || strings.Contains(got.Fix, "geheim") {
				t.Errorf("got %+v, want %q and %q", got, c.variable, c.fix)
			}
		})
	}
}

func TestOwnCertificates_NotOnSystemsWhereGoIgnoresThem(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", "/ca.pem")
	for system, want := range map[string]string{"linux": "/ca.pem", "darwin": "", "windows": ""} {
		if got := ownCertificates(system, "SSL_CERT_FILE"); got != want {
			t.Errorf("%s: got %q, want %q", system, got, want)
		}
	}
}
