package modelapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/test/llmtest"
)

// anyKey accepts every key. It returns a new key ID for each call, so that the rate limit per key never applies.
type anyKey struct{}

var keyNumber atomic.Int64

func (anyKey) LiveKeys(_ context.Context, ids []string) ([]string, error) { return ids, nil }

func (anyKey) Authenticate(context.Context, string) (projects.KeyOwner, error) {
	return projects.KeyOwner{AccountID: "acc", Project: "com.example.app", KeyID: fmt.Sprint(keyNumber.Add(1))}, nil
}

// countingPurse covers every call and counts the open holds.
type countingPurse struct {
	mu    sync.Mutex
	holds int
	rows  chan credit.Call
	fault error // the error that every hold returns
}

func (p *countingPurse) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds += n
}

func (p *countingPurse) Hold(context.Context, credit.HoldRequest) (credit.Hold, error) {
	if p.fault != nil {
		return credit.Hold{}, p.fault
	}
	p.count(1)
	return credit.Hold{ID: "h"}, nil
}
func (p *countingPurse) Renew(context.Context, string) error { return nil }
func (p *countingPurse) Settle(_ context.Context, _ string, charge credit.Amount, c credit.Call) (credit.Amount, error) {
	p.count(-1)
	p.rows <- c
	return charge, nil
}
func (p *countingPurse) Release(ctx context.Context, id string, c credit.Call) error {
	_, err := p.Settle(ctx, id, 0, c)
	return err
}
func (p *countingPurse) Carry(ctx context.Context, id string, _ credit.Amount, c credit.Call) error {
	return p.Release(ctx, id, c)
}
func (p *countingPurse) Record(_ context.Context, c credit.Call) error {
	p.rows <- c
	return nil
}

func (p *countingPurse) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holds
}

type world struct {
	api      *API
	purse    *countingPurse
	provider *llmtest.Provider
	url      string
	closed   chan struct{} // receives a value for each connection that the server closed
}

// smallBuffer is the size of a connection's buffers, in bytes. With it, the server soon notices an app that does not
// read.
const smallBuffer = 4096

func newWorld(t *testing.T, writeTimeout time.Duration, limits gateway.Limits) *world {
	t.Helper()
	return newWorldOf(t, anyKey{}, nil, writeTimeout, limits)
}

// keyring finds the owners of keys.
type keyring interface {
	Keys
	gateway.Keys
}

func newWorldOf(
	t *testing.T, keys keyring, live *sessions.Assistants, writeTimeout time.Duration, limits gateway.Limits,
) *world {
	t.Helper()
	w := &world{purse: &countingPurse{rows: make(chan credit.Call, 100)}, provider: llmtest.Start(),
		closed: make(chan struct{}, 10_000)}
	t.Cleanup(w.provider.Close)
	dir := t.TempDir()
	text := fmt.Sprintf("providers: [{id: fake, base_url: '%s', key_file: %s/key}]\nmodels:\n", w.provider.URL, dir)
	for _, id := range []string{"good", llmtest.AboveMax, llmtest.WaitsInside, llmtest.Hangs, "responses", "messages"} {
		api := "chat"
		if id == "responses" || id == "messages" {
			api = id
		}
		text += "  - {id: " + id + ", provider: fake, api: " + api + ", context_tokens: 100000, output_tokens: 2000, " +
			"prices_micro_usd_per_million: {text_in: 1, text_cached: 1, text_cache_write: 1, text_out: 1}}\n"
	}
	text += "realtime_models: [{id: voice, provider: fake, provider_model: good, context_tokens: 4000, output_tokens: 500, " +
		"voices: {ember: marin}, prices_micro_usd_per_million: {text_in: 1, text_cached: 1, text_out: 1, audio_in: 1, " +
		"audio_cached: 1, audio_out: 1}}]\n"
	for name, text := range map[string]string{"key": llmtest.Key, "gateway.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	catalogue, err := gateway.LoadCatalogue(filepath.Join(dir, "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	options := gateway.Options{Catalogue: catalogue, Purse: w.purse, Keys: keys, Log: log, Limits: limits}
	if live != nil {
		options.Sessions = live
	}
	calls := gateway.New(options)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- calls.Serve(ctx) }()
	mux := http.NewServeMux()
	w.api = New(Options{Keys: keys, Sessions: live, Gateway: calls, Log: log, WriteTimeout: writeTimeout})
	w.api.Mount(mux)
	server := httptest.NewUnstartedServer(mux)
	server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if err := conn.(*net.TCPConn).SetWriteBuffer(smallBuffer); err != nil {
			t.Error(err)
		}
		return ctx
	}
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			w.closed <- struct{}{}
		}
	}
	server.Start()
	w.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := w.purse.left(); n != 0 {
			t.Errorf("%d holds left, want none", n)
		}
	})
	return w
}

