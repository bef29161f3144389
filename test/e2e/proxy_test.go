//go:build unix

package e2e

import (
	"crypto/tls"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/service-dev/service/test/networktest"
)

// guarded is a server that is reachable only through a proxy and has a certificate from a private authority.
type guarded struct {
	proxy  string // address including user name and password
	caFile string
	tunnel atomic.Int64 // number of connections through the proxy
}

const proxyPassword = "geheim-4711"

func newGuarded(t *testing.T, host string, handler http.Handler) *guarded {
	t.Helper()
	certificate, caFile := networktest.ForHost(t, host)
	g := &guarded{caFile: caFile}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wants := "Basic " + base64.StdEncoding.EncodeToString([]byte("ada:"+proxyPassword))
		switch {
		case r.Method != http.MethodConnect || r.Host != host+":443":
			http.Error(w, "not allowed", http.StatusForbidden)
		case r.Header.Get("Proxy-Authorization") != wants:
			w.WriteHeader(http.StatusProxyAuthRequired)
		default:
			g.tunnel.Add(1)
			networktest.Tunnel(w, r, server.Listener.Addr().String())
		}
	}))
	t.Cleanup(proxy.Close)
	// The daemon ignores a caller's proxy on a loopback address. On Linux, 0.0.0.0 connects to this machine as well.
	address := strings.Replace(proxy.Listener.Addr().String(), "127.0.0.1", "0.0.0.0", 1)
	g.proxy = "http://ada:" + proxyPassword + "@" + address
	return g
}

// A daemon that was started without the proxy and the private certificate reports the caller's variables in its
// errors, with the settings that solve the problem. The settings take effect immediately, for every adapter, and the
// password is never shown.
func TestProxyAndCertificates_OfTheCallerAreNamedAndSettable(t *testing.T) {
	t.Parallel()
	needAgent(t)
	const host = "backend.test" // a name that only the proxy knows
	target, err := url.Parse(startBackend(t, "").url)
	if err != nil {
		t.Fatal(err)
	}
	g := newGuarded(t, host, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	own := "backend_url: https://" + host + "\n"
	w := newWorld(t, own).with("HTTPS_PROXY="+g.proxy, "NO_PROXY=localhost,127.0.0.1", "SSL_CERT_FILE="+g.caFile)
	config := filepath.Join(w.dir, "config.yaml")
	address := strings.Split(g.proxy, "@")[1]
	var all strings.Builder
	fails := func(what ...string) {
		t.Helper()
		for _, command := range []string{"login", "doctor"} {
			out, errs, exit := w.ctl(command, "--json")
			all.WriteString(out + errs)
			for _, part := range what {
				if exit == 0 || !strings.Contains(out+errs, part) {
					t.Errorf("%s: exit %d and %s%s; want a failure that names %s", command, exit, out, errs, part)
				}
			}
		}
	}
	set := func(text string) {
		t.Helper()
		if err := os.WriteFile(config+".new", []byte(own+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(config+".new", config); err != nil {
			t.Fatal(err)
		}
	}
	cure := "https_proxy: 'http://USER:PASSWORD@" + address + "'"
	fails("HTTPS_PROXY", cure, config)
	a := startAgent(w, "legacy", false)
	if r := a.call("listProjects", map[string]any{}); !strings.Contains(r.Content[0].Text, cure) {
		t.Errorf("an agent does not see the cure: %+v", r)
	}

	set("https_proxy: http://" + address + "\n")
	must(t, "the proxy is used", func() bool {
		out, _, _ := w.ctl("doctor", "--json")
		return strings.Contains(out, "407")
	})
	fails("407", "USER:PASSWORD")

	set("https_proxy: " + g.proxy + "\n")
	must(t, "the password is used", func() bool { w.ctl("doctor"); return g.tunnel.Load() > 0 })
	fails("SSL_CERT_FILE", "ca_file: '"+g.caFile+"'", config)

	set("https_proxy: " + g.proxy + "\nca_file: " + g.caFile + "\n")
	must(t, "the backend is reached", func() bool { _, _, exit := w.ctl("doctor"); return exit == 0 })
	out, errs, _ := w.ctl("doctor", "--json")
	if all.WriteString(out + errs); !strings.Contains(out, "http://"+address+" (https_proxy in config.yaml)") {
		t.Errorf("doctor does not name the proxy: %s", out)
	}
	linkAgent(t, a, "ada@example.org")
	if r := a.call("createSimulatorSession", map[string]any{}); r.str(t, "sessionId") == "" {
		t.Errorf("createSimulatorSession through the proxy: %+v", r)
	}
	all.WriteString(readAll(t, filepath.Join(w.dir, "log", "serviced.log")))
	if strings.Contains(all.String(), proxyPassword) {
		t.Error("the proxy's password is in an output or in the log")
	}
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		text, _ := os.ReadFile(file)
		program, _ := os.Readlink(filepath.Join(filepath.Dir(file), "exe"))
		if filepath.Base(program) == "serviced" && strings.Contains(string(text), w.dir) &&
			strings.Contains(string(text), proxyPassword) {
			t.Errorf("the proxy's password is in %s", file)
		}
	}
}

// The embedded backend calls AI providers through the same proxy.
func TestProxyAndCertificates_OfTheEmbeddedBackend(t *testing.T) {
	t.Parallel()
	needAgent(t)
	var asked atomic.Int64
	g := newGuarded(t, "api.openai.com", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	w := newWorld(t, "https_proxy: "+g.proxy+"\nca_file: "+g.caFile+"\n")
	a := startAgent(w, "legacy", false)
	someone := linkAgent(t, a, "ada@example.org")
	a.call("createSimulatorSession", map[string]any{"project": app, "openBrowser": false})
	someone.open(someone.at.Scheme + "://" + someone.at.Host + "/account/projects/" + app + "/credentials")
	path := someone.at.Path + "/openai"
	someone.submit(path, "value", "sk-0123456789abcdefghijklmnopqrstuvwxyzABCDEF")
	someone.submit(path + "/test")
	if asked.Load() != 1 {
		t.Errorf("the provider was asked %d times, want once through the proxy; the page: %s", asked.Load(), someone.text())
	}
}
