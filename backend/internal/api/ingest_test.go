package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// shipped returns a world in which an app uploads batches with a project key.
func shipped(t *testing.T) (w *world, key string) {
	w = newWorld(t)
	k, err := w.projects.MintKey(t.Context(), w.ada.ID, "com.example.hello", "shipped", audit.Person())
	if err != nil {
		t.Fatal(err)
	}
	return w, k.Secret
}

func (w *world) send(key string, body []byte, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, backendapi.PathIngest, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	return rec
}

func (w *world) counted(rec *httptest.ResponseRecorder) (a backendapi.AnalyticsAccepted) {
	w.Helper()
	if rec.Code != http.StatusOK {
		w.Fatalf("got status %d, want 200: %s", rec.Code, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *world) batch(ids ...string) []byte {
	var b backendapi.AnalyticsBatch
	for _, id := range ids {
		b.Events = append(b.Events, backendapi.AnalyticsEvent{ID: id, Type: "event", Name: "photo.taken",
			At: w.now().UnixMilli(), InstallID: "k3v9x2m4q7"})
	}
	data, err := json.Marshal(b)
	if err != nil {
		w.Fatal(err)
	}
	return data
}

func packed(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	z.Close()
	return b.Bytes()
}

func TestIngestCounts(t *testing.T) {
	w, key := shipped(t)
	first := w.counted(w.send(key, w.batch("a", "b", "a")))
	if first.Accepted != 2 || first.Duplicates != 1 || first.SampleRate != 1 {
		t.Errorf("first upload: got %+v, want 2 accepted and 1 duplicate", first)
	}
	again := w.counted(w.send(key, packed(w.batch("b", "c")), "Content-Encoding", "gzip"))
	if again.Accepted != 1 || again.Duplicates != 1 {
		t.Errorf("second upload, compressed: got %+v, want 1 accepted and 1 duplicate", again)
	}
	at := w.now().UnixMilli()
	mixed := fmt.Sprintf(`{"events":[7,{"id":"x","type":"event","name":"n","at":%d,"installId":"k3v9x2m4q7","newField":{"a":[1]}},
		{"id":"y","at":"now"},{"id":"z","type":"click","at":%d,"installId":"k3v9x2m4q7"},
		{"id":"old","type":"session","at":%d,"installId":"k3v9x2m4q7"},null]}`, at, at, at-73*3600*1000)
	got := w.counted(w.send(key, []byte(mixed)))
	if got.Accepted != 1 || got.Late != 1 || got.Rejected != 4 || len(got.Problems) != 4 {
		t.Fatalf("batch with invalid events: got %+v, want 1 accepted, 1 late and 4 rejected", got)
	}
	for i, index := range []int{0, 2, 3, 5} {
		if got.Problems[i].Index != index || got.Problems[i].Reason == "" {
			t.Errorf("problem %d: got %+v, want a reason and the index of the invalid event", i, got.Problems[i])
		}
	}
}

func TestIngestRefusals(t *testing.T) {
	w, key := shipped(t)
	many := make([]string, backendapi.MaxBatchEvents+1)
	for i := range many {
		many[i] = fmt.Sprint("e", i)
	}
	for name, c := range map[string]struct {
		body   []byte
		header []string
		status int
		code   string
	}{
		"no key":          {w.batch("a"), []string{"Authorization", ""}, 401, problem.CodeInvalidKey},
		"a foreign token": {w.batch("a"), []string{"Authorization", "Bearer svc_x"}, 401, problem.CodeInvalidKey},
		"an altered key":  {w.batch("a"), []string{"Authorization", "Bearer " + key + "x"}, 401, problem.CodeInvalidKey},
		"text":            {w.batch("a"), []string{"Content-Type", "text/plain"}, 415, problem.CodeUnsupportedMedia},
		"brotli":          {w.batch("a"), []string{"Content-Encoding", "br"}, 415, problem.CodeUnsupportedMedia},
		"no gzip":         {w.batch("a"), []string{"Content-Encoding", "gzip"}, 400, problem.CodeInvalidRequest},
		"cut gzip": {packed(w.batch("a"))[:20], []string{"Content-Encoding", "gzip"}, 400,
			problem.CodeInvalidRequest},
		"a bomb": {packed(bytes.Repeat([]byte(" "), 8<<20)), []string{"Content-Encoding", "gzip"}, 413,
			problem.CodeRequestTooLarge},
		"too long":        {bytes.Repeat([]byte(" "), backendapi.MaxBatchBytes+1), nil, 413, problem.CodeRequestTooLarge},
		"too many events": {w.batch(many...), nil, 413, problem.CodeRequestTooLarge},
		"too many values": {[]byte(`{"events":[` + strings.Repeat("1,", 100_000) + `1]}`), nil, 413,
			problem.CodeRequestTooLarge},
		"no JSON":          {[]byte("{"), nil, 400, problem.CodeInvalidRequest},
		"events no list":   {[]byte(`{"events":7}`), nil, 400, problem.CodeInvalidRequest},
		"a list and no {}": {[]byte(`[]`), nil, 400, problem.CodeInvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			rec := w.send(key, c.body, c.header...)
			var p backendapi.Problem
			if err := json.Unmarshal(rec.Body.Bytes(), &p); err != nil || rec.Code != c.status || p.Code != c.code ||
				p.FixHint == "" {
				t.Errorf("got %d %s (error %v), want the problem in the table with a hint", rec.Code, rec.Body, err)
			}
			if rec.Header().Get("Access-Control-Allow-Origin") != "*" {
				t.Error("refusal without Access-Control-Allow-Origin, want * so that browsers can read it")
			}
		})
	}
	if strings.Contains(w.log.String(), key) {
		t.Error("the log contains the key")
	}
}

func TestIngestFromBrowsers(t *testing.T) {
	w, _ := shipped(t)
	r := httptest.NewRequest(http.MethodOptions, backendapi.PathIngest, nil)
	r.Header.Set("Origin", "https://app.example")
	rec := httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	if h := rec.Header(); rec.Code != 204 || h.Get("Access-Control-Allow-Origin") != "*" ||
		!strings.Contains(h.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("got %d %v, want 204 and the headers that browsers need", rec.Code, h)
	}
	r = httptest.NewRequest(http.MethodOptions, backendapi.PathAccount, nil)
	rec = httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	if rec.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("other routes allow other origins")
	}
}

