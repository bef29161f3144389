package app

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/test/llmtest"
)

// Many concurrent calls share a balance of five cents, which would cover all of them in sequence. Each call is answered
// or told to try again, but never refused for lack of credit.
func TestGateway_ManyCallsOnFiveCents(t *testing.T) {
	eachGateway(t, testManyCalls, func(c *config.Config) { c.FreeCredit = "0.05" })
}

func testManyCalls(t *testing.T, w *gatewayWorld) {
	var calls sync.WaitGroup
	for range 120 { // one account may make 128 calls at once
		calls.Go(func() {
			res, body := w.ask("POST", "/v1/chat/completions", chatBody("good", `,"max_tokens":100`))
			if res.StatusCode != http.StatusOK && !strings.Contains(body, `"credit_reserved"`) {
				t.Errorf("got %d %s, want 200 or credit_reserved", res.StatusCode, body)
			}
		})
	}
	calls.Wait()
	spent := int64(0)
	for _, row := range w.calls() {
		spent += row.MicroUSD
	}
	if posted, held := w.balance(); posted != 50_000-spent || held != 0 || spent == 0 {
		t.Errorf("got balance %d and %d held after spending %d of 50,000, want the rest and 0 held", posted, held, spent)
	}
	if res, body := w.ask("POST", "/v1/chat/completions", chatBody("good", "")); res.StatusCode != http.StatusOK {
		t.Errorf("call after the burst: got %d %s, want 200", res.StatusCode, body)
	}
}

// For every call and every kind of misbehaviour, the provider's bill equals the account's charge plus the operator's
// cost, or the call is marked as estimated.
func TestGateway_LedgerEqualsTheProvidersBook(t *testing.T) {
	if err := flag.Set("rapid.checks", "5"); err != nil {
		t.Fatal(err)
	}
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		rapid.Check(t, func(rt *rapid.T) {
			for range 12 {
				w.compareCall(rt)
			}
		})
		if used := w.sum("credit = 'used'"); used == 0 || used != 2_000_000-w.posted()+w.sum("debit = 'operator'") {
			t.Errorf("used %d in total, want the spent balance plus the operator's cost", used)
		}
	})
}

func (w *gatewayWorld) sum(of string) (n int64) {
	w.t.Helper()
	if err := w.db.QueryRow(`SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM credit_transfers WHERE ` + of).
		Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *gatewayWorld) posted() int64 {
	posted, _ := w.balance()
	return posted
}

// compareCall makes an arbitrary call and compares its cost with the provider's records.
func (w *gatewayWorld) compareCall(rt *rapid.T) {
	model := rapid.SampledFrom([]string{"good", llmtest.OneByte, llmtest.UsageNull, llmtest.UsageWithDelta,
		llmtest.AboveMax, llmtest.UsageNone, llmtest.CutAfterUsage, llmtest.CutBeforeUsage, llmtest.Status500,
		llmtest.ErrorInside, llmtest.UsageHuge}).Draw(rt, "model")
	api := rapid.SampledFrom([]string{"", "resp-", "msg-"}).Draw(rt, "interface")
	more := fmt.Sprintf(`,"max_tokens":%d,"stream":%t`, rapid.IntRange(1, 2000).Draw(rt, "bound"),
		rapid.Bool().Draw(rt, "streamed"))
	path, body := "/v1/chat/completions", chatBody(api+model, more)
	switch api {
	case "resp-":
		path = "/v1/responses"
		body = `{"model":"` + api + model + `","input":"Hello"` + strings.Replace(more, "max_tokens", "max_output_tokens", 1) + `}`
	case "msg-":
		path = "/v1/messages"
	}
	book, carried := len(w.provider.Book()), w.sum("debit = 'operator'")
	res, text := w.ask("POST", path, body)
	row := w.last()
	carried = w.sum("debit = 'operator'") - carried
	if _, held := w.balance(); held != 0 || row.MicroUSD > 3*10_000+10*1000 {
		rt.Fatalf("%s: %d held after the call, want 0 and a charge of at most 40,000: %+v", body, held, row)
	}
	if row.Estimated {
		return
	}
	billed := int64(0)
	if entries := w.provider.Book()[book:]; len(entries) == 1 && row.In+row.Out > 0 {
		c := entries[0]
		cached := llmtest.Cached(c.In)
		if api == "msg-" {
			cached = 0
		}
		billed = 2*(c.In-cached) + cached + 10*c.Out
	}
	if row.MicroUSD+carried != billed {
		rt.Fatalf("%s: provider billed %d, want the sum of account %d and operator %d: status %d %.200s", body, billed,
			row.MicroUSD, carried, res.StatusCode, text)
	}
}

