// Package httpjson reads JSON requests and writes JSON responses, for all HTTP interfaces called by programs.
package httpjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// Errors returned when reading a body.
var (
	ErrTooLarge = errors.New("the body is too large")
	ErrNotJSON  = errors.New("the body is not application/json")
)

// CheckContentType returns ErrNotJSON unless the request's Content-Type is JSON.
func CheckContentType(r *http.Request) error {
	const want = "application/json"
	given := r.Header.Get("Content-Type")
	if given == want { // the usual case
		return nil
	}
	if kind, _, err := mime.ParseMediaType(given); err != nil || kind != want {
		return ErrNotJSON
	}
	return nil
}

// ReadBody reads a body whose Content-Type is JSON. It returns ErrNotJSON for another type and ErrTooLarge for more
// than limit bytes.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := CheckContentType(r); err != nil {
		return nil, err
	}
	return ReadAll(r, http.MaxBytesReader(w, r.Body, limit), limit)
}

// firstBuffer is the initial buffer size in bytes, enough for most bodies.
const firstBuffer = 4 << 10

// ReadAll reads the body. The buffer grows as data arrives, not to the declared length, because declaring a large
// length costs a client nothing. ReadAll returns ErrTooLarge for more than limit bytes.
func ReadAll(r *http.Request, body io.Reader, limit int64) ([]byte, error) {
	var data bytes.Buffer
	if n := r.ContentLength; n > 0 {
		data.Grow(int(min(n, firstBuffer)) + bytes.MinRead)
	}
	_, err := data.ReadFrom(body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || int64(data.Len()) > limit {
		return nil, ErrTooLarge
	}
	return data.Bytes(), err
}

// Write responds with v as JSON, or without a body if the status is 204, and forbids caching.
func Write(w http.ResponseWriter, log *slog.Logger, status int, v any) {
	if status == http.StatusNoContent {
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		log.Error("failed to encode response", "err", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// AllowAnyOrigin lets pages of any site read the response. It is for routes that use no cookies, where a key
// authorises the caller.
func AllowAnyOrigin(w http.ResponseWriter) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cross-Origin-Resource-Policy", "cross-origin") // allows apps on other sites
	w.Header().Set("Access-Control-Expose-Headers", "Retry-After")
}

// Preflight responds to a CORS preflight request for a route that any origin may call. It allows methods and headers.
func Preflight(w http.ResponseWriter, methods, headers string) {
	AllowAnyOrigin(w)
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", methods)
	h.Set("Access-Control-Allow-Headers", headers)
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

// maxAuthorization is the maximum length of an accepted Authorization header, in bytes.
const maxAuthorization = 512

// Bearer returns the credential in an Authorization header of the form Bearer <credential>.
func Bearer(authorization string) (credential string, ok bool) {
	scheme, credential, _ := strings.Cut(authorization, " ")
	return credential, strings.EqualFold(scheme, "Bearer") && credential != "" && len(authorization) <= maxAuthorization
}

// AllowedMethods lists the methods for which a pattern of mux matches the request's path. It ignores the pattern
// fallback, which matches every path.
func AllowedMethods(mux *http.ServeMux, r *http.Request, fallback string) (allowed []string) {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != fallback {
			allowed = append(allowed, method)
		}
	}
	return allowed
}

// Seconds returns a wait in whole seconds, rounded up and at least 1.
func Seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

// Clip truncates text from a request and removes unprintable characters, for sending it back or storing it.
func Clip(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1 // control, bidirectional and invisible characters could make the activation page misleading
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}
