package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/proto/backendapi"
)

// Every GET route closes the connection of a client that sends requests and never reads.
func TestStalledReaders_AreDisconnected(t *testing.T) {
	h := newAuthWorld(t, filepath.Join(t.TempDir(), "service.db"))
	h.app.limits.WriteTimeout, h.app.limits.WriteBuffer = time.Second, 4<<10
	address := serveOn(t, h.app)
	var readers sync.WaitGroup
	for name, request := range h.getRequests() {
		readers.Go(func() {
			if err := floodWithoutReading(address, request); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: got error %v, want the connection closed", name, err)
			}
		})
	}
	readers.Wait()
}

// floodWithoutReading sends the request repeatedly, and returns the error that ends this.
func floodWithoutReading(address, request string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := errors.Join(conn.(*net.TCPConn).SetReadBuffer(4<<10),
		conn.SetDeadline(time.Now().Add(2*time.Minute))); err != nil {
		return err
	}
	for {
		if _, err := fmt.Fprint(conn, request); err != nil {
			return err
		}
	}
}

// A connection uses little memory while its client does not read, for every request.
func TestStalledReaders_TakeLittleMemory(t *testing.T) {
	const each, maxEach = 5, 100 << 10
	h := newAuthWorld(t, filepath.Join(t.TempDir(), "service.db"))
	h.app.limits.WriteTimeout, h.app.limits.WriteBuffer = time.Hour, 4<<10
	address := serveOn(t, h.app)
	requests := h.getRequests()
	begin := func(name, request string) {
		conn, status := beginReading(t, address, request)
		if status == http.StatusUnauthorized || status >= http.StatusInternalServerError {
			t.Errorf("%s: got status %d, want the route's answer", name, status)
		}
		t.Cleanup(func() { conn.Close() })
	}
	for name, request := range requests { // warm-up: templates are parsed and fonts unpacked once
		begin(name, request)
	}
	before := liveMemory()
	for range each {
		for name, request := range requests {
			begin(name, request)
		}
	}
	limit, until := before+uint64(each*len(requests)*maxEach), time.Now().Add(time.Minute)
	now := liveMemory()
	for ; now > limit && time.Now().Before(until); now = liveMemory() {
	}
	if now > limit {
		t.Errorf("%d stalled connections take %d KB of memory, want at most %d KB",
			each*len(requests), (now-before)>>10, (limit-before)>>10)
	}
}

// beginReading sends a request and reads the first line of its response.
func beginReading(t *testing.T, address, request string) (conn net.Conn, status int) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, request); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanf(conn, "HTTP/1.1 %d ", &status); err != nil {
		t.Fatal(err)
	}
	return conn, status
}

// serveOn serves a backend until the test ends, and returns its address.
func serveOn(t *testing.T, a *App) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve returned %v", err)
		}
	})
	return l.Addr().String()
}

// getRequests returns a request for every GET route, by a client that may use it: pages and files, the API and the
// models.
func (h *authWorld) getRequests() map[string]string {
	h.t.Helper()
	all := map[string]string{}
	add := func(path string, headers ...string) {
		all[strings.Join(append([]string{path}, headers...), ", ")] = "GET " + path +
			" HTTP/1.1\r\nHost: localhost:\r\n" + strings.Join(append(headers, "\r\n"), "\r\n")
	}
	values := h.valuesOf(h.owner, h.things)
	for _, v := range walk {
		if path := fillIn(v.address(), values); v.method() == http.MethodGet && !v.socket {
			if v.path != "" {
				path = fillIn(v.path, values)
			}
			add(path, "Cookie: "+h.owner.cookie.Name+"="+h.owner.cookie.Value)
		}
	}
	for _, name := range []string{"simulator.wasm", "simulator.js", "chinese-simplified-400.ttf"} {
		add("/assets/"+name, "Accept-Encoding: gzip, zstd")
		add("/assets/" + name)
	}
	token, key := h.credentials()
	for _, r := range backendapi.Routes() {
		if r.Method() == http.MethodGet && !r.WebSocket {
			path := strings.NewReplacer("{id}", h.things["session"], "{project}", h.things["project"]).Replace(r.Path())
			add(path, "Authorization: Bearer "+token)
		}
	}
	for _, path := range []string{"/v1/models", "/v1/models/none"} {
		add(path, "Authorization: Bearer "+key)
	}
	if len(all) < 75 {
		h.t.Fatalf("found only %d GET routes, want at least 75", len(all))
	}
	return all
}

// credentials returns a token and a project key of the owner.
func (h *authWorld) credentials() (token, key string) {
	h.t.Helper()
	ctx := h.t.Context()
	code, err := h.f.links.Start(ctx, link.Requester{Host: "maple"})
	h.must(err)
	h.must(h.f.links.Approve(ctx, code.UserCode, h.owner.account))
	poll, err := h.f.links.Poll(ctx, code.DeviceCode)
	h.must(err)
	minted, err := h.f.projects.MintKey(ctx, h.owner.account, h.things["project"], "stalled", audit.Person())
	h.must(err)
	return poll.Token.AuthToken, minted.Secret
}

// liveMemory returns the memory in use by the heap and stacks.
func liveMemory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
