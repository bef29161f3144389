//go:build unix

package e2e

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/test/browser"
	"github.com/service-dev/service/test/llmtest"
)

// eachGatewayEngine runs a test with a gateway on each database.
func eachGatewayEngine(t *testing.T, models []string, test func(t *testing.T, g *gatewayWorld, key string)) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			database, _ := newDatabase(t, engine)
			g := startGateway(t, database, models...)
			key, err := g.app.owner.ProjectKey(app)
			if err != nil {
				t.Fatal(err)
			}
			test(t, g, key)
		})
	}
}

// beginCall sends a streamed call. The returned channel receives its status, or 0 if the app disconnected.
func (g *gatewayWorld) beginCall(ctx context.Context, key, model string) <-chan int {
	return g.beginLongCall(ctx, key, model, "Hello")
}

// beginLongCall is like beginCall, with the given text as the question.
func (g *gatewayWorld) beginLongCall(ctx context.Context, key, model, text string) <-chan int {
	done := make(chan int, 1)
	go func() {
		call := `{"model":"` + model + `","stream":true,"max_tokens":100,` +
			`"messages":[{"role":"user","content":"` + text + `"}]}`
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.backend.url+"/v1/chat/completions",
			strings.NewReader(call))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			done <- 0
			return
		}
		res.Body.Close()
		done <- res.StatusCode
	}()
	return done
}

// An app that disconnects while the provider is working pays what the provider reports at the end. If the provider
// reports nothing, the app pays the whole hold. The operator pays nothing in either case.
func TestGateway_AppsThatLeavePay(t *testing.T) {
	models := []string{llmtest.SlowFirstByte, llmtest.WaitsInside}
	eachGatewayEngine(t, models, func(t *testing.T, g *gatewayWorld, key string) {
		leave := func(model string) (held int64) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			before := len(g.provider.Book())
			done := g.beginCall(ctx, key, model)
			must(t, "the provider works on the call", func() bool { return len(g.provider.Book()) > before })
			if model == llmtest.WaitsInside {
				<-done // the app has the first event, and closes the connection
			}
			cancel()
			if held = g.app.usageOf(0).Credit.ReservedMicroUSD; held == 0 {
				t.Error("nothing is held for a call in flight")
			}
			return held
		}
		for _, model := range models {
			leave(model)
			g.provider.Continue()
			if l := g.settled(); l.Used != g.bill() || l.Operator != 0 {
				t.Errorf("%s: the account paid %d and the operator %d, the provider bills %d",
					model, l.Used, l.Operator, g.bill())
			}
		}
		before := g.ledger().Used
		held := leave(llmtest.WaitsInside)
		g.provider.Close() // its answer ends without a usage report
		if l := g.settled(); l.Used != before+held || l.Operator != 0 || !l.OK {
			t.Errorf("without a report the account paid %d and the operator %d, the hold was %d",
				l.Used-before, l.Operator, held)
		}
	})
}

// An account that makes as many calls as it can does not prevent others from making calls.
func TestGateway_AGreedyAccountTakesOnlyItsShare(t *testing.T) {
	models := []string{llmtest.SlowFirstByte, llmtest.Good}
	eachGatewayEngine(t, models, func(t *testing.T, g *gatewayWorld, key string) {
		other, err := browser.Link(g.backend.url, "bob@example.org", password)
		if err != nil {
			t.Fatal(err)
		}
		otherKey, err := other.ProjectKey(app)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		statuses := make(chan int, 400) // one address may have 500 requests in progress
		for range cap(statuses) {
			calls.Go(func() { statuses <- <-g.beginCall(ctx, key, llmtest.SlowFirstByte) })
		}
		must(t, "the account's share is used up", func() bool { return len(g.provider.Book()) >= 128 })
		if status := <-g.beginCall(t.Context(), otherKey, llmtest.Good); status != http.StatusOK {
			t.Errorf("call of another account: status %d, want 200", status)
		}
		must(t, "every call beyond the share is refused", func() bool { return len(statuses) == cap(statuses)-128 })
		leave()
		calls.Wait()
		close(statuses)
		refused := 0
		for status := range statuses {
			if status == http.StatusServiceUnavailable {
				refused++
			}
		}
		if refused != cap(statuses)-128 {
			t.Errorf("%d of %d calls were refused with 503, want all but 128", refused, cap(statuses))
		}
	})
}

// A call that waits for its provider does not keep its request in memory.
func TestGateway_WaitingCallsKeepNoRequest(t *testing.T) {
	if runtime.GOOS != "linux" {
		missing(t, "a way to read the memory of a process", "run this test on Linux")
	}
	eachGatewayEngine(t, []string{llmtest.SlowFirstByte}, func(t *testing.T, g *gatewayWorld, key string) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		question, pid := strings.Repeat("x", 3_900_000), g.backend.cmd.Process.Pid
		begin := func(n int) {
			for range n {
				before := len(g.provider.Book())
				g.beginLongCall(ctx, key, llmtest.SlowFirstByte, question)
				must(t, "the provider has the request", func() bool { return len(g.provider.Book()) > before })
			}
		}
		g.backend.admin("credit", "ada@example.org", "--add", "25.00", "--reference", "r", "--note", "n")
		begin(3) // so that buffers and the garbage of requests exist before the measurement
		before := usageOf(t, pid).kilobytes
		begin(12)
		after := usageOf(t, pid).kilobytes
		t.Logf("12 calls with requests of 3.9 MB: memory grew from %d to %d kB", before, after)
		if after > before+56<<10 {
			t.Errorf("memory grew from %d to %d kB, want at most 56 MB more", before, after)
		}
	})
}
