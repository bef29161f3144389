package gateway

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/llmtest"
)

// gatewayProcess is the environment variable with the database and the provider of the process that a test kills.
const gatewayProcess = "SERVICE_TEST_GATEWAY_PROCESS"

func ledgerOn(store *db.DB, now func() time.Time) *credit.Ledger {
	return credit.New(credit.Options{Store: credit.NewStore(store), Free: 2 * credit.USD, Now: now,
		Hasher: secret.NewHasher([]byte("a key of thirty-two bytes or more"))})
}

// noLog is the event log of sessions in tests that do not read it.
type noLog struct{ Sessions }

func (noLog) LogAssistant(context.Context, string, string, any) {}

// runGatewayProcess is the main function of the other process: a gateway that serves conversations of one project.
func runGatewayProcess(t *testing.T, with string) {
	database, provider, _ := strings.Cut(with, " ")
	store := dbtest.OpenAt(t, database)
	keys := &liveKeys{}
	keys.live.Store("key", true)
	s := New(Options{Purse: ledgerOn(store, time.Now), Keys: keys, Sessions: noLog{},
		Catalogue: Catalogue{byID: map[string]*Model{}},
		Log:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	for _, id := range []string{llmtest.Good, llmtest.WaitsInside, llmtest.Hangs, llmtest.HalfOpen} {
		s.addVoiceAt(id, provider, time.Minute)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(os.Stdout, "listening http://"+l.Addr().String())
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // only for the test
			who := Caller{Account: "acc", Project: "com.example.app", Key: "key", Session: r.URL.Query().Get("session")}
			serveTalk(w, r, s, who, r.URL.Query().Get("model"), 24000)
		}))
	}()
	_ = s.Serve(t.Context()) // until the process is killed
}

// cluster is a database and a provider that gateway processes share.
type cluster struct {
	t        *testing.T
	database string
	provider *llmtest.Provider
	ledger   *credit.Ledger
	inflow   credit.Amount
	ahead    atomic.Int64 // how far the ledger's clock is ahead of the processes'
}

func newCluster(t *testing.T, database string) *cluster {
	t.Helper()
	c := &cluster{t: t, database: database, provider: llmtest.Start(), inflow: 2 * credit.USD}
	t.Cleanup(c.provider.Close)
	store := dbtest.OpenAt(t, database)
	t.Cleanup(func() { _ = store.Close() })
	err := account.NewStore(store).InsertAccount(t.Context(), account.Account{ID: "acc", Email: "acc@example.org",
		PasswordHash: "x", Active: true, PrivacyAccepted: time.Now(), CreatedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	dbtest.AddProject(t, store, "acc", "com.example.app")
	c.ledger = ledgerOn(store, func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) })
	c.balance()
	return c
}

// process is a gateway in a process of its own.
type process struct {
	c   *cluster
	cmd *exec.Cmd
	url string
}

func (c *cluster) start() *process {
	c.t.Helper()
	name, _, _ := strings.Cut(c.t.Name(), "/")
	cmd := exec.CommandContext(c.t.Context(), os.Args[0], "-test.run=^"+name+"$")
	cmd.Env, cmd.Stderr = append(os.Environ(), gatewayProcess+"="+c.database+" "+c.provider.URL), os.Stderr
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		c.t.Fatal(err)
	}
	p := &process{c: c, cmd: cmd}
	c.t.Cleanup(p.kill)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var ok bool
		if p.url, ok = strings.CutPrefix(lines.Text(), "listening "); ok {
			return p
		}
	}
	c.t.Fatal("the gateway's process has ended")
	return nil
}

// kill ends the process, which cannot clean up.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// dial opens a conversation. refusal is the code of a refusal, or "".
func (p *process) dial(model, session string) (a *talker, refusal string) {
	p.c.t.Helper()
	conn, response, err := ws.Dial(p.c.t.Context(), p.url+"?model=voice-"+model+"&session="+session, nil)
	if err != nil && response != nil {
		defer response.Body.Close()
		code, _ := io.ReadAll(response.Body)
		return nil, strings.TrimSpace(string(code))
	}
	if err != nil {
		p.c.t.Fatal(err)
	}
	p.c.t.Cleanup(func() { _ = conn.CloseNow() })
	return &talker{p.c.t, conn}, ""
}

