package app

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"
)

func dialBackend(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// exchange sends a request and reads its response.
func exchange(t *testing.T, conn net.Conn, request string) *http.Response {
	t.Helper()
	if _, err := fmt.Fprint(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

const healthRequest = "GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"

// tryHealth sends a request on a new connection. A server that refuses the connection may end it before the client
// has noticed that it exists.
func tryHealth(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, _ = fmt.Fprint(conn, healthRequest) // if it fails, so does the read
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// One address can open only so many connections. A trusted proxy can open any number.
func TestConnections_AreLimitedPerAddress(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		a := newApp(t, "http://localhost:4711")
		a.limits.PerAddress = 3
		if trusted {
			a.addresses.trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		}
		address := serveOn(t, a)
		var open []net.Conn
		for range 3 {
			conn := dialBackend(t, address)
			if got := exchange(t, conn, healthRequest).StatusCode; got != http.StatusOK {
				t.Errorf("got status %d, want 200", got)
			}
			open = append(open, conn)
		}
		if err := tryHealth(address); (err == nil) != trusted {
			t.Errorf("trusted %v: a fourth connection got error %v", trusted, err)
		}
		open[0].Close()
		for deadline := time.Now().Add(time.Minute); ; { // the server detects the end of the first one with a delay
			err := tryHealth(address)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("a connection after another had ended got error %v", err)
			}
		}
	}
}

// unfinished begins a request whose body does not arrive, and returns once a handler reads it.
func unfinished(t *testing.T, address, path string, length int, headers ...string) net.Conn {
	t.Helper()
	conn := dialBackend(t, address)
	headers = append(headers, "X-Service-Install-Id: inst_abcdefgh", "Content-Type: application/json",
		"Expect: 100-continue", fmt.Sprintf("Content-Length: %d", length))
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", path,
		strings.Join(headers, "\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
		t.Fatalf("%s: got %q, %v; want a handler that reads the body", path, line, err)
	}
	return conn
}

// A request over the limit gets the error of its interface. Clients behind a trusted proxy are counted separately.
func TestRequests_InProgressAreLimitedPerAddress(t *testing.T) {
	a := newAppWith(t, "http://localhost:4711", ConnLimits{RequestsPerAddress: 2})
	a.addresses.trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	address := serveOn(t, a)
	const first, other = "X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.2"
	for range 2 {
		unfinished(t, address, "/api/telemetry", 1000, first)
	}
	get := func(path, client string) *http.Response {
		return exchange(t, dialBackend(t, address), "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n"+client+"\r\n\r\n")
	}
	if got := get("/api/health", first).StatusCode; got != http.StatusOK {
		t.Errorf("health: got status %d, want 200 whatever the number of requests", got)
	}
	for _, path := range []string{"/api/account", "/v1/models", "/signin"} {
		response := get(path, first)
		if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: got status %d with Retry-After %q, want 429 and 1", path, response.StatusCode,
				response.Header.Get("Retry-After"))
		}
		var problem struct {
			Code  string
			Error struct{ Code string }
		}
		if err := json.NewDecoder(response.Body).Decode(&problem); path != "/signin" &&
			(err != nil || problem.Code+problem.Error.Code != "rate_limited") {
			t.Errorf("%s: got error %v with code %+v, want rate_limited", path, err, problem)
		}
		if got := get(path, other).StatusCode; got == http.StatusTooManyRequests {
			t.Errorf("%s: another client was refused", path)
		}
	}
}

// A request whose body never arrives uses little memory, regardless of its declared length.
func TestUnfinishedBodies_TakeLittleMemory(t *testing.T) {
	const count, maxEach = 200, 40 << 10
	address := serveOn(t, newApp(t, "http://localhost:4711"))
	unfinished(t, address, "/api/telemetry", 256<<10)
	before := liveMemory()
	for range count {
		unfinished(t, address, "/api/telemetry", 256<<10)
	}
	if each := int64(liveMemory()-before) / count; each > maxEach {
		t.Errorf("each request takes %d KB, want at most %d KB", each>>10, maxEach>>10)
	}
}

// A handler's own deadline applies in addition to the rolling one, regardless of the order in which they are set.
func TestLimitedConn_KeepsEarlierDeadline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &limitedConn{TCPConn: dialBackend(t, l.Addr().String()).(*net.TCPConn), timeout: time.Minute}
	now := time.Now()
	for _, test := range []struct{ set, want time.Time }{
		{time.Time{}, now.Add(time.Minute)},
		{now.Add(time.Second), now.Add(time.Second)},
		{now.Add(time.Hour), now.Add(time.Minute)},
		{now.Add(-time.Second), now.Add(-time.Second)},
		{time.Time{}, now.Add(time.Minute)},
	} {
		if err := c.SetDeadline(test.set); err != nil {
			t.Fatal(err)
		}
		if got := c.writeBy(now); !got.Equal(test.want) {
			t.Errorf("after SetDeadline(%s): got %s, want %s", test.set, got, test.want)
		}
	}
	if err := c.SetWriteDeadline(now.Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write after a deadline: got error %v, want os.ErrDeadlineExceeded", err)
	}
	if _, ok := net.Conn(c).(io.ReaderFrom); ok {
		t.Error("the connection has ReadFrom, which would bypass Write")
	}
}
