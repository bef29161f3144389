package app

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/test/chromium"
)

// newApp creates a backend as an operator would run it, with the given public address.
func newApp(t *testing.T, address string) *App {
	t.Helper()
	return newAppWith(t, address, ConnLimits{})
}

func newAppWith(t *testing.T, address string, limits ConnLimits) *App {
	t.Helper()
	a, err := New(t.Context(), Options{Log: slog.New(slog.DiscardHandler), ConnLimits: limits, Config: config.Config{
		BaseURL: address, SiteURL: address, Database: filepath.Join(t.TempDir(), "service.db"),
		HMACKey: bytes.Repeat([]byte("k"), 32),
		CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second, Grace: 30 * time.Second, UnusedAfter: time.Minute,
		CodesPerMinute: 60, DrainTimeout: 2 * time.Second, AnalyticsQuota: 1000,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A browser can sign in to a backend on this machine over plain http, where browsers reject Secure cookies.
func TestPlainHTTP_OnThisMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	site := "http://" + l.Addr().String()
	a := newApp(t, site)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	browser := newBrowser(t)
	run(t, browser, chromedp.Navigate(site+"/signup?next=/account"), chromium.Type("#email", "ada@example.org"),
		chromium.Type("#password", testPassword), chromedp.Click("#accept"), chromedp.Submit("#email"))
	see(t, browser, "h1", "Overview")
	see(t, browser, ".email", "ada@example.org")
}

// Every response defines who may embed it. If the public address is https, it also tells browsers to require https from
// then on.
func TestPolicies_OnEveryAnswer(t *testing.T) {
	const year = "max-age=31536000"
	for address, hsts := range map[string]string{"https://service.example": year, "http://localhost:8080": ""} {
		a := newApp(t, address)
		for _, tc := range []struct{ method, path, policy string }{
			{"GET", "/", "same-origin"}, {"GET", "/activate?code=x", "same-origin"}, {"GET", "/assets/style.css", "same-origin"},
			{"GET", "/docs", "same-origin"}, {"GET", "/nothing-here", "same-origin"}, {"GET", "/connect/none", "same-origin"},
			{"GET", "/api/health", "same-origin"}, {"GET", "/api/account", "same-origin"},
			{"GET", "/api/nothing-here", "same-origin"},
			{"GET", "/%ff", "same-origin"}, {"OPTIONS", "/api/analytics", "cross-origin"},
			{"POST", "/api/analytics", "cross-origin"},
		} {
			w := httptest.NewRecorder()
			a.handler.ServeHTTP(w, httptest.NewRequest(tc.method, address+tc.path, http.NoBody))
			if got := w.Header().Get("Strict-Transport-Security"); got != hsts {
				t.Errorf("%s: %s %s: got Strict-Transport-Security %q, want %q", address, tc.method, tc.path, got, hsts)
			}
			if got := strings.Join(w.Header().Values("Cross-Origin-Resource-Policy"), ","); got != tc.policy {
				t.Errorf("%s: %s %s: got Cross-Origin-Resource-Policy %q, want %q", address, tc.method, tc.path, got, tc.policy)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}