func (c *cluster) balance() credit.Account {
	c.t.Helper()
	b, err := c.ledger.Account(c.t.Context(), "acc")
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// endLeases sweeps the ledger at a time at which the lease of every hold has ended.
func (c *cluster) endLeases() {
	c.t.Helper()
	c.ahead.Store(int64(2 * credit.Lease))
	defer c.ahead.Store(0)
	if err := c.ledger.Sweep(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// await waits until reached returns true.
func (c *cluster) await(what string, reached func() bool) {
	c.t.Helper()
	for late := time.Now().Add(20 * time.Second); !reached(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(late) {
			c.t.Fatalf("waited too long until %s", what)
		}
	}
}

// wantBooks compares the ledger with what the account has paid.
func (c *cluster) wantBooks(when string, charged, held credit.Amount, calls int64) {
	c.t.Helper()
	b := c.balance()
	r, err := c.ledger.Check(c.t.Context())
	if err != nil || b.Posted != c.inflow-charged || b.Held != held || r.Operator != 0 || len(r.Differences) > 0 {
		c.t.Errorf("%s: charged %s, held %s, the operator paid %s, differences %+v (%v), want %s and %s", when,
			c.inflow-b.Posted, b.Held, r.Operator, r.Differences, err, charged, held)
	}
	var counted int64
	var sum credit.Amount
	err = c.ledger.Usage(c.t.Context(), credit.UsageQuery{AccountID: "acc", To: time.Now().Add(time.Hour)},
		func(u credit.UsageRow) error {
			counted, sum = counted+u.Calls, sum+u.Charged
			return nil
		})
	if err != nil || counted != calls || sum != charged {
		c.t.Errorf("%s: the usage has %d turns of %s (%v), want %d of %s", when, counted, sum, err, calls, charged)
	}
}

// lockBalance makes other transactions wait before they change a balance, until the returned function is called.
func (c *cluster) lockBalance() (unlock func()) {
	c.t.Helper()
	begin := "BEGIN IMMEDIATE"
	if enginetest.IsPostgres(c.database) {
		begin = "BEGIN"
	}
	conn, err := enginetest.Connect(c.t, c.database).Conn(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, statement := range []string{begin, "UPDATE credit_balances SET held = held"} {
		if _, err := conn.ExecContext(c.t.Context(), statement); err != nil {
			c.t.Fatal(err)
		}
	}
	return func() {
		_, err := conn.ExecContext(context.WithoutCancel(c.t.Context()), "ROLLBACK")
		if err = errors.Join(err, conn.Close()); err != nil && !errors.Is(err, sql.ErrConnDone) {
			c.t.Error(err)
		}
	}
}

// awaitLock returns once a transaction waits for the locked balance. SQLite does not tell.
func (c *cluster) awaitLock() {
	if enginetest.IsPostgres(c.database) {
		dbtest.AwaitLock(c.t, enginetest.Connect(c.t, c.database))
	}
}

// killPoints are the points of a turn at which a test kills the gateway.
var killPoints = map[string]struct {
	model  string
	reach  func(c *cluster, a *talker) (unlock func())
	billed int           // answers that the provider bills for, except one that is charged
	paid   credit.Amount // charged before the kill
	held   bool          // the turn's hold is left
}{
	"before the turn": {llmtest.Good, func(_ *cluster, a *talker) func() {
		a.send(askText)
		return nil
	}, 0, 0, false},
	"before the hold": {llmtest.Good, func(c *cluster, a *talker) func() {
		unlock := c.lockBalance()
		a.send(askText, askAnswer)
		c.awaitLock()
		return unlock
	}, 0, 0, false},
	"before the provider reads the request": {llmtest.HalfOpen, func(c *cluster, a *talker) func() {
		a.send(askAnswer)
		c.await("the hold exists", func() bool { return c.balance().Held > 0 })
		return nil
	}, 0, 0, true},
	"before the answer": {llmtest.Hangs, func(c *cluster, a *talker) func() {
		a.send(askAnswer)
		c.await("the provider has the request", func() bool { return len(c.provider.Answers()) == 1 })
		return nil
	}, 1, 0, true},
	"after the first sound": {llmtest.WaitsInside, func(_ *cluster, a *talker) func() {
		a.send(askText, appendOnce)
		a.until("response.output_audio.delta")
		return nil
	}, 1, 0, true},
	"between receipt and settlement": {llmtest.WaitsInside, func(c *cluster, a *talker) func() {
		a.send(askText, askAnswer)
		a.until("response.output_text.delta")
		unlock := c.lockBalance()
		a.send(`{"type":"response.cancel"}`)
		c.await("the receipt is sent", func() bool { return c.provider.Answers()[0].Done })
		c.awaitLock()
		return unlock
	}, 1, 0, true},
	"after the settlement": {llmtest.Good, func(_ *cluster, a *talker) func() {
		a.send(askText, askAnswer)
		a.until("response.done")
		return nil
	}, 0, textTurn, false},
	"in the turn after": {llmtest.WaitsInside, func(_ *cluster, a *talker) func() {
		a.send(appendOnce)
		a.until("response.output_audio.delta")
		a.send(`{"type":"response.cancel"}`)
		a.until("response.done")
		a.send(askText, askAnswer)
		a.until("response.output_text.delta")
		return nil
	}, 1, audioTurn, true},
}

// If the gateway's process is killed at any point of a turn, the turn is charged once or not at all: an open hold is
// returned after its lease, as for other calls, and the next process charges exactly its own turns.
func TestConversation_KilledProcess(t *testing.T) {
	if with := os.Getenv(gatewayProcess); with != "" {
		runGatewayProcess(t, with)
		return
	}
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		for name, point := range killPoints {
			t.Run(name, func(t *testing.T) {
				c := newCluster(t, database(t))
				p := c.start()
				a, _ := p.dial(point.model, "")
				a.until("session.created")
				unlock := point.reach(c, a)
				p.kill()
				if unlock != nil {
					unlock()
				}
				settled := int64(0)
				if point.paid > 0 {
					settled = 1
				}
				held := c.balance().Held
				if (held > 0) != point.held {
					t.Errorf("after the kill %s are held, want a hold: %v", held, point.held)
				}
				c.wantBooks("after the kill", point.paid, held, settled)
				c.endLeases()
				c.wantBooks("after the lease", point.paid, 0, settled)

				b, _ := c.start().dial(llmtest.Good, "")
				b.send(askText, askAnswer)
				b.until("response.done")
				c.wantBooks("after a turn of the next process", point.paid+textTurn, 0, settled+1)
				if n := len(c.provider.Answers()); int64(n) != int64(point.billed)+settled+1 {
					t.Errorf("the provider bills for %d answers, want %d that the kill lost and %d", n, point.billed, settled+1)
				}
			})
		}
	})
}
