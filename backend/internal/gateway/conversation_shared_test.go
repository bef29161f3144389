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
	hold := c.leaveThreeTurns(processes[0])
	var waiting []*talker
	for _, p := range processes {
		waiting = append(waiting, p.dialTwo(llmtest.WaitsInside)...)
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

// dialTwo opens as many conversations as a session can have.
func (p *process) dialTwo(model string) (all []*talker) {
	p.c.t.Helper()
	for range sessionConversations {
		a, refusal := p.dial(model, "session")
		if refusal != "" {
			p.c.t.Fatal(refusal)
		}
		all = append(all, a)
	}
	return all
}

// leaveThreeTurns has a turn, and then takes so much credit that the rest covers three turns at a time. It returns the
// hold of a turn.
func (c *cluster) leaveThreeTurns(p *process) (hold credit.Amount) {
	c.t.Helper()
	a, _ := p.dial(llmtest.WaitsInside, "")
	if begun, _ := askAll([]*talker{a}); len(begun) != 1 {
		c.t.Fatal("the first turn was refused")
	}
	hold = c.balance().Held
	cancelAll([]*talker{a})
	rest := c.balance().Posted - 3*hold - hold/2
	if _, err := c.ledger.Take(c.t.Context(), "acc", rest, "three turns are left", "", audit.Operator()); err != nil {
		c.t.Fatal(err)
	}
	c.inflow -= rest
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

// The holds of a killed server remain held on the others until their lease ends, and cost the account nothing.
func TestConversation_OneOfThreeProcessesIsKilled(t *testing.T) {
	if with := os.Getenv(gatewayProcess); with != "" {
		runGatewayProcess(t, with)
		return
	}
	c, processes := startThree(t)
	hold := c.leaveThreeTurns(processes[1])
	killed, _ := askAll(processes[0].dialTwo(llmtest.WaitsInside))
	other, _ := askAll(processes[1].dialTwo(llmtest.WaitsInside)[:1])
	begun, waiting := askAll(processes[2].dialTwo(llmtest.WaitsInside))
	if len(killed) != 2 || len(other) != 1 || len(begun) != 0 {
		t.Fatalf("%d, %d and %d answers are in progress, want 2, 1 and 0", len(killed), len(other), len(begun))
	}
	processes[0].kill()
	cancelAll(other)
	c.wantBooks("after the kill", 2*textTurn, 2*hold, 2)
	begun, waiting = askAll(waiting)
	if len(begun) != 1 || len(waiting) != 1 {
		t.Fatalf("%d answers began, want the one that the rest of the credit covers", len(begun))
	}
	cancelAll(begun)
	c.endLeases()
	if begun, _ = askAll(waiting); len(begun) != 1 {
		t.Fatal("after the lease, the credit covers no other answer")
	}
	cancelAll(begun)
	c.wantBooks("in the end", 4*textTurn, 0, 4)
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
		all = append(all, p.dialTwo(llmtest.Good)...)
	}
	client := enginetest.Connect(t, c.database)
	watched, done := sync.WaitGroup{}, make(chan struct{})
	watched.Go(func() { c.watchBalance(client, done) })
	stop := sync.OnceFunc(func() {
		close(done)
		watched.Wait()
	})
	defer stop()
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
	stop()
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
