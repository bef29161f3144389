//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
)

// endpoint is a proxy in front of a backend. It records every telemetry request.
type endpoint struct {
	url string

	mu   sync.Mutex
	seen []told
	deaf bool // the proxy forwards requests but drops the responses
}

type told struct {
	method string
	header http.Header
	body   []byte
}

// newEndpoint returns a proxy to backend. If backend is empty, requests are not forwarded.
func newEndpoint(t *testing.T, backend string) *endpoint {
	t.Helper()
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{}
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, _ error) { rw.WriteHeader(http.StatusBadGateway) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != backendapi.PathTelemetry {
			proxy.ServeHTTP(rw, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		e.mu.Lock()
		e.seen = append(e.seen, told{r.Method, r.Header.Clone(), body})
		deaf := e.deaf
		e.mu.Unlock()
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		if deaf {
			rw.WriteHeader(http.StatusBadGateway)
			return
		}
		for name, values := range answer.Header() {
			rw.Header()[name] = values
		}
		rw.WriteHeader(answer.Code)
		_, _ = rw.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

func (e *endpoint) requests() []told {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]told(nil), e.seen...)
}

func (e *endpoint) lose(answers bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deaf = answers
}

// stopDaemon stops the daemon, which uploads permitted events before it exits.
func stopDaemon(w *world) {
	w.t.Helper()
	if _, errs, code := w.ctl("daemon", "stop"); code != 0 {
		w.t.Fatalf("daemon stop: exit %d, want 0: %s", code, errs)
	}
}

// telemetryStatus is the output of `servicectl telemetry status`.
type telemetryStatus struct {
	UploadAllowed bool
	DecidedBy     string
	Waiting       int
	NoticeShownAt *string
	LastError     string
}

func (w *world) telemetry() (s telemetryStatus) {
	w.t.Helper()
	out, errs, code := w.ctl("telemetry", "status", "--json")
	if code != 0 || json.Unmarshal([]byte(out), &s) != nil {
		w.t.Fatalf("telemetry status: exit %d, want 0 and JSON: %s%s", code, out, errs)
	}
	return s
}

// tenCalls makes ten concurrent calls of a tool, spread over the given number of shims, and returns the results.
func tenCalls(w *world, tool string, shims int) []toolResult {
	w.t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	var answers []toolResult
	for range shims {
		all.Go(func() {
			some, err := callAtOnce(w, tool, 10/shims)
			if err != nil {
				w.t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers = append(answers, some...)
		})
	}
	all.Wait()
	if len(answers) != 10 {
		w.t.Fatalf("got %d results, want 10", len(answers))
	}
	return answers
}

// callAtOnce makes n concurrent calls over one shim.
func callAtOnce(w *world, tool string, n int) ([]toolResult, error) {
	shim := exec.Command(filepath.Join(bin, "service-mcp"))
	shim.Env, shim.Dir, shim.Stderr = w.env, w.project, os.Stderr
	stdin, err := shim.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := shim.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := shim.Start(); err != nil {
		return nil, err
	}
	lines := json.NewDecoder(stdout)
	var answer struct{ Result toolResult }
	fmt.Fprintln(stdin, `{"jsonrpc":"2.0","id":100,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent of /home/zyxwho","version":"7.1"}}}`)
	if err := lines.Decode(&answer); err != nil {
		return nil, err
	}
	var calls strings.Builder
	calls.WriteString(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	for i := range n {
		fmt.Fprintf(&calls, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`+"\n", i, tool)
	}
	if _, err := io.WriteString(stdin, calls.String()); err != nil {
		return nil, err
	}
	var answers []toolResult
	for range n {
		answer.Result = toolResult{}
		if err := lines.Decode(&answer); err != nil {
			return nil, err
		}
		answers = append(answers, answer.Result)
	}
	stdin.Close()
	return answers, shim.Wait()
}
