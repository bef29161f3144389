//go:build unix

package credit_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/test/enginetest"
)

// ledgerFile is the environment variable with the database address for the process that a test kills or stops.
// TestMain reads it too.
const ledgerFile = "SERVICE_TEST_GROUP_FILE"

const sharedAccount = "shared"

// ledgerProcess is another process with a ledger on the same database. It reads one command per line.
type ledgerProcess struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startLedgerProcess(t *testing.T, database string) *ledgerProcess {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$")
	cmd.Env = append(os.Environ(), ledgerFile+"="+database)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err = errors.Join(err, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p := &ledgerProcess{t: t, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	return p
}

func (p *ledgerProcess) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *ledgerProcess) tell(command string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Fatal(err)
	}
}

// answer waits for a line that begins with the word, and returns the rest of that line.
func (p *ledgerProcess) answer(word string) string {
	p.t.Helper()
	for p.out.Scan() {
		if rest, ok := strings.CutPrefix(p.out.Text(), word+" "); ok {
			return rest
		}
	}
	p.t.Fatalf("the process ended before it printed %q", word)
	return ""
}

// runLedgerProcess is the main function of the other process.
func runLedgerProcess(t *testing.T, database string) {
	store := dbtest.OpenAt(t, database)
	defer store.Close()
	l := newLedger(store, time.Now)
	var h credit.Hold
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		var err error
		switch verb {
		case "hold":
			h, err = l.Hold(t.Context(), credit.HoldRequest{Account: sharedAccount, Project: modelProjects[0],
				Amount: credit.USD})
			fmt.Fprintln(os.Stdout, "held", h.ID)
		case "renew":
			err = l.Renew(t.Context(), h.ID)
			fmt.Fprintln(os.Stdout, "renewed", h.ID)
		case "settle":
			fmt.Fprintln(os.Stdout, "settling", h.ID)
			var charged credit.Amount
			charged, err = l.Settle(t.Context(), h.ID, 300_000, call("ok"))
			fmt.Fprintln(os.Stdout, "settled", charged)
		case "work":
			var seed uint64
			_, err = fmt.Sscan(rest, &seed)
			charged, asked := work(t, l, seed)
			fmt.Fprintln(os.Stdout, "worked", int64(charged), int64(asked))
		}
		if err != nil {
			t.Error(err)
			fmt.Fprintln(os.Stdout, "failed", err)
		}
	}
}

// work makes calls of one account from several goroutines. It returns the total charge and the total cost of the
// calls.
func work(t *testing.T, l *credit.Ledger, seed uint64) (charged, asked credit.Amount) {
	var c, a atomic.Int64
	var workers sync.WaitGroup
	for w := range 6 {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		workers.Go(func() {
			for range 40 {
				h, err := l.Hold(t.Context(), credit.HoldRequest{Account: sharedAccount,
					Project: modelProjects[random.IntN(2)], Amount: credit.Amount(1 + random.IntN(300_000))})
				if kind := kindOfRefusal(err); kind == "*credit.NoCredit" || kind == "*credit.Reserved" {
					continue
				} else if err != nil {
					t.Error(err)
					return
				}
				charge := credit.Amount(random.IntN(60_000))
				if random.IntN(4) == 0 {
					charge = 0
				}
				for range 1 + random.IntN(2) { // some calls settle twice
					got, err := l.Settle(t.Context(), h.ID, charge, call("ok"))
					if err != nil || got != min(charge, h.Amount) {
						t.Errorf("settling charged %s of %s (error %v), want all that the hold covers", got, charge, err)
					}
				}
				c.Add(int64(min(charge, h.Amount)))
				a.Add(int64(charge))
			}
		})
	}
	workers.Wait()
	return credit.Amount(c.Load()), credit.Amount(a.Load())
}

// sharedLedger stores the account that the processes share, and returns a ledger whose clock is ahead by offset.
func sharedLedger(t *testing.T, database string, ahead *atomic.Int64) *credit.Ledger {
	t.Helper()
	store := dbtest.OpenAt(t, database)
	t.Cleanup(func() { _ = store.Close() })
	addPurse(t, store, sharedAccount, time.Now())
	l := newLedger(store, func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	if _, err := l.Account(t.Context(), sharedAccount); err != nil {
		t.Fatal(err)
	}
	return l
}

func wantBooks(t *testing.T, l *credit.Ledger, posted, held, operator credit.Amount) {
	t.Helper()
	a, err := l.Account(t.Context(), sharedAccount)
	r, checkErr := l.Check(t.Context())
	if err != nil || checkErr != nil || a.Posted != posted || a.Held != held || r.Operator != operator ||
		len(r.Differences) > 0 {
		t.Errorf("balance %s, held %s, operator %s, differences %+v (%v, %v); want %s, %s, %s", a.Posted, a.Held, r.Operator,
			r.Differences, err, checkErr, posted, held, operator)
	}
}

// If a process is killed at any point between hold and settlement, either the call is charged once or another
// process's sweep returns the money.
func TestCredit_KilledProcess(t *testing.T) {
	if database := os.Getenv(ledgerFile); database != "" {
		runLedgerProcess(t, database)
		return
	}
	points := map[string]struct {
		tell    []string
		until   string
		blocked bool // while another transaction holds a lock that the settlement needs
		charged credit.Amount
	}{
		"held":     {[]string{"hold"}, "held", false, 0},
		"renewed":  {[]string{"hold", "renew"}, "renewed", false, 0},
		"settling": {[]string{"hold", "settle"}, "settling", true, 0},
		"settled":  {[]string{"hold", "settle"}, "settled", false, 300_000},
	}
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		for name, point := range points {
			t.Run(name, func(t *testing.T) {
				var ahead atomic.Int64
				where := database(t)
				l := sharedLedger(t, where, &ahead)
				p := startLedgerProcess(t, where)
				p.tell("hold")
				id := p.answer("held")
				unblock := func() {}
				if point.blocked {
					unblock = blockBalance(t, where)
				}
				for _, command := range point.tell[1:] {
					p.tell(command)
				}
				if point.until != "held" {
					p.answer(point.until)
				}
				if point.blocked && enginetest.IsPostgres(where) { // the process is in the middle of its transaction
					dbtest.AwaitLock(t, enginetest.Connect(t, where))
				}
				p.kill()
				unblock()
				settled := point.charged > 0
				if !settled {
					wantBooks(t, l, 2*credit.USD, credit.USD, 0)
				}
				ahead.Store(int64(2 * credit.Lease))
				if err := l.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				wantBooks(t, l, 2*credit.USD-point.charged, 0, 0)
				// If another process settles the call afterwards, no more is charged.
				again, err := l.Settle(t.Context(), id, 900_000, call("ok"))
				if err != nil || again != point.charged {
					t.Errorf("settling again: got %s (error %v), want the same charge", again, err)
				}
				carried := credit.Amount(0)
				if !settled {
					carried = 900_000
				}
				wantBooks(t, l, 2*credit.USD-point.charged, 0, carried)
			})
		}
	})
}

