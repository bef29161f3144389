package app

import (
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/loopback"
	"github.com/service-dev/service/proto/backendapi"
)

// logRequests logs each request without its query. It converts a panic to a log line and a 500 response.
func logRequests(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &statusRecorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // panics carry it unwrapped
				panic(p)
			} else if p != nil {
				log.Error("handler panicked", "path", secret.Redact(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
				if rec.status == 0 {
					rec.WriteHeader(http.StatusInternalServerError)
				}
			}
			if log.Enabled(r.Context(), slog.LevelDebug) {
				log.Debug("request", "method", r.Method, "path", secret.Redact(r.URL.Path),
					"status", rec.status, "ms", time.Since(start).Milliseconds())
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// withPolicies forbids other sites from loading responses into their pages, unless a handler overrides the policy.
// Over https, it also tells browsers always to use https for this host, but not for its subdomains.
func withPolicies(https bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		if https {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// removedWorker is a service worker that unregisters itself and reloads the pages that it controlled.
const removedWorker = `addEventListener("install", () => skipWaiting());
addEventListener("activate", (e) => e.waitUntil(registration.unregister()
	.then(() => clients.matchAll({ type: "window" })).then((all) => Promise.all(all.map((c) => c.navigate(c.url))))));
`

// withoutWorkers answers every request for a service worker's script with removedWorker. Our pages register no
// worker. A worker that sends such a request belongs to another program that used this address earlier, and would
// keep serving that program's pages at our origin.
func withoutWorkers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Service-Worker") != "script" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, removedWorker)
	})
}

// textOnly rejects URLs that are not valid UTF-8 or contain NUL. No resource has such a name, and PostgreSQL rejects
// such text in queries.
func textOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := url.QueryUnescape(r.URL.RawQuery)
		if text := r.URL.Path + query; err != nil || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			http.Error(w, "the URL must be valid text", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limitRequests limits the requests in progress per address. refused maps path prefixes to the handlers for requests
// over the limit.
func (a *App) limitRequests(next http.Handler, refused map[string]http.HandlerFunc) http.Handler {
	inProgress := limit.NewSlots(limit.Bounds{Running: math.MaxInt, RunningEach: a.limits.RequestsPerAddress})
	full := rate.Sometimes{First: 1, Interval: time.Minute} // limits logging
	refusals := http.NewServeMux()
	for path, refuse := range refused {
		refusals.HandleFunc(path, refuse)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == backendapi.PathHealth {
			next.ServeHTTP(w, r)
			return
		}
		address := limit.Caller(a.addresses.ip(r))
		leave, err := inProgress.Enter(r.Context(), address) // never waits
		if err != nil {
			full.Do(func() {
				a.log.Warn("refused requests: the address has too many in progress; "+
					"if it is a proxy, add it to trusted_proxies", "address", address)
			})
			w.Header().Set("Connection", "close")
			refusals.ServeHTTP(w, r)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

func tooManyRequests(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "too many requests from this address are in progress: try again in a second",
		http.StatusTooManyRequests)
}

// ownHostOnly rejects requests for hosts that are not the backend's own. Otherwise a site whose name resolves to this
// machine could impersonate this backend (DNS rebinding).
func ownHostOnly(isOwn func(host string) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOwn(r.Host) {
			http.Error(w, "this backend serves localhost only: its base_url is on its own machine", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// embeddedHosts returns a function that reports whether a host is the embedded backend's site or localhost.
func embeddedHosts(site *url.URL) func(string) bool {
	port := site.Port()
	own := []string{site.Host, "localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port}
	return func(host string) bool { return slices.Contains(own, host) }
}

// localHosts returns a function that reports whether programs on this machine may call the server by this host. These
// are its site, localhost with any port, an IP address, and a name inside a container network, which cannot be
// public.
func localHosts(site *url.URL) func(string) bool {
	return func(host string) bool {
		name := (&url.URL{Host: host}).Hostname()
		_, err := netip.ParseAddr(name)
		isPublic := err != nil && (name == "" || strings.Contains(name, ".")) && !strings.HasSuffix(name, ".internal")
		return !isPublic || loopback.IsHost(name) || strings.EqualFold(host, site.Host)
	}
}

// statusRecorder records the response status. Unwrap lets WebSockets take over the connection.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *statusRecorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
