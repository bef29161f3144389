package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/proto/backendapi"
)

func TestLocalBase(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:11434":         "http://localhost:11434/v1",
		"\thttp://localhost:11434/v1/\n": "http://localhost:11434/v1",
		"https://192.168.1.20/openai/v1": "https://192.168.1.20/openai/v1",
		"localhost:11434":                "", "ftp://localhost": "", "http://": "", "http://u:p@localhost": "",
		"http://localhost/?a=b": "", "http://localhost/#x": "", "http://localhost:x": "", "": "",
		"http://" + strings.Repeat("a", maxText): "",
	} {
		if got, err := localBase(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", address, got, err)
		}
	}
}

// localOnly checks addresses after names are resolved, so no name can lead to a public network.
func TestLocalOnly(t *testing.T) {
	for address, want := range map[string]error{
		"127.0.0.1:1": nil, "[::1]:1": nil, "10.1.2.3:80": nil, "192.168.0.1:80": nil,
		"172.16.0.1:80": nil, "[fd00::1]:80": nil,
		"[::ffff:127.0.0.1]:1": nil, "8.8.8.8:80": ErrNotLocal,
		"169.254.169.254:80": ErrNotLocal, "[fe80::1]:80": ErrNotLocal,
		"0.0.0.0:80": ErrNotLocal, "[::]:80": ErrNotLocal,
		"[2001:db8::1]:80": ErrNotLocal, "[::ffff:8.8.8.8]:80": ErrNotLocal,
		"[fd00:ec2::254]:80": ErrNotLocal, "[fd00:ec2::254%eth0]:80": ErrNotLocal, "[fd20:ce::254]:80": ErrNotLocal,
		"172.32.0.1:80": ErrNotLocal, "localhost:80": ErrNotLocal, "": ErrNotLocal,
	} {
		if err := localOnly("tcp", address, nil); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want ErrNotLocal only for a public address", address, err)
		}
	}
}

// noted serves list as a server's list of models and returns the server as a check records it.
func noted(t *testing.T, list string) LocalServer {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, list)
	}))
	defer server.Close()
	s := LocalServer{ID: "ollama", BaseURL: server.URL}
	if err := NewLocalServers(nil, nil, time.Now).ask(t.Context(), &s, ""); err != nil {
		t.Fatal(err)
	}
	return s
}

// Adapters refuse a whole response if it contains a malformed ID, so a single such model would hide the project's
// usage.
func TestLocalServers_OfferOnlyModelsWhoseIDsAdaptersAccept(t *testing.T) {
	const fits = backendapi.MaxModelID - len("ollama/")
	for name, offered := range map[string]bool{
		"llama3.2:1b": true, "Qwen/Qwen2.5-7B@q4+k": true, strings.Repeat("x", fits): true,
		strings.Repeat("x", fits+1): false, `C:\\models\\qwen2.5-7b.gguf`: false, "a b": false,
		`a\u001b[2J`: false, "": false,
		"modèle": false,
	} {
		s := noted(t, `{"data":[{"id":"good"},{"id":"`+name+`"}]}`)
		if len(s.Models) == 2 != offered || s.LeftOut != 2-len(s.Models) || s.Problem != "" {
			t.Errorf("%q: %+v", name, s)
		}
	}
	if s := noted(t, `{"data":[{"id":"`+longList(maxLocalModels+9)+`"}]}`); len(s.Models) != maxLocalModels {
		t.Errorf("got %d models, want maxLocalModels", len(s.Models))
	}
}

// longList returns a JSON list of n names without its first and last brackets.
func longList(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = "model-" + strconv.Itoa(i)
	}
	return strings.Join(names, `"},{"id":"`)
}

func FuzzParseModels(f *testing.F) {
	f.Add(`{"object":"list","data":[{"id":"llama3.2:1b"},{"id":"Qwen/Qwen2.5"},{"id":"llama3.2:1b"}]}`)
	f.Add(`{"data":[]}`)
	f.Add(`{"data":[{"id":"a b"},{"id":7}]}`)
	f.Add(`{"data":null}`)
	f.Add("<html>")
	f.Fuzz(func(t *testing.T, body string) {
		names, ok := parseModels([]byte(body))
		if !ok && names != nil || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Fatalf("%q: %q, %v", body, names, ok)
		}
	})
}

