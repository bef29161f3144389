package httpbackend

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
	"github.com/service-dev/service/test/networktest"
)

// The settings of a call determine how it reaches the backend, and a change applies to the next call. Each error
// contains the cause and the setting, but no password.
func TestNetwork_SettingsOfEachCall(t *testing.T) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, token) })
	certificate, ca := networktest.ForHost(t, "backend.test")
	backend := httptest.NewUnstartedServer(answer)
	backend.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	backend.EnableHTTP2, backend.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	backend.StartTLS()
	defer backend.Close()
	var proxyAnswer atomic.Int64
	proxyAnswer.Store(http.StatusOK)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := int(proxyAnswer.Load()); code != http.StatusOK {
			w.WriteHeader(code)
			return
		}
		networktest.Tunnel(w, r, backend.Listener.Addr().String())
	}))
	defer proxy.Close()
	local := httptest.NewServer(answer)
	defer local.Close()
	s := New("backendhttp")
	defer func() { _ = s.Close(t.Context()) }()

	through := "http://ada:geheim@" + proxy.Listener.Addr().String()
	const remote, nowhere = "https://backend.test", "http://ada:geheim@127.0.0.1:1"
	for _, c := range []struct {
		name, url     string
		network       *pluginv1.Network
		proxyAnswers  int
		message, hint string // expected parts; empty means success
		retryable     bool
	}{
		{"trusted", remote, &pluginv1.Network{HttpsProxy: through, CaFile: ca}, 200, "", "", false},
		{"no proxy", remote, &pluginv1.Network{NoProxy: ".test", HttpsProxy: through, CaFile: ca}, 200,
			"backend.test cannot be resolved", "network", true},
		{"trusted again", remote, &pluginv1.Network{HttpsProxy: through, CaFile: ca}, 200, "", "", false},
		{"untrusted", remote, &pluginv1.Network{HttpsProxy: through}, 200, "unknown authority", "ca_file", false},
		{"password", remote, &pluginv1.Network{HttpsProxy: through, CaFile: ca}, 407, "407 Proxy", "https_proxy", false},
		{"forbidden", remote, &pluginv1.Network{HttpsProxy: through}, 403, "answered 403 Forbidden", "no_proxy", false},
		{"busy", remote, &pluginv1.Network{HttpsProxy: through}, 503, "answered 503 Service", "https_proxy", true},
		{"proxy down", remote, &pluginv1.Network{HttpsProxy: nowhere}, 200, "the proxy: 127.0.0.1:1: connection refused",
			"https_proxy", true},
		{"refused by SOCKS", remote, &pluginv1.Network{HttpsProxy: "socks5://" + refusingSOCKS(t), CaFile: ca}, 200,
			"the proxy: unknown error general SOCKS server failure", "https_proxy", true},
		{"no file", remote, &pluginv1.Network{CaFile: ca + ".missing"}, 200, ".missing", "ca_file", false},
		{"this machine", local.URL, &pluginv1.Network{HttpsProxy: nowhere, CaFile: ca + ".missing"}, 200, "", "", false},
	} {
		proxyAnswer.Store(int64(c.proxyAnswers))
		if c.proxyAnswers != http.StatusOK {
			s.secure.closeIdle()
		}
		_, err := s.Call(t.Context(), &pluginv1.CallRequest{Route: backendapi.RoutePollCode,
			Target: &pluginv1.Target{BaseUrl: c.url, Network: c.network}})
		if c.message == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		p := problemOf(t, err)
		if p.GetCode() != problem.CodeBackendUnreachable || !strings.Contains(p.GetMessage(), c.message) ||
			!strings.Contains(p.GetFixHint(), c.hint) || p.GetRetryable() != c.retryable ||
			p.GetUntrusted() != (c.name == "untrusted") || strings.Contains(p.String(), "geheim") {
			t.Errorf("%s: got %v, want %q and a hint with %q", c.name, p, c.message, c.hint)
		}
	}
}

// refusingSOCKS returns the address of a SOCKS proxy that refuses every connection.
func refusingSOCKS(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			// The greeting has 3 bytes, the request 4, the length of the name, the name and the port.
			_, _ = io.CopyN(io.Discard, conn, 3)
			_, _ = conn.Write([]byte{5, 0})
			_, _ = io.CopyN(io.Discard, conn, 4+1+int64(len("backend.test"))+2)
			_, _ = conn.Write([]byte{5, 1, 0, 1, 0, 0, 0, 0, 0, 0})
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

// A replaced certificate file applies to the next call.
func TestNetwork_ReadsReplacedCertificates(t *testing.T) {
	_, wrong := networktest.ForHost(t, "localhost")
	certificate, ca := networktest.ForHost(t, "localhost")
	backend := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, token)
	}))
	backend.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	backend.Config.ErrorLog = log.New(io.Discard, "", 0)
	backend.StartTLS()
	defer backend.Close()
	_, port, _ := net.SplitHostPort(backend.Listener.Addr().String())
	s := New("backendhttp")
	defer func() { _ = s.Close(t.Context()) }()
	call := func() error {
		_, err := s.Call(t.Context(), &pluginv1.CallRequest{Route: backendapi.RoutePollCode,
			Target: &pluginv1.Target{BaseUrl: "https://localhost:" + port,
				Network: &pluginv1.Network{CaFile: wrong, HttpsProxy: "http://127.0.0.1:1"}}})
		return err
	}
	if err := call(); err == nil {
		t.Fatal("a certificate of another authority was accepted")
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wrong, text, 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(wrong, later, later); err != nil {
		t.Fatal(err)
	}
	if err := call(); err != nil {
		t.Errorf("after the file was replaced: %v", err)
	}
}
