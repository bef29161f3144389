package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/test/enginetest"
)

// wantNoDeadlocks closes the store and fails if PostgreSQL ever aborted one of its transactions because of a deadlock.
// A connection reports its statistics when it ends, at the latest.
func wantNoDeadlocks(t *testing.T, s *db.DB, client *sql.DB) {
	t.Helper()
	fatal(t, s.Close())
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var others, deadlocks int
		fatal(t, client.QueryRowContext(t.Context(), `SELECT (SELECT COUNT(*) FROM pg_stat_activity
			WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()),
			(SELECT deadlocks FROM pg_stat_database WHERE datname = current_database())`).Scan(&others, &deadlocks))
		switch {
		case others == 0 && deadlocks > 0:
			t.Errorf("%d transactions ended in a deadlock, want none", deadlocks)
			return
		case others == 0:
			return
		case time.Now().After(deadline):
			t.Fatalf("%d connections remain after the store was closed", others)
		}
	}
}

// At a session's limit of secrets, each new one deletes the oldest. Concurrent requests must not delete them in
// different orders.
func TestAddSessionSecret_ConcurrentlyAtTheLimit(t *testing.T) {
	where := dbtest.Postgres(t)
	s, client := dbtest.OpenAt(t, where), enginetest.Connect(t, where)
	client.SetMaxOpenConns(1)
	now := time.Now()
	dbtest.AddAccount(t, s, "ada")
	_, err := client.ExecContext(t.Context(),
		`INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at)
		VALUES ('l', 'ada', 't', '', '', '', '', $1)`, now.UnixMilli())
	fatal(t, err)
	owner := sessions.Owner{AccountID: "ada", LinkID: "l"}
	_, _, _, err = sessions.NewStore(s).MintSession(t.Context(), sessions.Mint{Now: now, New: sessions.Session{ID: "s",
		Owner:   owner,
		Project: "app", Platform: "ios", DeviceModel: "g1", CreatedAt: now, LastActive: now, ExpiresAt: now.Add(time.Hour)}})
	fatal(t, err)
	_, err = client.ExecContext(t.Context(), `INSERT INTO session_secrets (session_id, hash, created_at)
		SELECT 's', md5(CAST(i AS TEXT)), i FROM generate_series(1, $1) AS i`, sessions.MaxSecrets+200)
	fatal(t, err)
	var adding sync.WaitGroup
	for i := range 16 {
		adding.Go(func() {
			for j := range 10 {
				if err := sessions.NewStore(s).AddSessionSecret(t.Context(), "s", fmt.Sprintf("%d-%d", i, j), now); err != nil {
					t.Errorf("add secret: %v", err)
				}
			}
		})
	}
	adding.Wait()
	var kept int
	fatal(t, client.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM session_secrets`).Scan(&kept))
	if kept != sessions.MaxSecrets {
		t.Errorf("the session has %d secrets, want %d", kept, sessions.MaxSecrets)
	}
	wantNoDeadlocks(t, s, client)
}

// Model calls, app events, sweeps, and the merging and deletion of projects lock the same rows, in the same order.
func TestMergeProjects_DuringCalls(t *testing.T) {
	where := dbtest.Postgres(t)
	client := enginetest.Connect(t, where)
	client.SetMaxOpenConns(1)
	s := dbtest.OpenAt(t, where+"&deadlock_timeout=2") // milliseconds; less than any call waits for a lock
	_, err := client.ExecContext(t.Context(), `SELECT pg_stat_reset()`)
	fatal(t, err)
	const into = "com.example.one"
	dbtest.AddAccount(t, s, "ada")
	dbtest.AddProject(t, s, "ada", into)
	o := credit.Options{Store: credit.NewStore(s), Hasher: hash, Free: 2 * credit.USD, Now: time.Now}
	ledgers := []*credit.Ledger{credit.New(o), credit.New(o)}
	o.Now = func() time.Time { return time.Now().Add(2 * credit.Lease) }
	late := credit.New(o)
	_, err = ledgers[0].Grant(t.Context(), "ada", 100*credit.USD, "INV-1", "", audit.Operator())
	fatal(t, err)
	counts := analytics.New(analytics.Options{Store: analytics.NewStore(s), Hasher: hash, Quota: 1_000_000, Now: time.Now})
	for round := range 60 {
		from := fmt.Sprintf("com.example.p%d", round)
		dbtest.AddProject(t, s, "ada", from)
		var work sync.WaitGroup
		start := make(chan struct{})
		for i := range 4 {
			work.Go(func() {
				<-start
				for range 5 {
					settled := answered("small")
					settled.Account, settled.Project = "ada", from
					h, err := ledgers[i%2].Hold(t.Context(), credit.HoldRequest{Account: "ada", Project: from, Amount: 1000})
					if err != nil {
						t.Errorf("hold: %v", err)
						return
					}
					if _, err := ledgers[i%2].Settle(t.Context(), h.ID, 10, settled); err != nil {
						t.Errorf("settle: %v", err)
					}
					refused := settled
					refused.Outcome = "rate_limited"
					if err := ledgers[i%2].Record(t.Context(), refused); err != nil {
						t.Errorf("record: %v", err)
					}
				}
			})
		}
		for i := range 2 {
			work.Go(func() {
				<-start
				for j, project := range []string{from, into, from} {
					_, err := counts.Ingest(t.Context(), "ada", project, []analytics.Event{{ID: fmt.Sprint(round, i, j),
						Type: "app_open", At: time.Now(), InstallID: fmt.Sprint(i), AppVersion: "1", Platform: "ios"}})
					if err != nil && !errors.Is(err, analytics.ErrNoProject) {
						t.Errorf("ingest: %v", err)
					}
				}
			})
		}
		work.Go(func() {
			<-start
			if err := late.Sweep(t.Context()); err != nil {
				t.Errorf("sweep: %v", err)
			}
		})
		work.Go(func() {
			<-start
			e := audit.New(time.Now(), "ada", audit.Person(), "project.merged", into, from)
			var err error
			if round%3 == 2 {
				_, err = projects.NewStore(s).DeleteProject(t.Context(), "ada", from, e)
			} else {
				err = projects.NewStore(s).MergeProjects(t.Context(), "ada", from, into, e)
			}
			if err != nil {
				t.Errorf("end project: %v", err)
			}
		})
		close(start)
		work.Wait()
	}
	if r, err := ledgers[0].Check(t.Context()); err != nil || len(r.Differences) > 0 {
		t.Errorf("the ledger has the differences %v (error %v), want none", r.Differences, err)
	}
	wantNoDeadlocks(t, s, client)
}
