package app

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/config"
)

// BenchmarkPendingPoll measures the request that waiting clients send most often.
func BenchmarkPendingPoll(b *testing.B) {
	settings := config.Embedded(b.TempDir(), "http://localhost:1", "http://service-1a2b3c4d.localhost:1",
		[]byte(strings.Repeat("k", 32)), "")
	settings.Database = filepath.Join(b.TempDir(), "service.db")
	a, err := New(b.Context(), Options{Config: settings, Embedded: true, InstanceID: "bench",
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	post := func(path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Host = "localhost:1" // an embedded backend rejects any other host
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		return w
	}
	var code struct{ DeviceCode string }
	if err := json.Unmarshal(post("/api/auth/device/code", `{"scope":"account_full"}`).Body.Bytes(), &code); err != nil {
		b.Fatal(err)
	}
	body := `{"deviceCode":"` + code.DeviceCode + `"}`
	for range 20 { // until the poll interval has reached its maximum
		post("/api/auth/device/token", body)
	}
	b.ReportAllocs()
	for b.Loop() {
		if w := post("/api/auth/device/token", body); w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
}