func (w *world) request(ctx context.Context, t *testing.T, model, more string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/chat/completions", strings.NewReader(
		`{"model":"`+model+`","stream":true,"messages":[{"role":"user","content":"Hello"}]`+more+`}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// An app that does not read delays neither the provider nor the charge.
func TestCall_EndsForAnAppThatDoesNotRead(t *testing.T) {
	w := newWorld(t, 50*time.Millisecond, gateway.Limits{})
	defer w.longAnswer(t).Close()
	row := <-w.purse.rows
	if row.Outcome != "cancelled" || row.TextOut == 0 {
		t.Errorf("%+v", row)
	}
}

func TestCall_IsChargedWheneverTheAppLeaves(t *testing.T) {
	w := newWorld(t, 0, gateway.Limits{})
	for events := range 12 {
		ctx, leave := context.WithCancel(t.Context())
		res := w.request(ctx, t, "good", "")
		lines := bufio.NewScanner(res.Body)
		for n := 0; n < 2*events && lines.Scan(); n++ {
			continue // an event has two lines
		}
		leave()
		res.Body.Close()
		if row := <-w.purse.rows; row.TextOut != 9 && !row.Estimated {
			t.Errorf("disconnected after %d events: got %+v, want the full usage or an estimate", events, row)
		}
	}
}

// Each event arrives while the provider is still working, so nothing buffers the events.
func TestCall_FlushesEachEvent(t *testing.T) {
	w := newWorld(t, 0, gateway.Limits{})
	res := w.request(t.Context(), t, llmtest.WaitsInside, "")
	defer res.Body.Close()
	if res.Header.Get("X-Accel-Buffering") != "no" || res.Header.Get("Cache-Control") != "no-cache, no-transform" ||
		res.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" || res.Header.Get("Content-Encoding") != "" {
		t.Errorf("%v", res.Header)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "Grüße") {
		continue
	}
	w.provider.Continue() // only after the first word has arrived
	rest, err := io.ReadAll(res.Body)
	for lines.Scan() {
		rest = append(rest, lines.Bytes()...)
	}
	if err != nil || !strings.Contains(string(rest), "[DONE]") {
		t.Errorf("%v %q", err, rest)
	}
}

// If the provider does not respond or the ledger fails, the refusal makes official clients repeat the call.
func TestCall_SaysWhenToTryAgain(t *testing.T) {
	for _, c := range []struct {
		model            string
		fault            error
		status           int
		code, kind, wait string
	}{
		{llmtest.Hangs, nil, http.StatusGatewayTimeout, "provider_timeout", "api_error", "5"},
		{"good", errors.New("the database is gone"), http.StatusServiceUnavailable, "unavailable", "api_error", "1"},
	} {
		w := newWorld(t, 0, gateway.Limits{FirstByte: time.Millisecond})
		w.purse.fault = c.fault
		res := w.request(t.Context(), t, c.model, "")
		var e struct{ Error struct{ Code, Type string } }
		err := json.NewDecoder(res.Body).Decode(&e)
		res.Body.Close()
		if err != nil || res.StatusCode != c.status || e.Error.Code != c.code || e.Error.Type != c.kind ||
			res.Header.Get("Retry-After") != c.wait {
			t.Errorf("%s: got status %d, Retry-After %q, %+v, error %v; want the case's values", c.code,
				res.StatusCode, res.Header.Get("Retry-After"), e, err)
		}
	}
}
