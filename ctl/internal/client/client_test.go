//go:build unix

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
	"github.com/service-dev/service/proto/control"
)

// serve makes a handler the daemon of the test's state directory, which recorded the given text.
func serve(t *testing.T, record string, handler http.HandlerFunc) {
	t.Helper()
	serveOn(t, record, handler, func(l net.Listener) net.Listener { return l })
}

// serveOn is like serve, with connections from a wrapped listener.
func serveOn(t *testing.T, record string, handler http.HandlerFunc, listener func(net.Listener) net.Listener) {
	t.Helper()
	run := stateDir(t)
	if record != "" {
		if err := os.WriteFile(filepath.Join(run, rendezvous.DaemonRecord), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lock := flock.New(filepath.Join(run, rendezvous.DaemonLock))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Unlock() })
	l, err := net.Listen("unix", filepath.Join(run, rendezvous.ControlName))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener(l)) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
}

// stateDir sets a state directory with a short path and returns its run directory.
func stateDir(t *testing.T) (run string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("SERVICE_CONFIG_DIR", dir)
	run = filepath.Join(dir, rendezvous.RunDir)
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	return run
}

// speaks returns the handler of a daemon with this version and protocol range.
func speaks(version string, lo, hi int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(control.Version{Version: version, PID: 7, ProtocolMin: lo, ProtocolMax: hi})
	}
}

const own = rendezvous.ControlProtocolMax

// recordOf returns a daemon's record, as the daemon writes it.
func recordOf(version string, lo, hi int) string {
	return fmt.Sprintf("{\n  \"pid\": 7,\n  \"version\": %q,\n  \"controlProtocolMin\": %d,\n  "+
		"\"controlProtocolMax\": %d\n}\n", version, lo, hi)
}

// A daemon with another protocol range, newer or older, causes a readable error with the next step: before it is asked,
// if it recorded its range, and otherwise after its first answer.
func TestOpen_RefusesOtherProtocols(t *testing.T) {
	asked := func(http.ResponseWriter, *http.Request) { t.Error("the daemon was asked") }
	for name, c := range map[string]struct {
		record        string
		daemon        http.HandlerFunc
		message, next string
	}{
		"a newer one":          {recordOf("9.0.0", own+1, own+3), asked, "the client is too old", "Upgrade the client"},
		"a newer one answers":  {"", speaks("9.0.0", own+1, own+3), "the client is too old", "is 9.0.0"},
		"an older one answers": {"", speaks("0.0.1", own-1, own-1), "the daemon is too old", "servicectl daemon restart"},
		"one without this API": {"{\n  \"pid\": 7,\n  \"version\": \"0.1.0\",\n  \"protocolMin\": 1\n}\n", asked,
			"the running daemon (0.1.0) is too old", "servicectl daemon restart"},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, c.record, c.daemon)
			_, err := Open(t.Context(), Options{Program: "servicectl", Running: true})
			var e *problem.Error
			if !errors.As(err, &e) || e.Code != "protocol_mismatch" || e.Retryable || !strings.Contains(e.Message, c.message) ||
				!strings.Contains(e.FixHint, c.next) {
				t.Fatalf("got error %#v", err)
			}
		})
	}
}

// A daemon that supports additional protocol versions is accepted, and so is one of other versions for calls that are
// identical in all of them. A record that a dead daemon left behind does not count.
func TestOpen_AcceptsProtocols(t *testing.T) {
	for name, c := range map[string]struct {
		record string
		lo, hi int
		any    bool
	}{
		"overlapping":   {recordOf("9.0.0", own-1, own+5), own - 1, own + 5, false},
		"no record yet": {"", own, own, false},
		"half a record": {"{\n  \"pid\": 7,\n  \"version\": \"0.1.0\",\n", own, own, false},
		"any protocol":  {recordOf("9.0.0", own+1, own+1), own + 1, own + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, c.record, speaks("9.0.0", c.lo, c.hi))
			client, err := Open(t.Context(), Options{Program: "servicectl", Running: true, AnyProtocol: c.any})
			if err != nil {
				t.Fatal(err)
			}
			client.Close()
		})
	}
	run := stateDir(t)
	if err := os.WriteFile(filepath.Join(run, rendezvous.DaemonRecord), []byte(recordOf("0.0.1", 0, 0)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Running: true}); !errors.Is(err, dialer.ErrNotRunning) {
		t.Errorf("with the record of a dead daemon: %v, want ErrNotRunning", err)
	}
}

// Each request has the documented host and describes its caller.
func TestCall_DescribesItsCaller(t *testing.T) {
	t.Setenv("CI", "1")
	seen := make(chan *http.Request, 2)
	serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		speaks("1", own, own)(w, r)
	})
	c, err := Open(t.Context(), Options{Program: "servicectl", Running: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := <-seen
	who, err := control.ParseCaller(r.Header.Get(control.CallerHeader))
	if err != nil || r.Host != control.Host || who.Client != "servicectl" || who.Env["CI"] != "1" || who.Cwd == "" {
		t.Errorf("host %s, caller %+v, %v", r.Host, who, err)
	}
}

// A daemon that accepts the connection and never answers is reported as such when the caller's time is up.
func TestOpen_SilentDaemon(t *testing.T) {
	serve(t, "", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, Options{Running: true})
	var e *problem.Error
	if !errors.As(err, &e) || e.Code != problem.CodeDaemonNotResponding || !e.Retryable || e.FixHint == "" {
		t.Fatalf("got error %#v, want a retryable CodeDaemonNotResponding", err)
	}
}

func TestOpen_NotRunning(t *testing.T) {
	t.Setenv("SERVICE_CONFIG_DIR", t.TempDir())
	if _, err := Open(t.Context(), Options{Running: true}); !errors.Is(err, dialer.ErrNotRunning) {
		t.Fatalf("got error %v, want ErrNotRunning", err)
	}
}

// endingDaemons simulates daemons that exit right after a client connected: every other connection reaches such a
// daemon.
type endingDaemons struct {
	net.Listener
	connections int
}

func (l *endingDaemons) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if l.connections++; err == nil && l.connections%2 == 1 {
		_ = conn.Close()
		return l.Accept()
	}
	return conn, err
}

// If a daemon exits just after a connection was made, the client connects to the next one instead of reporting that
// the daemon does not respond.
func TestOpen_DaemonEndsBeforeItAnswers(t *testing.T) {
	serveOn(t, "", speaks("1", own, own), func(l net.Listener) net.Listener { return &endingDaemons{Listener: l} })
	for range 20 {
		c, err := Open(t.Context(), Options{Program: "servicectl", Running: true})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

// A stream that ends without a result, or in the middle of a line, is an error, and so is the error in its last line.
func TestCallTool_BrokenStreams(t *testing.T) {
	for text, want := range map[string]string{
		"": "daemon_gone",
		`{"progress":{"progress":1,"total":2}}` + "\n":                    "daemon_gone",
		`{"result":{"isError":false`:                                      "daemon_gone",
		`{"error":{"code":"busy","message":"m"}}` + "\n":                  "busy",
		`{"progress":{}}` + "\n" + `{"error":{"code":"internal"}}` + "\n": "internal",
	} {
		serve(t, "", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == control.GetVersion.Path {
				speaks("1", own, own)(w, r)
				return
			}
			_, _ = io.WriteString(w, text)
		})
		c, err := Open(t.Context(), Options{Running: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CallTool(t.Context(), "x", "{}", nil); problem.CodeOf(err) != want {
			t.Errorf("%q: got %v, want code %s", text, err, want)
		}
		c.Close()
	}
}
