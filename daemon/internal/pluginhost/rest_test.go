//go:build unix

package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/daemon/internal/backend"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// soon is a RestAfter that is short enough for tests.
const soon = 100 * time.Millisecond

// serveResting starts a host whose adapters rest soon. stop stops the host and waits for it.
func serveResting(t *testing.T, configDir string) (h *Host, stop func()) {
	t.Helper()
	return serveWith(t, Options{ConfigDir: configDir, RestAfter: soon})
}

// rests waits until the adapter rests. It must then look like an adapter that was never started, without a trace of a
// crash.
func rests(t *testing.T, h *Host, name string) {
	t.Helper()
	eventually(t, name+" rests", func() bool { return statusOf(h, name).State == Stopped })
	if got := statusOf(h, name); got.PID != 0 || got.Restarts != 0 || got.LastError != "" || !got.Crashed.IsZero() {
		t.Errorf("%+v, want no sign of a crash", got)
	}
}

// embeddedHealth calls the embedded backend.
func embeddedHealth(t *testing.T, h *Host) {
	t.Helper()
	target := backend.Target{BaseURL: backend.EmbeddedURL, InstallID: "i"}
	if got, err := h.Health(t.Context(), target); err != nil || !got.OK {
		t.Fatalf("%+v, %v", got, err)
	}
}

// get requests a page on a new connection.
func get(url string) error {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, %w", resp.StatusCode, err)
	}
	return nil
}