// If a provider drops the connection after reading a request, the gateway does not send the request again, regardless
// of the headers that the app sent.
func TestGateway_SendsADroppedCallOnce(t *testing.T) {
	w := startGateway(t)
	for _, header := range [][]string{nil, {"Idempotency-Key", "k-1"}, {"X-Idempotency-Key", "k-2"}} {
		before := len(w.provider.Book())
		res, body := w.ask("POST", "/v1/chat/completions", chatBody(llmtest.DropsAfterRead, ""), header...)
		if n := len(w.provider.Book()) - before; n != 1 || res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%v: provider received %d requests, app got %d %s; want one request and 503", header, n, res.StatusCode,
				body)
		}
	}
}

// Suspending an account or deleting a project ends its open calls, even if another process does so.
func TestGateway_CutsTheAnswerOfWhatIsGone(t *testing.T) {
	for name, end := range map[string]func(w *gatewayWorld){
		"suspended account": func(w *gatewayWorld) { w.exec("UPDATE accounts SET state = 'suspended'") },
		"deleted project": func(w *gatewayWorld) {
			const project = "com.example.hello"
			w.change(func(s *db.DB, ada string) error {
				_, err := projects.NewStore(s).DeleteProject(t.Context(), ada, project, audit.New(time.Now(), ada, audit.Person(),
					"project.deleted",
					project, project))
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachGateway(t, func(t *testing.T, w *gatewayWorld) {
				res := w.begin(t.Context(), chatBody(llmtest.WaitsInside, `,"stream":true`))
				defer res.Body.Close()
				end(w)
				text, err := io.ReadAll(res.Body)
				if err == nil || !strings.Contains(string(text), "the answer broke off") {
					t.Errorf("got error %v after %q, want the answer cut off", err, text)
				}
				w.provider.Continue()
				if posted := w.settled(); posted == 2_000_000 {
					t.Errorf("got balance %d, want a charge", posted)
				}
				if again, _ := w.ask("POST", "/v1/chat/completions", chatBody("good", "")); again.StatusCode !=
					http.StatusUnauthorized {
					t.Errorf("next call: got status %d, want 401", again.StatusCode)
				}
			})
		})
	}
}

// If a cap is lowered while an answer is streamed, the answer continues to its end and the next call is refused.
func TestGateway_CapIsLoweredDuringACall(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		res := w.begin(t.Context(), chatBody(llmtest.WaitsInside, `,"stream":true`))
		defer res.Body.Close()
		w.exec("UPDATE gateway_settings SET day_cap = 1")
		w.provider.Continue()
		if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), "[DONE]") {
			t.Errorf("got error %v, answer %q, want a complete answer", err, text)
		}
		w.refused("/v1/chat/completions", chatBody("good", ""), http.StatusPaymentRequired, "cap_reached",
			"insufficient_quota", "")
	})
}

// After a project is merged into another, its key belongs to the other project, and its calls count toward the caps of
// the other project.
func TestGateway_MergedProjectPays(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		const from, into = "com.example.hello", "com.example.other"
		if status := w.call("POST", "/api/projects/"+into+"/keys", `{"name":"app"}`, nil); status >= 300 {
			t.Fatalf("create a key: got status %d, want 201", status)
		}
		res := w.begin(t.Context(), chatBody(llmtest.WaitsInside, `,"stream":true`))
		defer res.Body.Close()
		w.merge(from, into)
		w.provider.Continue()
		if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), "[DONE]") {
			t.Errorf("call in flight: got error %v, answer %q, want a complete answer", err, text)
		}
		w.ask("POST", "/v1/chat/completions", chatBody("good", ""))
		var calls, inProject, inAccount int64
		err := w.db.QueryRow(`SELECT (SELECT COUNT(*) FROM gateway_calls WHERE app_id = $1),
			(SELECT MAX(spent) FROM credit_spending WHERE project = $1), (SELECT MAX(spent) FROM credit_spending WHERE
			project = '')`, into).Scan(&calls, &inProject, &inAccount)
		if err != nil || calls != 2 || inProject == 0 || inProject != inAccount {
			t.Errorf("got %d calls, %d of %d spent in the project (error %v), want 2 calls and all of it", calls, inProject,
				inAccount, err)
		}
		w.exec("UPDATE gateway_settings SET day_cap = 1 WHERE app_id = '" + into + "'")
		w.refused("/v1/chat/completions", chatBody("good", ""), http.StatusPaymentRequired, "cap_reached",
			"insufficient_quota", "")
	})
}

func (w *gatewayWorld) merge(from, into string) {
	w.t.Helper()
	w.change(func(s *db.DB, ada string) error {
		return projects.NewStore(s).MergeProjects(w.t.Context(), ada, from, into, audit.New(time.Now(), ada, audit.Person(),
			"project.merged",
			into, "merged"))
	})
}

// change runs f on a separate connection to the database, as another process would.
func (w *gatewayWorld) change(f func(s *db.DB, ada string) error) {
	w.t.Helper()
	store, err := db.Attach(w.t.Context(), w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer store.Close()
	var ada string
	if err := w.db.QueryRow("SELECT id FROM accounts").Scan(&ada); err != nil {
		w.t.Fatal(err)
	}
	if err := f(store, ada); err != nil {
		w.t.Fatal(err)
	}
}
