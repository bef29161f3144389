package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestEmbeddedAnswersItsOwnHostOnly(t *testing.T) {
	h := ownHostOnly("4711", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for host, want := range map[string]int{
		"localhost:4711": http.StatusNoContent, "127.0.0.1:4711": http.StatusNoContent, "[::1]:4711": http.StatusNoContent,
		"evil.example:4711": http.StatusMisdirectedRequest, "localhost:4712": http.StatusMisdirectedRequest, "localhost": http.StatusMisdirectedRequest,
		"localhost.evil.example:4711": http.StatusMisdirectedRequest,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("host %s: %d, want %d", host, w.Code, want)
		}
	}
}
