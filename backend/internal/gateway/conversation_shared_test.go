package gateway

import (
	"database/sql"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/llmtest"
)

// startThree starts three gateways on one PostgreSQL.
func startThree(t *testing.T) (c *cluster, processes []*process) {
	t.Helper()
	c = newCluster(t, dbtest.Postgres(t))
	for range 3 {
		processes = append(processes, c.start())
	}
	return c, processes
}

// On each of three servers, a project can hold 20 conversations and a simulator's session 2 of them.
func TestConversation_LimitsOfThreeProcesses(t *testing.T) {
	if with := os.Getenv(gatewayProcess); with != "" {
		runGatewayProcess(t, with)
		return
	}
	_, processes := startThree(t)
	for _, p := range processes {
		var first *talker
		for n := range projectConversations {
			session := ""
			if n < sessionConversations {
				session = "session"
			}
			a, refusal := p.dial(llmtest.Good, session)
			if refusal != "" {
				t.Fatalf("conversation %d: %s", n, refusal)
			}
			if n == sessionConversations-1 {
				if _, refusal := p.dial(llmtest.Good, "session"); refusal != problem.CodeTooManyCalls {
					t.Errorf("one more conversation of the session: got %q", refusal)
				}
			}
			if n == 0 {
				first = a
			}
		}
		if _, refusal := p.dial(llmtest.Good, ""); refusal != problem.CodeTooManyCalls {
			t.Errorf("one more conversation of the project: got %q", refusal)
		}
		_ = first.conn.CloseNow()
		p.c.await("the place is free", func() bool {
			_, refusal := p.dial(llmtest.Good, "session")
			return refusal == ""
		})
	}
}

// Conversations on three servers share the credit of an account: no more answers are in progress than it covers, the
// others are refused for now, and the account pays the provider's bill.
func TestConversation_ThreeProcessesShareCredit(t *testing.T) {
	if with := os.Getenv(gatewayProcess); with != "" {
		runGatewayProcess(t, with)
		return
	}
	c, processes := startThree(t)
	hold := c.holdOfTurn(processes[0])
	left := c.balance().Posted - 3*hold - hold/2
	if _, err := c.ledger.Take(t.Context(), "acc", left, "three turns are left", "", audit.Operator()); err != nil {
		t.Fatal(err)
	}
	c.inflow -= left

	var waiting []*talker
	for _, p := range processes {
		for range sessionConversations {
			a, refusal := p.dial(llmtest.WaitsInside, "session")
			if refusal != "" {
				t.Fatal(refusal)
			}
			waiting = append(waiting, a)
		}
	}
	for turns := credit.Amount(1); len(waiting) > 0; turns += 3 {
		begun, refused := askAll(waiting)
		if len(begun) != 3 {
			t.Fatalf("%d of %d answers are in progress, want the 3 that the credit covers", len(begun), len(waiting))
		}
		c.wantBooks("in progress", turns*textTurn, 3*hold, int64(turns))
		cancelAll(begun)
		c.wantBooks("at rest", (turns+3)*textTurn, 0, int64(turns)+3)
		waiting = refused
	}
	var bill int64
	for _, answer := range c.provider.Answers() {
		bill += answer.Bill(llmtest.CatalogueVoicePrices)
	}
	if bill != 7*textTurn {
		t.Errorf("the provider bills %d, want 7 turns of %d", bill, textTurn)
	}
}

// holdOfTurn returns the amount that is held for a turn.
func (c *cluster) holdOfTurn(p *process) credit.Amount {
	c.t.Helper()
	a, _ := p.dial(llmtest.WaitsInside, "")
	if begun, _ := askAll([]*talker{a}); len(begun) != 1 {
		c.t.Fatal("the first turn was refused")
	}
	hold := c.balance().Held
	cancelAll([]*talker{a})
	return hold
}

// askAll requests an answer in each conversation at the same time. It returns the conversations in which one has begun,
// and those in which other answers hold the credit.
func askAll(all []*talker) (begun, refused []*talker) {
	const isReserved = "error " + problem.CodeCreditReserved
	for _, a := range all {
		a.send(askText, askAnswer)
	}
	for _, a := range all {
		if types, _ := a.until("response.output_text.delta", isReserved); slices.Contains(types, isReserved) {
			refused = append(refused, a)
		} else {
			begun = append(begun, a)
		}
	}
	return begun, refused
}

func cancelAll(all []*talker) {
	for _, a := range all {
		a.send(`{"type":"response.cancel"}`)
	}
	for _, a := range all {
		a.until("response.done")
	}
}

// Six conversations of one session on three servers have turns at the same time. Readers always see
// 0 <= held <= posted, and in the end the ledger, the usage and the provider's book agree.
func TestConversation_ThreeProcessesChargeTheBill(t *testing.T) {
	if with := os.Getenv(gatewayProcess); with != "" {
		runGatewayProcess(t, with)
		return
	}
	c, processes := startThree(t)
	var all []*talker
	for _, p := range processes {
		for range sessionConversations {
			a, refusal := p.dial(llmtest.Good, "session")
			if refusal != "" {
				t.Fatal(refusal)
			}
			all = append(all, a)
		}
	}
	client := enginetest.Connect(t, c.database)
	watched, done := sync.WaitGroup{}, make(chan struct{})
	watched.Go(func() { c.watchBalance(client, done) })
	const rounds = 25
	for n := range rounds {
		for i, a := range all {
			if (n+i)%2 == 0 {
				a.send(appendOnce)
			} else {
				a.send(askText, askAnswer)
			}
		}
		for _, a := range all {
			a.until("response.done")
		}
	}
	close(done)
	watched.Wait()
	var bill credit.Amount
	for _, answer := range c.provider.Answers() {
		bill += credit.Amount(answer.Bill(llmtest.CatalogueVoicePrices))
	}
	if want := credit.Amount(rounds * len(all) / 2 * (textTurn + audioTurn)); bill != want {
		t.Errorf("the provider bills %s, want %s", bill, want)
	}
	c.wantBooks("in the end", bill, 0, int64(rounds*len(all)))
}

// watchBalance checks the balance over a separate connection until done is closed.
func (c *cluster) watchBalance(client *sql.DB, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		var posted, held int64
		err := client.QueryRowContext(c.t.Context(), "SELECT posted, held FROM credit_balances").Scan(&posted, &held)
		if err != nil || held < 0 || held > posted {
			c.t.Errorf("posted %d, held %d (error %v), want 0 <= held <= posted", posted, held, err)
			return
		}
	}
}
