package modelapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/test/llmtest"
)

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A thousand apps disconnect, each at a different event. Afterwards no hold, goroutine, connection or memory is left.
func TestCall_ThousandAppsLeave(t *testing.T) {
	checkLeaks := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		goleak.VerifyNone(t, checkLeaks)
	})
	w := newWorld(t, 0, gateway.Limits{})
	before := uint64(0)
	for round := range 20 {
		var apps sync.WaitGroup
		for i := range 50 {
			apps.Go(func() {
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				res := w.request(ctx, t, "good", "")
				defer res.Body.Close()
				lines := bufio.NewScanner(res.Body)
				for n := 0; n <= (50*round+i)%24 && lines.Scan(); n++ {
					continue
				}
			})
		}
		for range 50 {
			<-w.purse.rows
		}
		apps.Wait()
		if round == 2 { // pools and caches are full now
			before = heap()
		}
	}
	if after := heap(); after > before+8<<20 {
		t.Errorf("heap grew from %d to %d bytes, want at most 8 MB more", before, after)
	}
}

// Some proxies, such as nginx, buffer responses unless a header forbids it. Each event must pass such a proxy
// immediately.
func TestCall_PassesABufferingProxy(t *testing.T) {
	for _, obeys := range []bool{true, false} {
		w := newWorld(t, 0, gateway.Limits{})
		proxy := httptest.NewServer(collecting(w.url, obeys))
		direct := w.url
		w.url = proxy.URL
		var early string
		if obeys {
			res := w.request(t.Context(), t, llmtest.WaitsInside, "")
			lines := bufio.NewScanner(res.Body)
			for lines.Scan() && !strings.Contains(lines.Text(), "Grüße") {
				continue
			}
			early = lines.Text()
			w.provider.Continue() // only after the proxy has forwarded the first word
			_, err := io.Copy(io.Discard, res.Body)
			if res.Body.Close(); err != nil || early == "" {
				t.Errorf("%q, %v", early, err)
			}
		} else { // a proxy that ignores the header delivers the same answer at the end
			w.provider.Continue()
			res := w.request(t.Context(), t, llmtest.WaitsInside, "")
			text, err := io.ReadAll(res.Body)
			if res.Body.Close(); err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
				t.Errorf("%q, %v", text, err)
			}
		}
		w.url = direct
		<-w.purse.rows
		proxy.Close()
	}
}

// collecting is a proxy that buffers an answer until its end. If obeys is set, X-Accel-Buffering: no prevents that.
func collecting(backend string, obeys bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ask, err := http.NewRequestWithContext(r.Context(), r.Method, backend+r.URL.Path, r.Body)
		if err != nil {
			panic(err)
		}
		ask.Header = r.Header
		res, err := http.DefaultTransport.RoundTrip(ask)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		w.WriteHeader(res.StatusCode)
		part := make([]byte, 4096)
		for {
			n, err := res.Body.Read(part)
			_, _ = w.Write(part[:n])
			if obeys && res.Header.Get("X-Accel-Buffering") == "no" {
				_ = http.NewResponseController(w).Flush()
			}
			if err != nil {
				return
			}
		}
	})
}

// brokenKeys is a key store whose database cannot be reached.
type brokenKeys struct{}

func (brokenKeys) Authenticate(context.Context, string) (projects.KeyOwner, error) {
	return projects.KeyOwner{}, errors.New("the database is gone")
}

func TestCall_RefusesWhileTheDatabaseIsAway(t *testing.T) {
	mux := http.NewServeMux()
	New(Options{Keys: brokenKeys{}, Log: slog.New(slog.DiscardHandler)}).Mount(mux)
	for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest("POST", path, strings.NewReader("{}")))
		if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") != "1" ||
			!strings.Contains(answer.Body.String(), `"unavailable"`) || strings.Contains(answer.Body.String(), "gone") {
			t.Errorf("%s: got status %d, Retry-After %q, body %s; want 503 without the cause", path, answer.Code,
				answer.Header().Get("Retry-After"), answer.Body)
		}
	}
}
