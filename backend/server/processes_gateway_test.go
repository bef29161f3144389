//go:build unix

package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/llmtest"
)

const freeCredit = 2_000_000

// If a server is killed at any point of a call, either the call is charged once or another server returns the money.
// The provider receives the call at most once.
func TestGateway_ServerIsKilled(t *testing.T) {
	points := []struct {
		name     string
		reach    func(s *servers, p *serverProcess)
		requests int
		charged  bool
	}{
		{"held", func(s *servers, p *serverProcess) {
			p.background("silent")
			s.until("a hold", func() bool { return s.number("SELECT COUNT(*) FROM credit_holds WHERE state = 'open'") == 1 })
		}, 0, false},
		{"sent", func(s *servers, p *serverProcess) {
			p.background(llmtest.Hangs)
			s.until("the request", func() bool { return len(s.provider.Book()) == 1 })
		}, 1, false},
		{"first byte", func(s *servers, p *serverProcess) {
			_, closed := p.begin(llmtest.WaitsInside, "Grüße")
			s.Cleanup(closed)
		}, 1, false},
		{"usage reported", func(s *servers, p *serverProcess) {
			_, closed := p.begin(llmtest.HangsAfterUsage, "prompt_tokens")
			s.Cleanup(closed)
		}, 1, false},
		{"settling", func(s *servers, p *serverProcess) {
			stream, closed := p.begin(llmtest.WaitsInside, "Grüße")
			s.Cleanup(closed)
			unblock := s.blockSettling()
			s.provider.Continue()
			scanTo(s, stream, "[DONE]")
			if enginetest.IsPostgres(s.database) { // the process is in the middle of its transaction
				s.until("a transaction that waits", func() bool {
					return s.number("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND "+
						"wait_event_type = 'Lock'") > 0
				})
			}
			p.signal(os.Kill)
			unblock()
		}, 1, false},
		{"settled", func(s *servers, p *serverProcess) {
			_, closed := p.begin("good", "[DONE]")
			s.Cleanup(closed)
			s.until("the charge", func() bool { return s.number("SELECT held FROM credit_balances") == 0 })
		}, 1, true},
	}
	enginetest.EachBlank(t, func(t *testing.T, database func(t *testing.T) string) {
		for _, point := range points {
			t.Run(point.name, func(t *testing.T) {
				s := newServers(t, database(t))
				p := s.start()
				point.reach(s, p)
				p.signal(os.Kill)
				posted := s.number("SELECT posted FROM credit_balances")
				if held := s.number("SELECT held FROM credit_balances"); (held == 0) != point.charged || held > posted {
					t.Errorf("%d of %d are held after the kill, want a hold only without a charge", held, posted)
				}
				s.exec("UPDATE credit_holds SET lease_until = 1 WHERE state = 'open'") // a minute later
				s.start()
				s.until("the money is back", func() bool { return s.number("SELECT held FROM credit_balances") == 0 })
				posted = s.number("SELECT posted FROM credit_balances")
				if spent := s.number("SELECT COALESCE(SUM(micro_usd), 0) FROM gateway_calls"); posted != freeCredit-spent ||
					(spent > 0) != point.charged {
					t.Errorf("balance %d, but %d were counted, want every charge counted", posted, spent)
				}
				if n := len(s.provider.Book()); n != point.requests {
					t.Errorf("the provider received %d requests, want the case's number", n)
				}
				s.ledger()
			})
		}
	})
}

