//go:build unix

package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/test/llmtest"
	"github.com/service-dev/service/test/pgtest"
)

// PostgreSQL goes down in the middle of calls and comes back. New calls are refused with a time after which to retry,
// responses that have begun continue, and in the end each call has been charged once or refunded.
func TestGateway_DatabaseIsAway(t *testing.T) {
	cluster, err := pgtest.Start()
	if errors.Is(err, pgtest.ErrMissing) {
		pgtest.Missing(t)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	address, err := cluster.Create()
	if err != nil {
		t.Fatal(err)
	}
	s := newServers(t, address)
	p := s.start()
	if code := p.ask("good"); code != "ok" {
		t.Fatalf("before the outage a call ended with %s, want ok", code)
	}
	s.until("the charge", func() bool { return s.number("SELECT held FROM credit_balances") == 0 })
	spent := freeCredit - s.number("SELECT posted FROM credit_balances")
	during, endDuring := p.begin(llmtest.WaitsInside, "Grüße")
	defer endDuring()

	cluster.Halt(t)
	for range 2 { // the server has no connection left before the second call
		res, err := p.request(s.ctx, "good")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") != "1" ||
			!strings.Contains(string(text), `"code":"unavailable"`) || strings.Contains(string(text), "connect") {
			t.Errorf("got status %d, Retry-After %q, error %v: %s; want a 503 without details",
				res.StatusCode, res.Header.Get("Retry-After"), err, text)
		}
	}
	s.until("health says so", func() bool {
		res, err := http.Get(p.url + "/api/health")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusServiceUnavailable
	})
	s.provider.Continue()
	scanTo(s, during, "[DONE]") // no write succeeds during this call

	cluster.Resume(t)
	after, endAfter := p.begin(llmtest.WaitsInside, "Grüße")
	defer endAfter()
	s.provider.Continue()
	scanTo(s, after, "[DONE]")
	s.until("the charge", func() bool { return s.number("SELECT COUNT(*) FROM gateway_calls") >= 2 })
	// The call that ended during the outage is charged if the database returns in time. Otherwise its lease ends a
	// minute later.
	s.exec("UPDATE credit_holds SET lease_until = 1 WHERE state = 'open'")
	s.start()
	s.until("nothing is held", func() bool { return s.number("SELECT held FROM credit_balances") == 0 })
	posted := s.number("SELECT posted FROM credit_balances")
	if counted := s.number("SELECT SUM(micro_usd) FROM gateway_calls"); posted != freeCredit-counted || counted <= spent {
		t.Errorf("balance %d, but %d were counted, %d of them before the outage", posted, counted, spent)
	}
	if n := len(s.provider.Book()); n != 3 {
		t.Errorf("the provider received %d requests, want 3", n)
	}
	s.ledger()
	if code := p.ask("good"); code != "ok" {
		t.Errorf("after the outage a call ended with %s, want ok", code)
	}
}
