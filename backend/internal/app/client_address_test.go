package app

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestClientAddresses(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}
	for name, tc := range map[string]struct {
		trusted []netip.Prefix
		proxied bool
		peer    string
		headers []string
		ip      string
		known   bool
	}{
		"on this machine": {nil, false, "127.0.0.1:5", nil, "127.0.0.1", true},
		"on this machine, forwarded": {nil, false, "127.0.0.1:5", []string{"X-Forwarded-For", "192.0.2.7"}, "127.0.0.1",
			false},
		"unnamed proxy":               {nil, true, "10.0.0.9:5", []string{"X-Forwarded-For", "192.0.2.7"}, "10.0.0.9", false},
		"unnamed proxy without marks": {nil, true, "203.0.113.9:5", nil, "203.0.113.9", false},
		"another proxy is named": {trusted, true, "10.0.1.9:5", []string{"X-Forwarded-For", "192.0.2.7"}, "10.0.1.9",
			false},
		"named proxy": {trusted, true, "10.0.0.9:5", []string{"X-Forwarded-For", "192.0.2.7"}, "192.0.2.7",
			true},
		"two named proxies": {trusted, true, "10.0.0.9:5", []string{"X-Forwarded-For", "192.0.2.7, 10.0.0.8"},
			"192.0.2.7", true},
		"unnamed before a named one": {trusted, true, "10.0.0.9:5", []string{"X-Forwarded-For", "192.0.2.7, 198.51.100.4"},
			"198.51.100.4", false},
		"trusted proxy without X-Forwarded-For": {trusted, true, "10.0.0.9:5", nil, "10.0.0.9", false},
		"named proxy, no address": {trusted, true, "10.0.0.9:5", []string{"X-Forwarded-For", "unknown"}, "10.0.0.9",
			false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/activate", http.NoBody)
		r.RemoteAddr = tc.peer
		for i := 0; i < len(tc.headers); i += 2 {
			r.Header.Add(tc.headers[i], tc.headers[i+1])
		}
		var log bytes.Buffer
		c := &clientAddresses{trusted: tc.trusted, proxied: tc.proxied, log: slog.New(slog.NewTextHandler(&log, nil))}
		if ip, known := c.ip(r), c.isKnown(r); ip != tc.ip || known != tc.known {
			t.Errorf("%s: got address %s, known %t; want %s, %t", name, ip, known, tc.ip, tc.known)
		}
		c.isKnown(r)
		if warned := strings.Count(log.String(), "trusted_proxies"); warned > 1 ||
			(warned == 1) != (tc.proxied && !tc.known) {
			t.Errorf("%s: got %d warnings, want 1 for an unknown proxy and otherwise 0", name, warned)
		}
	}
}
