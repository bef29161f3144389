package account

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fiveFields is auth.json as written by another program, with the fields of a token response and the scope.
const fiveFields = `{"authToken":"svc_topsecret","accountId":"acc","linkedAt":"2026-01-02T03:04:05Z",` +
	`"expiresAt":null,"scope":"account_full"}`

// in returns a function that returns the current value of address as the backend.
func in(address *string) func() string { return func() string { return *address } }

func fieldsOf(t *testing.T, dir string) (fields map[string]any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatalf("auth.json is %s: %v", data, err)
	}
	return fields
}

// A file without a backend belongs to the backend in use when the file is first read. The file records it, so that no
// later setting moves the token.
func TestFileWithoutBackend_BelongsToTheBackendInForce(t *testing.T) {
	for name, first := range map[string]string{"configured": "https://a", "embedded": "embedded:"} {
		for when, c := range map[string]struct {
			arrives bool
			mark    string
		}{"at the start": {}, "later": {true, ""}, "with a byte order mark": {false, "\ufeff"}} {
			t.Run(name+" "+when, func(t *testing.T) {
				dir, backend := t.TempDir(), first
				var wrote []byte
				o := Options{Dir: dir, Backend: in(&backend), Wrote: func(data []byte) { wrote = data }}
				if !c.arrives {
					put(t, dir, c.mark+fiveFields)
				}
				s := Open(o)
				if c.arrives {
					put(t, dir, fiveFields)
					s.Reload(t.Context())
				}
				if l := s.For(first); !l.Linked() || l.AuthToken != token || !l.LinkedAt.Equal(linkedAt) {
					t.Errorf("%+v; want the link of %s", l, first)
				}
				got := fmt.Sprint(fieldsOf(t, dir))
				want := fmt.Sprint(map[string]any{"authToken": token, "accountId": "acc",
					"linkedAt": "2026-01-02T03:04:05Z", "expiresAt": nil, "scope": "account_full", "backendUrl": first})
				if got != want {
					t.Errorf("auth.json holds %s, want %s", got, want)
				}
				if text, _ := os.ReadFile(s.Path()); string(wrote) != string(text) {
					t.Errorf("reported %q to the watch, want %q", wrote, text)
				}
				backend = "https://later"
				s.Reload(t.Context())
				for _, l := range []Link{s.For(backend), Open(o).For(backend)} {
					if l.State != OtherBackend || l.AuthToken != "" {
						t.Errorf("a later setting moved the token: %+v", l)
					}
				}
				if l := Open(o).For(first); !l.Linked() {
					t.Errorf("at its own backend: %+v, want linked", l)
				}
			})
		}
	}
}

// A token whose backend cannot be recorded is not used anywhere, and the file is not changed.
func TestFileWithoutBackend_ThatCannotBeWritten(t *testing.T) {
	dir, backend := t.TempDir(), "https://a"
	put(t, dir, fiveFields)
	path := filepath.Join(dir, FileName)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := Open(Options{Dir: dir, Backend: in(&backend)})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = s.Serve(ctx) }()
		time.Sleep(time.Minute)
		for _, address := range []string{"https://a", "embedded:", "embedded:1", ""} {
			if l := s.For(address); l.State != OtherBackend || l.AuthToken != "" ||
				!strings.Contains(l.Detail, "read-only") {
				t.Errorf("at %q: %+v; want the link elsewhere, with the reason", address, l)
			}
		}
		if data, _ := os.ReadFile(path); string(data) != fiveFields {
			t.Errorf("the file was changed: %s", data)
		}
		// Once the file can be written, the token belongs to the backend that was in use when it was first read.
		backend = "https://later"
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(saveRetry + time.Second)
		if l := s.For("https://a"); !l.Linked() || fieldsOf(t, dir)["backendUrl"] != "https://a" {
			t.Errorf("%+v, %v; want the link of the first backend", l, fieldsOf(t, dir))
		}
		put(t, dir, strings.ReplaceAll(fiveFields, "svc_topsecret", "svc_second"))
		s.Reload(t.Context())
		if l := s.For("https://later"); !l.Linked() || l.AuthToken != "svc_second" {
			t.Errorf("another token: %+v; want the link of the backend in force now", l)
		}
	})
}

// If another program replaces the file at the same time, its content is kept.
func TestFileWithoutBackend_ReplacedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, fiveFields)
	theirs := strings.ReplaceAll(fiveFields, "svc_topsecret", "svc_theirs")
	s := Open(Options{Dir: dir, Backend: func() string { // called between reading and writing
		put(t, dir, theirs)
		return "https://a"
	}})
	if l := s.For("https://a"); l.AuthToken != "" {
		t.Errorf("the replaced token is in use: %+v", l)
	}
	if data, _ := os.ReadFile(s.Path()); string(data) != theirs {
		t.Errorf("the other program's file was replaced: %s", data)
	}
	s.o.Backend = func() string { return "https://a" }
	s.Reload(t.Context())
	if l := s.For("https://a"); l.AuthToken != "svc_theirs" {
		t.Errorf("%+v; want the other program's link", l)
	}
}

// A file whose backend cannot be added is left alone.
func TestWithBackend_KeepsOtherFields(t *testing.T) {
	got, err := withBackend([]byte(`{"authToken":"svc_a","accountId":"acc","n":1e400,"backendUrl":""}`), "https://a")
	if err != nil || !strings.Contains(string(got), `"n": 1e400`) || strings.Count(string(got), "backendUrl") != 1 {
		t.Errorf("%s, %v", got, err)
	}
	got, err = withBackend([]byte(`{"authToken":"svc_a","accountId":"acc","backendurl":""}`), "https://a")
	if err == nil {
		t.Errorf("a second spelling hides the field, but the file became %s", got)
	}
}
