package config

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

func TestParse(t *testing.T) {
	c, err := parse("config.yaml", []byte("backend_url: HTTPS://Example.com/base/\nidle_timeout: 3\nlog_level: debug\n"))
	if err != nil || c.BackendURL != "https://example.com/base" || c.IdleTimeout != 3*time.Second ||
		c.LogLevel != slog.LevelDebug {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := parse("config.yaml", nil); err != nil || *c != *Default() {
		t.Errorf("an empty file: %+v, %v; want the default", c, err)
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
		"backend_fixed: maybe":            "backend_fixed",
		"backend_fixed:":                  "backend_fixed",
		"idle_timeout:":                   "idle_timeout",
		"- a":                             "",
		"a: b: c":                         "",
	} {
		_, err := parse("config.yaml", []byte(text))
		if problem.CodeOf(err) != problem.CodeInvalidConfig || !strings.HasPrefix(err.Error(), "read config.yaml: "+key) ||
			strings.Contains(err.Error(), "geheim") {
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
			t.Errorf("got %+v, %v; want %+v", got, err, c.want)
		}
	}
	if _, err := file.Backend(env("nonsense")); err == nil || !strings.HasPrefix(err.Error(), "read "+variable+": ") {
		t.Error(err)
	}
}

// If config.yaml fixes the backend, no client can direct calls elsewhere.
func TestBackend_Fixed(t *testing.T) {
	env := func(url string) caller.Caller { return caller.Caller{Env: map[string]string{variable: url}} }
	for text, own := range map[string]string{
		"backend_fixed: true": "embedded",
		"backend_fixed: true\nbackend_url: https://file.test/base": "https://FILE.test/base/",
	} {
		c, err := parse("config.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, who := range []caller.Caller{{}, env(own)} {
			if _, err := c.Backend(who); err != nil {
				t.Errorf("%q: %q: %v", text, who.Env, err)
			}
		}
		for _, other := range []string{"https://other.test", "http://127.0.0.1:1", "https://file.test/base/further",
			"nonsense"} {
			b, err := c.Backend(env(other))
			if err == nil || !strings.HasPrefix(err.Error(), "read "+variable+": ") || b.URL != "" {
				t.Errorf("%q, calls to %s: got %+v, %v; want an error that names the variable", text, other, b, err)
			}
		}
	}
}

// A token is never sent unencrypted over the network.
func TestBackend_PlainHTTP(t *testing.T) {
	for address, loopback := range map[string]bool{
		"http://localhost:8080": true, "http://LOCALHOST": true, "http://127.0.0.1:1": true, "http://127.9.8.7": true,
		"http://[::1]:1": true, "http://[::ffff:127.0.0.1]": true,
		"http://backend.test": false, "http://192.168.1.2:8080": false, "http://localhost.evil.test": false,
		"http://127.0.0.1.evil.test": false, "http://0.0.0.0": false,
		"http://[2001:db8::1]": false, "HTTP://backend.test": false,
	} {
		_, fromEnv := Default().Backend(caller.Caller{Env: map[string]string{variable: address}})
		_, fromFile := parse("config.yaml", []byte("backend_url: '"+address+"'"))
		for source, err := range map[string]error{variable: fromEnv, "config.yaml": fromFile} {
			if (err == nil) != loopback || err != nil && (!strings.HasPrefix(err.Error(), "read "+source+": ") ||
				!strings.Contains(problem.From(err).FixHint, "https://")) {
				t.Errorf("%s in %s: %v", address, source, err)
			}
		}
	}
}

// serve runs a store until the test ends. The returned function replaces the file with text and waits until the store
// has read it.
func serve(t *testing.T, s *Store, changed chan<- struct{}) (put func(text string)) {
	t.Helper()
	go func() { _ = s.Serve(t.Context()) }()
	return func(text string) {
		t.Helper()
		// Written to another path first: an earlier read may still be in progress and must not see half a file.
		whole := filepath.Join(t.TempDir(), FileName)
		if err := errors.Join(os.WriteFile(whole, []byte(text), 0o600), os.Rename(whole, s.Path())); err != nil {
			t.Fatal(err)
		}
		changed <- struct{}{}
		changed <- struct{}{} // received only after the first signal was handled
	}
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	changed := make(chan struct{})
	s, err := Open(dir, changed, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	put := serve(t, s, changed)
	put("idle_timeout: 7")
	for text, why := range map[string]string{"idle_timeout: x": "idle_timeout", "": "empty", " \n": "empty",
		"a: b: c": "mapping"} {
		put(text)
		if got := s.Current().IdleTimeout; got != 7*time.Second {
			t.Errorf("%q changed idle_timeout to %v; want the last valid one", text, got)
		}
		if err := s.Problem(); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: problem %v, want the reason", text, err)
		}
	}
	put("idle_timeout: x")
	if _, err := Open(dir, nil, slog.Default()); err == nil {
		t.Error("Open accepted an invalid file")
	}
	put("idle_timeout: 8")
	if err := s.Problem(); err != nil || s.Current().IdleTimeout != 8*time.Second {
		t.Errorf("%v, %+v", err, s.Current())
	}
	put("idle_timeout: y")
	if err := os.Remove(s.Path()); err != nil {
		t.Fatal(err)
	}
	changed <- struct{}{}
	changed <- struct{}{}
	if err := s.Problem(); err != nil || *s.Current() != *Default() {
		t.Errorf("after removing the file: problem %v, configuration %+v; want the default", err, s.Current())
	}
}

func TestEmptyAtStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(dir, nil, slog.Default()); err != nil || *s.Current() != *Default() || s.Problem() != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// lines receives the lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

// until waits for a line that contains word.
func (l lines) until(word string) {
	for !strings.Contains(<-l, word) {
	}
}

// A file system that hangs delays neither start nor stop. Once it answers, its result is used.
func TestFileSystemDoesNotAnswer(t *testing.T) {
	changed := make(chan struct{})
	said := make(lines, 16)
	s := newStore(t.TempDir(), changed, slog.New(slog.NewTextHandler(said, nil)))
	s.wait = 10 * time.Millisecond
	answer := make(chan string)
	s.readFile = func(string, int64) ([]byte, error) { return []byte(<-answer), nil }
	if err := s.open(); problem.From(err) == nil || !strings.Contains(err.Error(), "may not be responding") {
		t.Fatalf("start: %v", err)
	}
	answer <- "" // for the read at the start
	s.current.Store(&Config{IdleTimeout: 7 * time.Second})

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx) }()
	changed <- struct{}{}
	said.until("failed")
	changed <- struct{}{}
	if err := s.Problem(); err == nil || s.Current().IdleTimeout != 7*time.Second {
		t.Errorf("%v, %+v", err, s.Current())
	}
	answer <- "idle_timeout: 8" // for the first change
	said.until("loaded")
	answer <- "idle_timeout: 9" // for the second, which waited for the first
	said.until("loaded")
	if err := s.Problem(); err != nil || s.Current().IdleTimeout != 9*time.Second {
		t.Errorf("%v, %+v", err, s.Current())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
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