// blockSettling makes other transactions wait before they change a balance, until the returned function is called.
func (s *servers) blockSettling() (unblock func()) {
	s.Helper()
	conn, err := s.db.Conn(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	begin := "BEGIN IMMEDIATE"
	if enginetest.IsPostgres(s.database) {
		begin = "BEGIN"
	}
	for _, statement := range []string{begin, "UPDATE credit_balances SET held = held"} {
		if _, err := conn.ExecContext(s.ctx, statement); err != nil {
			s.Fatal(err)
		}
	}
	return func() {
		if _, err := conn.ExecContext(s.ctx, "ROLLBACK"); err != nil {
			s.Error(err)
		}
		_ = conn.Close()
	}
}

// A server that is stopped for longer than its lease loses its hold. The operator, not the account, pays for the call,
// which ends afterwards.
func TestGateway_ServerStandsStill(t *testing.T) {
	enginetest.EachBlank(t, func(t *testing.T, database func(t *testing.T) string) {
		s := newServers(t, database(t))
		p := s.start()
		stream, closed := p.begin(llmtest.WaitsInside, "Grüße")
		defer closed()
		s.until("the server is stopped outside a transaction, which would lock SQLite's file", func() bool {
			if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(s.ctx, time.Second)
			defer cancel()
			if _, err := s.db.ExecContext(ctx, "UPDATE credit_holds SET lease_until = 1"); err != nil {
				return p.cmd.Process.Signal(syscall.SIGCONT) != nil
			}
			return true
		})
		s.start()
		s.until("the money is back", func() bool { return s.number("SELECT held FROM credit_balances") == 0 })
		s.provider.Continue()
		if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for stream.Scan() {
			continue
		}
		s.until("the call is counted", func() bool { return s.number("SELECT COUNT(*) FROM gateway_calls") == 1 })
		carried := s.number("SELECT COALESCE(SUM(amount), 0) FROM credit_transfers WHERE debit = 'operator'")
		if posted := s.number("SELECT posted FROM credit_balances"); posted != freeCredit || carried == 0 {
			t.Errorf("balance %d, the operator pays %d; want a full balance and more than 0", posted, carried)
		}
		s.ledger()
	})
}

// A dump of a server's goroutines contains no key and no content of a call.
func TestGateway_DumpHoldsNoSecret(t *testing.T) {
	s := newServers(t, t.TempDir()+"/service.db")
	p := s.start()
	_, closed := p.begin(llmtest.WaitsInside, "Grüße")
	defer closed()
	p.signal(syscall.SIGQUIT)
	text := p.log.String()
	if !strings.Contains(text, "goroutine ") || !strings.Contains(text, "gateway.(*transfer)") {
		t.Fatalf("the dump does not contain the call: %s", text)
	}
	for _, secret := range []string{llmtest.Key, s.key, testKey, "canary-content", "Grüße"} {
		if strings.Contains(text, secret) {
			t.Errorf("the dump contains %q", secret)
		}
	}
}

// Three servers on one PostgreSQL spend the credit of one account concurrently, up to a cap. Readers never see an
// overdraft or more spending than the cap, and in the end the ledger matches the provider's records to the
// micro-dollar.
func TestGateway_ThreeServersShareAnAccount(t *testing.T) {
	s := newServers(t, enginetest.Postgres(t).Database(t))
	const limit = 10_000
	processes := []*serverProcess{s.start(), s.start(), s.start()}
	s.exec("UPDATE gateway_settings SET day_cap = 10000")
	looking, stop := context.WithCancel(s.ctx)
	var looker, workers sync.WaitGroup
	looker.Go(func() { s.watchMoney(looking, limit) })
	var mu sync.Mutex
	codes := map[string]int{}
	for _, p := range processes {
		for range 2 {
			workers.Go(func() {
				for n := range 12 {
					code := p.ask([]string{llmtest.Status500, "good", llmtest.AboveMax, "good"}[n%4])
					mu.Lock()
					codes[code]++
					mu.Unlock()
				}
			})
		}
	}
	workers.Wait()
	s.until("every call is settled", func() bool { return s.number("SELECT held FROM credit_balances") == 0 })
	stop()
	looker.Wait()
	known := []string{"ok", "provider_busy", "cap_reached", "credit_reserved", "model_not_found"}
	for code := range codes {
		if !slices.Contains(known, code) {
			t.Errorf("%d calls ended with the code %s, want none", codes[code], code)
		}
	}
	if codes["ok"] == 0 || codes["cap_reached"] == 0 || codes["provider_busy"] == 0 {
		t.Errorf("got the codes %v, want ok, cap_reached and provider_busy among them", codes)
	}
	s.compareBooks()
}

// compareBooks compares the ledger with the provider's records.
func (s *servers) compareBooks() {
	s.Helper()
	var ledger struct {
		OK       bool  `json:"ok"`
		Balances int64 `json:"balancesMicroUsd"`
		Used     int64 `json:"usedMicroUsd"`
		Operator int64 `json:"operatorMicroUsd"`
	}
	if err := json.Unmarshal([]byte(s.ledger()), &ledger); err != nil {
		s.Fatal(err)
	}
	billed := int64(0)
	for _, c := range s.provider.Book() {
		if c.Done {
			cached := llmtest.Cached(c.In)
			billed += 2*(c.In-cached) + cached + 10*c.Out
		}
	}
	counted := s.number("SELECT CAST(COALESCE(SUM(micro_usd), 0) AS BIGINT) FROM gateway_usage")
	if ledger.Used != billed || ledger.Balances != freeCredit-(billed-ledger.Operator) ||
		counted != billed-ledger.Operator || ledger.Operator == 0 {
		s.Errorf("the provider billed %d, the ledger has %+v and counted %d; want equal sums", billed, ledger, counted)
	}
}

// watchMoney checks the balance and the project's spending until ctx ends.
func (s *servers) watchMoney(ctx context.Context, limit int64) {
	for ctx.Err() == nil {
		var posted, held, used int64
		err := s.db.QueryRowContext(ctx, `SELECT COALESCE(SUM(posted), 0), COALESCE(SUM(held), 0), (SELECT COALESCE(MAX(spent +
			held), 0) FROM credit_spending WHERE project <> '') FROM credit_balances`).Scan(&posted, &held, &used)
		if ctx.Err() == nil && (err != nil || held < 0 || held > posted || used > limit) {
			s.Errorf("posted %d, held %d, used %d with a cap of %d, error %v; want no overdraft", posted, held, used, limit, err)
			return
		}
	}
}

// ask makes a call and returns "ok" or its error code.
func (p *serverProcess) ask(model string) string {
	res, err := p.request(p.s.ctx, model)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(bufio.NewReader(res.Body))
	if err != nil {
		return err.Error()
	}
	if res.StatusCode == http.StatusOK {
		return "ok"
	}
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal(text, &e)
	return e.Error.Code
}
