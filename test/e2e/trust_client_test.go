//go:build unix

package e2e

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
)

// trustEngines runs a test on both databases, each with its own empty backend.
func trustEngines(t *testing.T, test func(t *testing.T, b *remoteBackend, dump func() string), variables ...string) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, dump := newDatabase(t, engine)
			b := startBackend(t, database, append([]string{"SERVICE_BACKEND_LINK_POLL_INTERVAL=5"}, variables...)...)
			test(t, b, dump)
		})
	}
}

// full returns the number of repetitions: all if FULL=1 is set, otherwise some.
func full(all, some int) int {
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		return all
	}
	return some
}

// wire calls the backend directly from a given address of this machine, without our programs in between.
type wire struct {
	t      *testing.T
	url    string
	client *http.Client
}

// httpReply is an HTTP response that has been read completely.
type httpReply struct {
	status int
	header http.Header
	body   string
}

func newWire(t *testing.T, b *remoteBackend, address string) *wire {
	t.Helper()
	transport := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &wire{t: t, url: b.url, client: &http.Client{Transport: transport, Jar: jar}}
}

// send makes one request; headers are given in pairs.
func (w *wire) send(method, path, body string, headers ...string) httpReply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return httpReply{resp.StatusCode, resp.Header, string(text)}
}

func (w *wire) issue() (code backendapi.DeviceCode) {
	w.t.Helper()
	r := w.send("POST", backendapi.PathDeviceCode, `{"scope":"account_full"}`, backendapi.HeaderInstallID,
		"inst_trust0123456789", backendapi.HeaderHost, "hostcanary")
	r.is(w.t, http.StatusOK)
	r.into(w.t, &code)
	return code
}

func (w *wire) poll(deviceCode string) httpReply {
	w.t.Helper()
	return w.send("POST", backendapi.PathDeviceToken, `{"deviceCode":"`+deviceCode+`"}`)
}

// redeem polls for the token of an approved code.
func (w *wire) redeem(deviceCode string) string {
	w.t.Helper()
	var token backendapi.Token
	r := w.poll(deviceCode)
	r.is(w.t, http.StatusOK)
	r.into(w.t, &token)
	if token.AuthToken == "" {
		w.t.Fatalf("the response contains no token: %s", r.body)
	}
	return token.AuthToken
}

func (r httpReply) is(t *testing.T, status int) {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
}

func (r httpReply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("decode response: %v: %s", err, r.body)
	}
}

// problem returns the error body of a refusal.
func (r httpReply) problem(t *testing.T) backendapi.Problem {
	t.Helper()
	var p backendapi.Problem
	r.into(t, &p)
	return p
}

// approveOnly opens the activation page as a signed-in user and approves the code.
func (p *person) approveOnly(verificationURL string) {
	p.t.Helper()
	p.open(verificationURL)
	p.submit("/activate/approve", "password", password)
	if p.at.Path != "/activate/approved" {
		p.t.Fatalf("approval led to %s (status %d), want /activate/approved\n%s", p.at, p.status, p.text())
	}
}
