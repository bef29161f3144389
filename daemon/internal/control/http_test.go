package control

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/service-dev/service/daemon/internal/ratelog"
	api "github.com/service-dev/service/proto/control"
	"github.com/service-dev/service/test/controltest"
)

// Every route of the API has a handler, and there is no other handler.
func TestEveryRouteIsServed(t *testing.T) {
	var served []api.Route
	for _, e := range New(Options{}).routes() {
		served = append(served, e.Route)
	}
	if want := api.Routes(); !slices.Equal(served, want) {
		t.Errorf("served:\n%v\nwant:\n%v", served, want)
	}
}

// send writes a request as text and returns the response.
func send(t *testing.T, path, request string) *http.Response {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

// A request is served only if it has the documented host and comes from no web page.
func TestRequestsAreChecked(t *testing.T) {
	path, _ := serve(t, &fake{}, Limits{})
	for name, c := range map[string]struct {
		request, code, message string
	}{
		"as documented": {"GET /v1/status HTTP/1.1\r\nHost: service\r\n\r\n", "", ""},
		"HTTP/1.0":      {"GET /v1/status HTTP/1.0\r\nHost: service\r\n\r\n", "", ""},
		"an origin": {"GET /v1/status HTTP/1.1\r\nHost: service\r\nOrigin: null\r\n\r\n", "refused",
			"header Origin"},
		"a referer": {"POST /v1/stop HTTP/1.1\r\nHost: service\r\nReferer: http://x/\r\n\r\n", "refused",
			"header Referer"},
		"another host": {"GET /v1/status HTTP/1.1\r\nHost: evil.example\r\n\r\n", "refused", `"evil.example"`},
		"no host":      {"GET /v1/status HTTP/1.0\r\n\r\n", "refused", `""`},
		"a port":       {"GET /v1/status HTTP/1.1\r\nHost: service:80\r\n\r\n", "refused", `"service:80"`},
		"another path": {"GET /v2/status HTTP/1.1\r\nHost: service\r\n\r\n", "not_found", "GET /v2/status"},
		"another method": {"DELETE /v1/status HTTP/1.1\r\nHost: service\r\n\r\n", "method_not_allowed",
			"DELETE /v1/status"},
		"a bad caller": {"GET /v1/status HTTP/1.1\r\nHost: service\r\nService-Caller: cwd=a&cwd=b\r\n\r\n",
			"invalid_request", "repeats"},
		"a bad body": {"POST /v1/consent HTTP/1.1\r\nHost: service\r\nContent-Length: 1\r\n\r\n{", "invalid_request",
			"parse the body"},
		"a large body": {fmt.Sprintf("POST /v1/consent HTTP/1.1\r\nHost: service\r\nContent-Length: %d\r\n\r\n%s",
			api.MaxBody+1, strings.Repeat(" ", api.MaxBody+1)), "too_large", "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			response := send(t, path, c.request)
			err := controltest.Refusal(response)
			if c.code == "" {
				var s api.Status
				if err != nil || json.NewDecoder(response.Body).Decode(&s) != nil || s.PID != 7 {
					t.Errorf("got %+v, %v; want the status", s, err)
				}
				return
			}
			if allow := response.Header.Get("Allow"); (allow == "GET") != (c.code == "method_not_allowed") {
				t.Errorf("the header Allow is %q", allow)
			}
			if e := refusalOf(t, err); e.Code != c.code || !strings.Contains(e.Message, c.message) || e.FixHint == "" {
				t.Errorf("got %+v; want code %s, message %q and a hint", e, c.code, c.message)
			}
		})
	}
}

// brief are deadlines short enough for a test.
func brief() deadlines {
	return deadlines{header: 100 * time.Millisecond, body: 100 * time.Millisecond, idle: 100 * time.Millisecond,
		write: 100 * time.Millisecond}
}

// A client that sends nothing, or stops in the middle of a request, loses its connection.
func TestSlowClientsAreCut(t *testing.T) {
	path, _ := serveWithin(t, &fake{}, Limits{}, brief())
	for name, text := range map[string]string{
		"silent":               "",
		"half a header":        "GET /v1/status HTTP/1.1\r\nHos",
		"a started preface":    "PRI * HTTP/2.0\r\n",
		"idle after an answer": "GET /v1/status HTTP/1.1\r\nHost: service\r\n\r\n",
		"half a body":          "POST /v1/consent HTTP/1.1\r\nHost: service\r\nContent-Length: 100\r\n\r\n{",
		"half a font":          "POST /v1/fonts/add HTTP/1.1\r\nHost: service\r\nContent-Length: 100\r\n\r\nx",
		"half a refused body":  "POST /v1/none HTTP/1.1\r\nHost: service\r\nContent-Length: 100\r\n\r\nx",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, text)
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			if data, err := io.ReadAll(conn); err != nil {
				t.Errorf("the connection is still open: %v, after %q", err, data)
			}
		})
	}
}

// A call whose client does not read its lines ends.
func TestUnreadStreamEnds(t *testing.T) {
	path, s := serveWithin(t, &fake{}, Limits{}, brief())
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const body = `{"name":"flood"}`
	fmt.Fprintf(conn, "POST /v1/tools/call HTTP/1.1\r\nHost: service\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	settled(t, "the call began", func() bool { return s.Calls() == 1 })
	settled(t, "the call ended", func() bool { return s.Active() == 0 })
}

// A call may last longer than the deadlines of its request.
func TestLongCallsAreNotCut(t *testing.T) {
	path, _ := serveWithin(t, &fake{}, Limits{}, brief())
	lines, err := controltest.Stream(t.Context(), controltest.New(t, path), api.CallTool, api.ToolRequest{Name: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	for {
		line, err := lines.Next()
		if err != nil {
			t.Fatal(err)
		}
		if line.Result != nil {
			return
		}
	}
}

// The first call of a client that speaks gRPC is answered with an error that it shows, and logged.
func TestOldClientIsTold(t *testing.T) {
	path, s := serve(t, &fake{}, Limits{})
	var logged bytes.Buffer
	s.conns.log = ratelog.New(slog.New(slog.NewTextHandler(&logged, nil)), logInterval, time.Now)
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	var block strings.Builder
	fields := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/service.control.v1.Control/Hello"},
		{":authority", "serviced"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		if err := fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.WriteString(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()),
		EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		headers, ok := frame.(*http2.MetaHeadersFrame)
		if !ok {
			continue
		}
		got := map[string]string{}
		for _, f := range headers.Fields {
			got[f.Name] = f.Value
		}
		if !headers.StreamEnded() || got[":status"] != "200" || got["grpc-status"] != "9" ||
			!strings.Contains(got["grpc-message"], "too%20old") {
			t.Errorf("got %v, want trailers with the reason", got)
		}
		details, err := base64.RawStdEncoding.DecodeString(got["grpc-status-details-bin"])
		if err != nil || !bytes.Contains(details, []byte("protocol_mismatch")) ||
			!bytes.Contains(details, []byte("servicectl of version 1, or, after a downgrade, run `kill 7`")) {
			t.Errorf("got details %q, %v; want the code and the next step", details, err)
		}
		if text := logged.String(); !strings.Contains(text, "code=protocol_mismatch pid="+strconv.Itoa(os.Getpid())) {
			t.Errorf("the log is %q, want the refused process", text)
		}
		return
	}
}
