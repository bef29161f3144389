package app

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/llmtest"
)

// gatewayWorld is a backend whose gateway uses a fake provider, and the key with which an app calls it.
type gatewayWorld struct {
	*backendUnderTest
	provider *llmtest.Provider
	key      string
	db       *sql.DB
	log      *logText
}

// logText collects the log output.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Prices of every model, in micro-USD per million tokens.
const testPrices = "{text_in: 2000000, text_cached: 1000000, text_cache_write: 3000000, text_out: 10000000}"

var gatewayModels = []string{"good", llmtest.SlowFirstByte, llmtest.WaitsInside, llmtest.Hangs, llmtest.HangsInside,
	llmtest.OneByte, llmtest.LongLine, llmtest.CRLF, llmtest.UsageNull, llmtest.UsageNoChoices, llmtest.UsageWithDelta,
	llmtest.UsageNone, llmtest.UsageTwice, llmtest.UsageStrings, llmtest.UsageNegative, llmtest.UsageHuge,
	llmtest.UsageIsNull, llmtest.CachedAbove, llmtest.CutBeforeUsage, llmtest.CutAfterUsage, llmtest.Status401,
	llmtest.Status404, llmtest.Status400EchoKey, llmtest.Status429, llmtest.Status429Retry, llmtest.Status429Spent,
	llmtest.Status500, llmtest.Status529, llmtest.ErrorFrame, llmtest.ErrorInside, llmtest.HTML502, llmtest.HTML200,
	llmtest.Redirects, llmtest.WrongLength, llmtest.Gzip, llmtest.EchoesKey, llmtest.AboveMax, llmtest.DropsAfterRead}

// eachGateway runs f with a gateway on each database engine, in parallel with other tests.
func eachGateway(t *testing.T, f func(t *testing.T, w *gatewayWorld), changes ...func(*config.Config)) {
	t.Helper()
	t.Parallel()
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		address := database(t)
		f(t, startGateway(t, append(changes, func(c *config.Config) { c.Database = address })...))
	})
}

func startGateway(t *testing.T, changes ...func(*config.Config)) *gatewayWorld {
	t.Helper()
	return startLimitedGateway(t, gateway.Limits{}, changes...)
}

func startLimitedGateway(t *testing.T, limits gateway.Limits, changes ...func(*config.Config)) *gatewayWorld {
	t.Helper()
	w := &gatewayWorld{provider: llmtest.Start(), log: &logText{}}
	t.Cleanup(w.provider.Close)
	dir := t.TempDir()
	keyFile, file := filepath.Join(dir, "provider.key"), filepath.Join(dir, "gateway.yaml")
	catalogue := "providers:\n  - {id: fake, base_url: '" + w.provider.URL + "', key_file: " + keyFile + "}\n" +
		"  - {id: away, base_url: 'http://127.0.0.1:1/v1', local: true}\nmodels:\n"
	add := func(id, model, api, prices string) {
		catalogue += fmt.Sprintf("  - {id: %s, provider: fake, provider_model: %s, api: %s, context_tokens: 10000, "+
			"output_tokens: 1000, default_output_tokens: 100, prices_micro_usd_per_million: %s}\n", id, model, api, prices)
	}
	for _, model := range gatewayModels {
		add(model, model, "chat", testPrices)
		add("resp-"+model, model, "responses", testPrices)
		add("msg-"+model, model, "messages", testPrices)
	}
	add("unpriced", "good", "chat", "{text_in: 1, text_out: 1}")
	add("expensive", "good", "chat", "{text_in: 1000000000, text_cached: 0, text_out: 1000000000}")
	catalogue += "  - {id: absent, provider: away, api: chat, context_tokens: 1000, output_tokens: 100}\ndefault_model: good\n"
	for name, text := range map[string]string{keyFile: llmtest.Key + "\n", file: catalogue} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.backendUnderTest = startBackendWith(t, func(c *config.Config) {
		c.GatewayCatalogue, c.FreeCredit = file, "2.00"
		for _, change := range changes {
			change(c)
		}
	}, slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), limits)
	var key backendapi.ProjectKey
	if status := w.call("POST", "/api/projects/com.example.hello/keys", `{"name":"app"}`, &key); status >= 300 {
		t.Fatalf("create a key: got status %d, want 201", status)
	}
	w.key, w.db = key.ProjectKey, enginetest.Connect(t, w.database)
	return w
}

func (w *gatewayWorld) exec(statement string) {
	w.t.Helper()
	if _, err := w.db.Exec(statement); err != nil {
		w.t.Fatal(err)
	}
}

// begin sends one call as the app and returns when the first word of the answer has arrived.
func (w *gatewayWorld) begin(ctx context.Context, body string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "POST", w.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	part, text := make([]byte, 1000), ""
	for !strings.Contains(text, "Grüße") { // this word arrives while the provider pauses
		n, err := res.Body.Read(part)
		if text += string(part[:n]); err != nil {
			w.t.Fatal(err)
		}
	}
	return res
}

// ask sends one call as the app and returns the whole response.
func (w *gatewayWorld) ask(method, path, body string, header ...string) (*http.Response, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		text = append(text, "\nBROKEN"...)
	}
	return res, string(text)
}

func chatBody(model, more string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"Hello"}]` + more + `}`
}

// callRow is a row of gateway_calls.
type callRow struct {
	Model, Kind, Source, Outcome string
	In, Cached, Out, MicroUSD    int64
	Estimated                    bool
}

// calls lists the rows of gateway_calls, in order.
func (w *gatewayWorld) calls() (rows []callRow) {
	w.t.Helper()
	found, err := w.db.Query(`SELECT model, kind, source, outcome, text_in, text_cached, text_out, micro_usd, estimated
		FROM gateway_calls ORDER BY at, id`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var r callRow
		if err := found.Scan(&r.Model, &r.Kind, &r.Source, &r.Outcome, &r.In, &r.Cached, &r.Out, &r.MicroUSD,
			&r.Estimated); err != nil {
			w.t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if err := found.Err(); err != nil {
		w.t.Fatal(err)
	}
	return rows
}

func (w *gatewayWorld) last() callRow {
	w.t.Helper()
	rows := w.calls()
	if len(rows) == 0 {
		w.t.Fatal("no call was recorded")
	}
	return rows[len(rows)-1]
}

// balance returns the posted and the held amount of the only account, in micro-USD.
func (w *gatewayWorld) balance() (posted, held int64) {
	w.t.Helper()
	if err := w.db.QueryRow(`SELECT posted, held FROM credit_balances`).Scan(&posted, &held); err != nil {
		w.t.Fatal(err)
	}
	return posted, held
}

// settled waits until no credit is held, and returns the balance.
func (w *gatewayWorld) settled() (posted int64) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		posted, held := w.balance()
		if held == 0 {
			return posted
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%d is still held after 20 s", held)
		}
	}
}

// errorOf returns the error object of a response.
func errorOf(t *testing.T, body string) map[string]any {
	t.Helper()
	var envelope struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &envelope); err != nil || envelope.Error == nil {
		t.Fatalf("got response %s, want an error object", body)
	}
	return envelope.Error
}
