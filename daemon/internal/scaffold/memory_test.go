package scaffold

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/glasses"
)

// memoryGateway answers calls, and records their method, path, user and agreement.
func memoryGateway(t *testing.T) (gateway *glasses.Gateway, calls func() []string) {
	t.Helper()
	var mu sync.Mutex
	var list []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		list = append(list, strings.TrimSpace(strings.Join([]string{r.Method, r.URL.Path, r.Header.Get("X-Service-User"),
			r.Header.Get("X-Service-Memory")}, " ")))
		mu.Unlock()
		switch r.Method {
		case http.MethodGet:
			_, _ = io.WriteString(w, `{"object":"memory","enabled":true,"why":null,"profile":"Name: Änn\nLikes tea"}`)
		case http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"Hi"}}]}`+"\n\ndata: [DONE]\n\n")
		}
	}))
	t.Cleanup(server.Close)
	return &glasses.Gateway{URL: server.URL + "/v1", Token: gatewayToken}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// The module sends the secret that it stored, and states the agreement only for calls that remember.
func TestMemory_SendsTheUser(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		data := t.TempDir()
		gateway, calls := memoryGateway(t)
		for range 2 {
			app, p := startProbeWith(t, func(env ...string) *app {
				return start(append(env, "XDG_DATA_HOME="+data)...)
			}, gateway)
			p.input("g-1", "memory")
			p.expect("com.example.memory", `{"text":"Name: Änn\nLikes tea"}`)
			p.input("g-2", "remember")
			p.expect("com.example.answer", `{"text":"Hi","roles":["user","assistant"]}`)
			p.input("g-3", "forget")
			p.expect("com.example.forgotten", `{}`)
			p.input("g-4", "ask me")
			p.expect("com.example.text", `{"text":"Hi"}`)
			p.expect("com.example.answer", "")
			p.leave(app)
		}
		secret, err := os.ReadFile(filepath.Join(data, "probe", "glasses-user"))
		if err != nil || !regexp.MustCompile(`^[0-9a-f]{32}$`).Match(secret) {
			t.Fatalf("the user's secret: %q, %v", secret, err)
		}
		folder, err := os.ReadDir(filepath.Join(data, "probe"))
		if err != nil || len(folder) != 1 {
			t.Errorf("the folder of the secret has %v, %v, want the secret alone", folder, err)
		}
		info, err := os.Stat(filepath.Join(data, "probe", "glasses-user"))
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("the user's secret: got %v, %v, want mode 0600", info, err)
		}
		user := " " + string(secret)
		one := []string{"GET /v1/memory" + user, "POST /v1/chat/completions" + user + " wearer-agreed",
			"DELETE /v1/memory" + user, "POST /v1/chat/completions"}
		if got, want := strings.Join(calls(), "\n"), strings.Join(append(one, one...), "\n"); got != want {
			t.Errorf("calls:\n%s\nwant\n%s", got, want)
		}
	})
}

func TestMemory_NamesRefusals(t *testing.T) {
	t.Parallel()
	noFolder := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(noFolder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, start func(env ...string) *app) {
		gateway, calls := memoryGateway(t)
		for _, c := range []struct {
			data, target, code, hint string
			gateway                  *glasses.Gateway
		}{
			{t.TempDir(), "memory", "no_gateway", "assistantScript", nil},
			{noFolder, "remember", "no_storage", "user", gateway},
			{noFolder, "forget", "no_storage", "user", gateway},
		} {
			app, p := startProbeWith(t, func(env ...string) *app {
				return start(append(env, "XDG_DATA_HOME="+c.data)...)
			}, c.gateway)
			p.input("g-1", c.target)
			p.expectRefusal(c.target, c.code, c.hint, 0)
			p.leave(app)
		}
		if len(calls()) > 0 {
			t.Errorf("the gateway was called without a user: %q", calls())
		}
	})
}

// Two apps that start at once make one secret. A line break that an editor has added to it does not count, and an
// unusable secret is replaced.
func TestMemory_HasOneSecretOfEachUser(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		data := t.TempDir()
		file := filepath.Join(data, "probe", "glasses-user")
		users := func(apps int) []string {
			gateway, calls := memoryGateway(t)
			var stops []func()
			var probes []*peer
			for range apps {
				app, p := startProbeWith(t, func(env ...string) *app {
					return start(append(env, "XDG_DATA_HOME="+data)...)
				}, gateway)
				probes, stops = append(probes, p), append(stops, func() { p.leave(app) })
			}
			for _, p := range probes {
				p.input("g-1", "memory")
			}
			for i, p := range probes {
				p.expect("com.example.memory", "")
				stops[i]()
			}
			return calls()
		}
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := users(2); len(got) != 2 || got[0] != got[1] {
			t.Errorf("two apps that started at once: got calls %q, want one user", got)
		}
		secret := strings.Repeat("0a", 16)
		for text, want := range map[string]bool{secret + "\n": true, "broken": false} {
			write(text)
			if got := users(1); len(got) != 1 || strings.HasSuffix(got[0], " "+secret) != want {
				t.Errorf("the file contains %q: got calls %q, want its user: %v", text, got, want)
			}
		}
		if now, err := os.ReadFile(file); err != nil || string(now) == "broken" {
			t.Errorf("got %q, %v, want a new secret", now, err)
		}
	})
}
