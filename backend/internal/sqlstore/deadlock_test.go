package sqlstore_test

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/backend/internal/sqlstore"
	"github.com/service-dev/service/packaging/enginetest"
)

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantNoDeadlocks closes the store and reports whether PostgreSQL ever ended one of its transactions as a deadlock. A
// connection adds to the statistics no later than at its end.
func wantNoDeadlocks(t *testing.T, s *sqlstore.Store, db *sql.DB) {
	t.Helper()
	must(t, s.Close())
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var others, deadlocks int
		must(t, db.QueryRowContext(t.Context(), `SELECT (SELECT COUNT(*) FROM pg_stat_activity
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
	where := onPostgres(t)
	s, db := openStore(t, where), enginetest.Connect(t, where)
	db.SetMaxOpenConns(1)
	now := time.Now()
	must(t, s.InsertAccount(t.Context(), someone("ada")))
	_, err := db.ExecContext(t.Context(), `INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at)
		VALUES ('l', 'ada', 't', '', '', '', '', $1)`, now.UnixMilli())
	must(t, err)
	owner := sessions.Owner{AccountID: "ada", LinkID: "l"}
	_, _, _, err = s.MintSession(t.Context(), sessions.Mint{Now: now, New: sessions.Session{ID: "s", Owner: owner,
		Project: "app", Platform: "ios", DeviceModel: "g1", CreatedAt: now, LastActive: now, ExpiresAt: now.Add(time.Hour)}})
	must(t, err)
	_, err = db.ExecContext(t.Context(), `INSERT INTO session_secrets (session_id, hash, created_at)
		SELECT 's', md5(CAST(i AS TEXT)), i FROM generate_series(1, $1) AS i`, sessions.MaxSecrets+200)
	must(t, err)
	var adding sync.WaitGroup
	for i := range 16 {
		adding.Go(func() {
			for j := range 10 {
				if err := s.AddSessionSecret(t.Context(), "s", fmt.Sprintf("%d-%d", i, j), now); err != nil {
					t.Errorf("add secret: %v", err)
				}
			}
		})
	}
	adding.Wait()
	var kept int
	must(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM session_secrets`).Scan(&kept))
	if kept != sessions.MaxSecrets {
		t.Errorf("the session has %d secrets, want %d", kept, sessions.MaxSecrets)
	}
	wantNoDeadlocks(t, s, db)
}