// blockBalance makes other transactions wait before they change a balance, until the returned function is called.
func blockBalance(t *testing.T, database string) func() {
	t.Helper()
	conn, err := enginetest.Connect(t, database).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	begin := "BEGIN IMMEDIATE"
	if enginetest.IsPostgres(database) {
		begin = "BEGIN"
	}
	for _, statement := range []string{begin, "UPDATE credit_balances SET held = held"} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		_, err := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK")
		if err = errors.Join(err, conn.Close()); err != nil && !errors.Is(err, sql.ErrConnDone) {
			t.Error(err)
		}
	}
}

// A process that is stopped for longer than its lease loses its hold: the money was returned and is not taken again,
// and the operator pays for the call.
func TestCredit_StoppedProcessSettlesLate(t *testing.T) {
	if database := os.Getenv(ledgerFile); database != "" {
		runLedgerProcess(t, database)
		return
	}
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		var ahead atomic.Int64
		where := database(t)
		l := sharedLedger(t, where, &ahead)
		p := startLedgerProcess(t, where)
		p.tell("hold")
		id := p.answer("held")
		signal(t, p, syscall.SIGSTOP)
		ahead.Store(int64(2 * credit.Lease))
		if err := l.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantBooks(t, l, 2*credit.USD, 0, 0)
		p.tell("settle")
		signal(t, p, syscall.SIGCONT)
		if charged := p.answer("settled"); charged != "0.00" {
			t.Errorf("a late settlement charged %s, want 0.00", charged)
		}
		wantBooks(t, l, 2*credit.USD, 0, 300_000)
		if err := l.Renew(t.Context(), id); !errors.Is(err, credit.ErrHoldEnded) {
			t.Errorf("renewing an expired hold: got %v, want ErrHoldEnded", err)
		}
		p.tell("settle")
		p.answer("settled")
		wantBooks(t, l, 2*credit.USD, 0, 300_000)
	})
}

func signal(t *testing.T, p *ledgerProcess, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// Three processes spend the credit of one account concurrently. Readers always see 0 <= held <= posted, and in the end
// the ledger matches the processes' reports.
func TestCredit_ThreeProcessesShareAnAccount(t *testing.T) {
	if database := os.Getenv(ledgerFile); database != "" {
		runLedgerProcess(t, database)
		return
	}
	where := dbtest.Postgres(t)
	var ahead atomic.Int64
	l := sharedLedger(t, where, &ahead)
	if _, err := l.Grant(t.Context(), sharedAccount, credit.USD, "INV-1", "", audit.Operator()); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var looker sync.WaitGroup
	looker.Go(func() { watchBalance(t, enginetest.Connect(t, where), done) })
	processes := make([]*ledgerProcess, 3)
	for i := range processes {
		processes[i] = startLedgerProcess(t, where)
		processes[i].tell(fmt.Sprint("work ", i))
	}
	var charged, asked credit.Amount
	for _, p := range processes {
		var c, a credit.Amount
		if _, err := fmt.Sscan(p.answer("worked"), &c, &a); err != nil {
			t.Fatal(err)
		}
		charged, asked = charged+c, asked+a
	}
	close(done)
	looker.Wait()
	if charged == 0 {
		t.Error("no call was charged")
	}
	wantBooks(t, l, 3*credit.USD-charged, 0, asked-charged)
	if r, err := l.Check(t.Context()); err != nil || r.Used != asked {
		t.Errorf("the ledger shows %s used, want %s, the cost of the calls (error %v)", r.Used, asked, err)
	}
	// Credit that was refused because of calls in flight becomes available again.
	if _, err := l.Hold(t.Context(), credit.HoldRequest{Account: sharedAccount,
		Amount: 3*credit.USD - charged}); err != nil {
		t.Error(err)
	}
}

// watchBalance checks the balance over a separate connection until done is closed.
func watchBalance(t *testing.T, client *sql.DB, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		var posted, held int64
		err := client.QueryRowContext(t.Context(), "SELECT posted, held FROM credit_balances").Scan(&posted, &held)
		if err != nil || held < 0 || held > posted {
			t.Errorf("posted %d, held %d (error %v), want 0 <= held <= posted", posted, held, err)
			return
		}
	}
}