func TestLocalServer_KeyInClear(t *testing.T) {
	for address, want := range map[string]bool{
		"http://192.168.1.20:8000/v1": true, "http://desk.local/v1": true, "http://[fd00::7]/v1": true,
		"https://192.168.1.20/v1": false, "http://localhost:11434/v1": false, "http://127.0.0.1/v1": false,
		"http://[::1]:8080/v1": false,
	} {
		if got := (LocalServer{BaseURL: address, Keyed: true}).KeyInClear(); got != want {
			t.Errorf("%s: %t", address, got)
		}
		if (LocalServer{BaseURL: address}).KeyInClear() {
			t.Errorf("%s: KeyInClear is true for a server without a key", address)
		}
	}
}

func FuzzLocalBase(f *testing.F) {
	for _, address := range []string{"http://localhost:11434", " https://[::1]:8080/v1/ ", "http://a:b@c",
		"http://h?q", "ftp://h", "//h", "http://h/%2f/", "http://h/a b#c", "http://h%zz"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		base, err := localBase(address)
		if err != nil {
			return
		}
		u, err := url.Parse(base)
		if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
			u.Scheme != "http" && u.Scheme != "https" || strings.HasSuffix(base, "/") {
			t.Fatalf("%q: %q, %v", address, base, err)
		}
		if again, err := localBase(base); len(base) <= maxText && (err != nil || again != base) {
			t.Fatalf("base address of %q: got %q, then %q (error %v), want no second change", address, base, again, err)
		}
	})
}

func TestParseModels(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[{"id":"b"},{"id":"a","owned_by":"library"},{"id":"b"}]}`: "a,b",
		`{"data":[]}`: "", `{"data":null}`: "-", `{}`: "-", `[]`: "-", `nothing`: "-",
	} {
		names, ok := parseModels([]byte(body))
		if got := strings.Join(names, ","); ok == (want == "-") || ok && got != want {
			t.Errorf("%s: %q, %v", body, got, ok)
		}
	}
}

// A local server fails for reasons that its owner can remove, such as too little memory for the model. Repeating the
// call does not help, so the app gets the server's reason.
func TestLocalServer_ReasonReachesTheApp(t *testing.T) {
	const reason = "model requires more system memory (7.5 GiB) than is available (5.2 GiB)"
	event := func(data string) string { return "data: " + data + "\n\n" }
	for name, answer := range map[string]struct {
		status     int
		kind, text string
	}{
		"status 500":     {500, "application/json", `{"error":"` + reason + `"}`},
		"status 503":     {503, "application/json", `{"error":{"message":"` + reason + `"}}`},
		"status 404":     {404, "application/json", `{"error":{"message":"` + reason + `"}}`},
		"status 422":     {422, "application/json", `{"detail":[{"msg":"` + reason + `"}]}`},
		"error with 200": {200, "application/json", `{"error":"` + reason + `"}`},
		"first event":    {200, "text/event-stream", event(`{"error":"` + reason + `"}`)},
		"event in answer": {200, "text/event-stream", event(`{"choices":[{"delta":{"content":"Gr"}}]}`) +
			event(`{"error":{"message":"`+reason+`"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", answer.kind)
				rw.WriteHeader(answer.status)
				_, _ = io.WriteString(rw, answer.text)
			}))
			defer server.Close()
			store := newServerStore(t, "acc", "com.example.app",
				LocalServer{ID: "mine", BaseURL: server.URL, Models: []string{"a"}})
			w := newWorld(t, 0, Limits{}, func(o *Options) { o.Servers = NewLocalServers(store, &faultyKeys{}, time.Now) })
			requests := [][]byte{body("mine/a", "")}
			if answer.kind == "application/json" {
				requests = append(requests, bytes.Replace(requests[0], []byte("true"), []byte("false"), 1))
			}
			for _, request := range requests {
				var refusal *Refusal
				err := w.do(t.Context(), request, newRecorder())
				if !errors.As(err, &refusal) || !strings.Contains(refusal.Message, reason) {
					t.Errorf("%s: got %v, want the server's reason", request, err)
				}
			}
		})
	}
}
