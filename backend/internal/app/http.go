package app

import (
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/service-dev/service/backend/internal/secret"
)

// observe logs each request without its query, and turns a panic into a 500 and a log line.
func observe(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p == http.ErrAbortHandler { //nolint:errorlint // a sentinel that panics carry as it is
				panic(p)
			} else if p != nil {
				log.Error("panic in a handler", "path", secret.Redact(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
				if rec.status == 0 {
					rec.WriteHeader(http.StatusInternalServerError)
				}
			}
			if log.Enabled(r.Context(), slog.LevelDebug) {
				log.Debug("request", "method", r.Method, "path", secret.Redact(r.URL.Path), "status", rec.status, "ms", time.Since(start).Milliseconds())
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// withPolicies sets what every answer says: that no other site may load it into a page of theirs, unless its handler says
// otherwise, and, where people come by https, that their browsers always do. Subdomains are others' to decide on.
func withPolicies(https bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		if https {
			w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// textOnly refuses addresses with bytes that are no text: nothing has such a name, and PostgreSQL takes none to look for.
func textOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query, err := url.QueryUnescape(r.URL.RawQuery)
		if text := r.URL.Path + query; err != nil || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			http.Error(w, "the address holds bytes that are no text", http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownHostOnly refuses requests for another host name: a page that let its own name point to this machine would else
// pass as this backend's (DNS rebinding).
func ownHostOnly(port string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Host {
		case "localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port:
			next.ServeHTTP(w, r)
		default:
			http.Error(w, "this backend serves localhost only", http.StatusMisdirectedRequest)
		}
	})
}

// recorder remembers the status. Unwrap lets WebSockets take the connection over.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
