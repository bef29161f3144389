package modelapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/projects"
)

// oneKey accepts every key as the same one.
type oneKey struct{}

func (oneKey) Authenticate(context.Context, string) (projects.KeyOwner, error) {
	return projects.KeyOwner{AccountID: "acc", Project: "com.example.app", KeyID: "key"}, nil
}

// Everybody can read the key of an app. One address that uses up its requests keeps neither other addresses nor model
// calls from using the key.
func TestAttest_AddressesHaveLimitsOfTheirOwn(t *testing.T) {
	api := New(Options{Keys: oneKey{}, Log: slog.New(slog.DiscardHandler)})
	mux := http.NewServeMux()
	for _, pattern := range []string{attestRoot + "challenge", "GET /v1/models"} {
		mux.HandleFunc(pattern, api.authorised(func(w http.ResponseWriter, _ *http.Request, _ gateway.Caller) {
			w.WriteHeader(http.StatusNoContent)
		}))
	}
	ask := func(method, path, address string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.RemoteAddr = address
		r.Header.Set("X-Api-Key", "key")
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		if answer.Code == http.StatusTooManyRequests && answer.Header().Get("Retry-After") == "" {
			t.Errorf("%s: a refusal without Retry-After", path)
		}
		return answer.Code
	}
	for range callsPerMinute + attestationsPerMinute {
		ask("POST", "/v1/attest/challenge", "192.0.2.1:4000")
	}
	for _, c := range []struct {
		method, path, address string
		status                int
	}{
		{"POST", "/v1/attest/challenge", "192.0.2.1:5000", http.StatusTooManyRequests},
		{"POST", "/v1/attest/challenge", "192.0.2.2:4000", http.StatusNoContent},
		{"GET", "/v1/models", "192.0.2.1:4000", http.StatusNoContent},
	} {
		if status := ask(c.method, c.path, c.address); status != c.status {
			t.Errorf("%s from %s: got %d, want %d", c.path, c.address, status, c.status)
		}
	}
}
