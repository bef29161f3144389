package config

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
)

func TestParse(t *testing.T) {
	c, err := parse("config.yaml", []byte("backend_url: HTTPS://Example.com/base/\nidle_timeout: 3\nlog_level: debug\n"))
	if err != nil || c.BackendURL != "https://example.com/base" || c.IdleTimeout != 3*time.Second || c.LogLevel != slog.LevelDebug {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := parse("config.yaml", nil); err != nil || *c != *Default() {
		t.Errorf("empty: %+v, %v", c, err)
	}
	for text, key := range map[string]string{
		"backend: x":                      "backend",
		"idle_timeout: -1":                "idle_timeout",
		"idle_timeout: soon":              "idle_timeout",
		"idle_timeout: 1.5":               "idle_timeout",
		"log_level: loud":                 "log_level",
		"backend_url: ftp://a":            "backend_url",
		"backend_url: [a]":                "backend_url",
		"backend_url: https://u:geheim@a": "backend_url",
		"backend_url: https://a?x=y":      "backend_url",
		"backend_url: 'javascript:alert'": "backend_url",
		"- a":                             "",
		"a: b: c":                         "",
	} {
		_, err := parse("config.yaml", []byte(text))
		var e *Error
		if !errors.As(err, &e) || e.Key != key || !strings.Contains(err.Error(), "config.yaml") || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBackendOrder(t *testing.T) {
	env := func(url string) caller.Caller { return caller.Caller{Env: map[string]string{variable: url}} }
	file := &Config{BackendURL: "https://file"}
	for _, c := range []struct {
		config *Config
		who    caller.Caller
		want   Backend
	}{
		{Default(), caller.Caller{}, Backend{EmbeddedURL, KindEmbedded, ByDefault}},
		{Default(), env(""), Backend{EmbeddedURL, KindEmbedded, ByDefault}},
		{file, caller.Caller{}, Backend{"https://file", KindRemote, ByConfig}},
		{file, env("http://localhost:8080/"), Backend{"http://localhost:8080", KindRemote, ByEnv}},
		{file, env("embedded"), Backend{EmbeddedURL, KindEmbedded, ByEnv}},
	} {
		if got, err := c.config.Backend(c.who); err != nil || got != c.want {
			t.Errorf("%+v, %v; want %+v", got, err, c.want)
		}
	}
	var e *Error
	if _, err := file.Backend(env("nonsense")); !errors.As(err, &e) || e.Source != variable {
		t.Error(err)
	}
}

// A token never travels over the network in the clear.
func TestBackend_PlainHTTP(t *testing.T) {
	for address, loopback := range map[string]bool{
		"http://localhost:8080": true, "http://LOCALHOST": true, "http://127.0.0.1:1": true, "http://127.9.8.7": true, "http://[::1]:1": true, "http://[::ffff:127.0.0.1]": true,
		"http://backend.test": false, "http://192.168.1.2:8080": false, "http://localhost.evil.test": false, "http://127.0.0.1.evil.test": false, "http://0.0.0.0": false,
		"http://[2001:db8::1]": false, "HTTP://backend.test": false,
	} {
		_, fromEnv := Default().Backend(caller.Caller{Env: map[string]string{variable: address}})
		_, fromFile := parse("config.yaml", []byte("backend_url: '"+address+"'"))
		for source, err := range map[string]error{variable: fromEnv, "config.yaml": fromFile} {
			var e *Error
			if (err == nil) != loopback || err != nil && (!errors.As(err, &e) || e.Source != source || !strings.Contains(e.Fix, "https://")) {
				t.Errorf("%s in %s: %v", address, source, err)
			}
		}
	}
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	changed := make(chan struct{})
	s, err := Open(dir, changed, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(t.Context()) }()
	for _, text := range []string{"idle_timeout: 7", "idle_timeout: x"} {
		whole := filepath.Join(t.TempDir(), FileName) // the reading of before may still go on: it must not see half a file
		if err := errors.Join(os.WriteFile(whole, []byte(text), 0o600), os.Rename(whole, path)); err != nil {
			t.Fatal(err)
		}
		changed <- struct{}{}
		changed <- struct{}{} // taken only after the first was dealt with
	}
	if got := s.Current().IdleTimeout; got != 7*time.Second {
		t.Error("a bad file changed the configuration to", got)
	}
	if _, err := Open(dir, nil, slog.Default()); err == nil {
		t.Error("a daemon starts with a bad file")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("backend_url: https://a\nidle_timeout: 3\nlog_level: info\n"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("config.yaml", data)
		if err == nil && c.BackendURL != "" && c.BackendURL != EmbeddedURL && !strings.HasPrefix(c.BackendURL, "http") {
			t.Errorf("took %q", c.BackendURL)
		}
	})
}