func TestIngestLimit(t *testing.T) {
	w, key := shipped(t)
	for range batchesPerMinute {
		w.counted(w.send(key, []byte(`{"events":[]}`)))
	}
	rec := w.send(key, w.batch("a"))
	if rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 429 with Retry-After", rec.Code, rec.Body)
	}
	w.pass(time.Minute)
	w.counted(w.send(key, w.batch("a")))
}

// Names are accepted in any case and with a repetition, of which the last counts.
func TestBatch_IsReadLeniently(t *testing.T) {
	b, err := decodeBatch([]byte(`{"EVENTS":[{"ID":"a","installID":"k3v9x2m4q7","name":"x","name":"opened","new":1}]}`))
	if err != nil || len(b.events) != 1 || b.events[0].ID != "a" || b.events[0].InstallID != "k3v9x2m4q7" ||
		b.events[0].Name != "opened" {
		t.Errorf("got %+v, error %v; want one event with every field", b.events, err)
	}
}

func FuzzBatch(f *testing.F) {
	f.Add([]byte(`{"events":[{"id":"e-1","type":"event","name":"photo.taken","at":1767323045000,"installId":"k3v9x2m4q7"}]}`))
	f.Add([]byte(`{"events":[7,null,{"id":{}},{"at":1e99}],"x":1}`))
	f.Add([]byte(`{"Events":[[[]]]}`))
	f.Add([]byte(` {"events": [{"id": "a", "at": 0}, {"at":9,"at":12345678901234567890}]} `))
	f.Add([]byte(`{"events":[{"id":"\u0061"},{"at":01},{"at":-1},{"at":1e3},{"name":"é"}]}`))
	f.Add([]byte(`{"events":[{},]}`))
	f.Add([]byte(`{"events":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := decodeBatch(data)
		if err != nil {
			if refusalOf(err) == nil {
				t.Errorf("got error %v, want a Refusal", err)
			}
			return
		}
		if len(b.events)+len(b.broken) > backendapi.MaxBatchEvents || b.index != nil && len(b.index) != len(b.events) {
			t.Errorf("%d events, %d malformed ones, %d indexes: too many, or not one index per event", len(b.events),
				len(b.broken), len(b.index))
		}
		if out := b.answer(analytics.Accepted{}); out.Rejected != len(b.broken) || len(out.Problems) > analytics.MaxProblems {
			t.Errorf("got answer %+v, want every malformed event rejected", out)
		}
	})
}

// TestDocumentedBatch sends the batch from the documentation, with the timestamps that a shell would insert.
func TestDocumentedBatch(t *testing.T) {
	w, key := shipped(t)
	for _, p := range docs.Pages() {
		if p.ID != "analytics" {
			continue
		}
		_, rest, _ := strings.Cut(p.Markdown, "-d '")
		body, _, ok := strings.Cut(rest, "'\n```")
		timed := strings.ReplaceAll(body, "'$now'", strconv.FormatInt(w.now().UnixMilli(), 10))
		if got := w.counted(w.send(key, []byte(timed))); !ok || timed == body || got.Accepted != 3 || got.Rejected != 0 {
			t.Errorf("got %+v for %s, want 3 accepted", got, body)
		}
		return
	}
	t.Error("the analytics page of the documentation is missing")
}