// The process of an adapter that is not called ends, and the next call starts another one.
func TestRest_UntilTheNextCall(t *testing.T) {
	h, _ := serveResting(t, t.TempDir())
	srv := httptest.NewServer(http.HandlerFunc(healthy))
	defer srv.Close()
	target := backend.Target{BaseURL: srv.URL, InstallID: "i"}
	for range 2 {
		if _, err := h.Health(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		pid := statusOf(h, HTTP).PID
		rests(t, h, HTTP)
		if pid != 0 && !gone(pid) { // 0: it rested before the test checked
			t.Errorf("process %d still exists", pid)
		}
	}
	glasses, err := h.Attach(t.Context(), LocalSim, backend.TransportOpen{SessionID: "s", DeviceModel: "rayban_display"})
	if err != nil {
		t.Fatal(err)
	}
	// Meanwhile another adapter, which became idle later, rests.
	if _, err := h.Health(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	rests(t, h, HTTP)
	if got := statusOf(h, LocalSim); got.State != Running {
		t.Errorf("%+v, want it to run while glasses are attached", got)
	}
	_ = glasses.Close()
	rests(t, h, LocalSim)
}

// restAnswers is an adapter that answers Rest as listed; nil means an answer that comes too late.
type restAnswers struct {
	pluginv1.BackendClient
	list []*pluginv1.RestResponse
}

func (r *restAnswers) Rest(context.Context, *pluginv1.RestRequest, ...grpc.CallOption) (*pluginv1.RestResponse, error) {
	next := r.list[0]
	if r.list = r.list[1:]; next == nil {
		return nil, status.Error(codes.DeadlineExceeded, "too late")
	}
	return next, nil
}

// An adapter that answers too late is asked again and not stopped without its consent.
func TestRest_ALateAnswerIsNoConsent(t *testing.T) {
	t.Parallel()
	yes, no := &pluginv1.RestResponse{Rests: true}, &pluginv1.RestResponse{}
	for name, c := range map[string]struct {
		answers []*pluginv1.RestResponse
		want    bool
	}{
		"yes": {[]*pluginv1.RestResponse{yes}, true}, "no": {[]*pluginv1.RestResponse{no}, false},
		"late, then yes": {[]*pluginv1.RestResponse{nil, yes}, true},
		"late, then no":  {[]*pluginv1.RestResponse{nil, no}, false},
		"never":          {[]*pluginv1.RestResponse{nil, nil, nil}, false},
	} {
		rpc := &restAnswers{list: c.answers}
		if got := (&instance{rpc: rpc}).agreesToRest(t.Context(), soon); got != c.want || len(rpc.list) > 0 {
			t.Errorf("%s: agrees %v, %d answers not asked for; want %v", name, got, len(rpc.list), c.want)
		}
	}
}

// A call in progress keeps its adapter running, however long it takes.
func TestRest_NotDuringACall(t *testing.T) {
	h, _ := serveResting(t, t.TempDir())
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		healthy(w, r)
	}))
	defer srv.Close()
	result := make(chan error, 1)
	go func() {
		_, err := h.Health(context.Background(), backend.Target{BaseURL: srv.URL, InstallID: "i"})
		result <- err
	}()
	<-arrived
	_, done, err := h.adapters[LocalSim].get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done()
	rests(t, h, LocalSim) // LocalSim became idle after the call
	close(release)
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// While the embedded backend rests, its address accepts connections: 200 simultaneous requests start it, and none are
// lost.
func TestRest_ARequestStartsTheEmbeddedBackend(t *testing.T) {
	h, _ := serveResting(t, t.TempDir())
	embeddedHealth(t, h)
	id, url := h.RunningEmbedded()
	rests(t, h, Local)
	if restingID, restingURL := h.RunningEmbedded(); id == "" || restingID != id || restingURL != url {
		t.Errorf("at rest it is %q at %s, want %q at %s", restingID, restingURL, id, url)
	}
	for _, host := range []string{"localhost", "127.0.0.1"} {
		var all sync.WaitGroup
		errs := make([]error, 200)
		for i := range errs {
			all.Go(func() { errs[i] = get(strings.Replace(url, "localhost", host, 1) + "/api/health") })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
		rests(t, h, Local)
	}
	embeddedHealth(t, h)
	if again, at := h.RunningEmbedded(); again != id || at != url {
		t.Errorf("it became %q at %s, want %q at %s", again, at, id, url)
	}
}

// A request in progress, a pending code and a connection that has not sent data yet keep the embedded backend running;
// an idle connection does not.
func TestRest_NotWhileTheEmbeddedBackendIsUsed(t *testing.T) {
	h, _ := serveResting(t, t.TempDir())
	embeddedHealth(t, h)
	_, called, err := h.adapters[Local].get(t.Context()) // keeps it from resting before the connection
	if err != nil {
		t.Fatal(err)
	}
	_, url := h.RunningEmbedded()
	address := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	called()
	outlastsLocalSim := func(why string) {
		t.Helper()
		for range 3 { // each time it is idle for longer
			_, done, err := h.adapters[LocalSim].get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			done()
			rests(t, h, LocalSim)
		}
		if got := statusOf(h, Local); got.State != Running {
			t.Errorf("with %s: %+v, want it to run", why, got)
		}
	}
	outlastsLocalSim("a connection that sent nothing")
	_, _ = io.WriteString(conn, "GET /api/health HTTP/1.1\r\nHost: "+address+"\r\n")
	outlastsLocalSim("an unfinished request")
	_, _ = io.WriteString(conn, "\r\n")
	rests(t, h, Local)
	answer, _ := io.ReadAll(conn) // returns, because the idle connection was closed
	if !strings.Contains(string(answer), "200 OK") {
		t.Errorf("the answer is %q", answer)
	}
	code, err := h.IssueDeviceCode(t.Context(), backend.Target{BaseURL: backend.EmbeddedURL, InstallID: "inst_abcd"},
		"account_full")
	if err != nil {
		t.Fatal(err)
	}
	outlastsLocalSim("a code that waits for a decision")
	if err := h.CancelDeviceCode(t.Context(), backend.Target{BaseURL: backend.EmbeddedURL, InstallID: "inst_abcd"},
		code.DeviceCode); err != nil {
		t.Fatal(err)
	}
	rests(t, h, Local)
}

// Calls and requests that arrive while the adapter decides whether to rest are each served once.
func TestRest_AtTheMomentOfACall(t *testing.T) {
	t.Parallel()
	h, _ := serveResting(t, t.TempDir())
	embeddedHealth(t, h)
	_, url := h.RunningEmbedded()
	var started int
	last := statusOf(h, Local).PID
	for i := range 60 {
		// The pauses end before the decision, during it, while the process ends, and later.
		pause := soon + time.Duration(i)*time.Millisecond
		time.Sleep(pause)
		if i%2 == 0 {
			embeddedHealth(t, h)
		} else if err := get(url + "/api/health"); err != nil {
			t.Errorf("after %v: %v", pause, err)
		}
		if pid := statusOf(h, Local).PID; pid != last {
			started, last = started+1, pid
		}
	}
	if started == 0 {
		t.Error("the adapter never rested")
	}
	if got := statusOf(h, Local); got.Restarts != 0 {
		t.Errorf("%+v, want no restart after a crash", got)
	}
}

// After a crash the address stays open, and a request waits for the next process.
func TestRest_TheAddressOutlivesACrash(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	embeddedHealth(t, h)
	_, url := h.RunningEmbedded()
	if err := syscall.Kill(statusOf(h, Local).PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := get(url + "/api/health"); err != nil {
		t.Error(err)
	}
	eventually(t, "one restart", func() bool { return statusOf(h, Local).Restarts == 1 })
}

// If the adapter's file is refused when a request would start it, the request does not wait in vain, and the next call
// tries again.
func TestRest_ARefusedFileClosesTheAddress(t *testing.T) {
	h, _ := serveResting(t, t.TempDir())
	embeddedHealth(t, h)
	_, url := h.RunningEmbedded()
	rests(t, h, Local)
	path := statusOf(h, Local).Path
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := get(url + "/api/health"); err == nil {
		t.Error("a request was answered without a program")
	}
	eventually(t, "it is refused", func() bool { return statusOf(h, Local).State == Refused })
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	embeddedHealth(t, h)
	if _, at := h.RunningEmbedded(); at != url {
		t.Errorf("it is at %s now, want %s", at, url)
	}
}

// After five crashes, the adapter is not started for a minute. Its address is closed, because clients would not wait
// that long.
func TestRest_ABreakerClosesTheAddress(t *testing.T) {
	h, _ := serve(t, install(t))
	embeddedHealth(t, h)
	_, url := h.RunningEmbedded()
	for range breakerCrashes {
		embeddedHealth(t, h)
		pid := statusOf(h, Local).PID
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the crash is noticed", func() bool { return statusOf(h, Local).PID != pid })
	}
	if got := statusOf(h, Local); got.State != Backoff || got.Resume.Sub(got.Crashed) != breakerPause {
		t.Fatalf("%+v, want an open breaker", got)
	}
	if err := get(url + "/api/health"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, want a refused connection", err)
	}
}

// A host that ends releases the address, whether the adapter is resting or running, and the next host uses the same
// address.
func TestRest_TheNextHostHasTheAddress(t *testing.T) {
	dir := t.TempDir()
	var url string
	for i := range 3 {
		h, stop := serveResting(t, dir)
		embeddedHealth(t, h)
		_, at := h.RunningEmbedded()
		if url == "" {
			url = at
		}
		if at != url {
			t.Errorf("host %d has %s, want %s", i, at, url)
		}
		if i > 0 {
			rests(t, h, Local)
		}
		stop()
		if err := get(url + "/api/health"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after the end of host %d: %v, want a refused connection", i, err)
		}
	}
}

// 50 rests (10 unless all tests run) leave no goroutine, descriptor or directory behind, and lose no data.
func TestRest_LeavesNothingBehind(t *testing.T) {
	cycles := 10
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		cycles = 50
	}
	h, _ := serveResting(t, t.TempDir())
	rest := func() {
		embeddedHealth(t, h)
		rests(t, h, Local)
	}
	rest()
	id, url := h.RunningEmbedded()
	goroutines, fds := runtime.NumGoroutine(), descriptors()
	for range cycles {
		rest()
		if err := get(url + "/api/health"); err != nil {
			t.Error(err)
		}
		rests(t, h, Local)
	}
	// A leak adds at least one in each cycle. A smaller difference can come from the moment of the first count.
	eventually(t, "goroutines and descriptors do not grow with the cycles", func() bool {
		return runtime.NumGoroutine() < goroutines+cycles && descriptors() < fds+cycles
	})
	if dirs, _ := os.ReadDir(h.opts.SocketDir); len(dirs) != 0 {
		t.Errorf("%d socket directories are left", len(dirs))
	}
	if again, at := h.RunningEmbedded(); again != id || at != url {
		t.Errorf("it became %q at %s, want %q at %s", again, at, id, url)
	}
}
