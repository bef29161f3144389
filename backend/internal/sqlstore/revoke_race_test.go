package sqlstore_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/sqlstore"
	"github.com/service-dev/service/test/enginetest"
)

// A code that is redeemed while all links are being revoked leaves no link behind, because the second transaction sees
// the changes of the first.
func TestRevokeLinks_IncludesConcurrentRedemption(t *testing.T) {
	now := time.Now()
	token := account.MailToken{Hash: "m", AccountID: "ada", Purpose: "reset", Email: "ada@example.com", CreatedAt: now,
		ExpiresAt: now.Add(time.Hour)}
	for name, revoke := range map[string]func(s *sqlstore.Store) error{
		"revoke all": func(s *sqlstore.Store) error {
			_, err := s.RevokeLinks(t.Context(), "", now, audit.New(now, "ada", audit.Person(), "link.revoked", "",
				"revoked all links"), audit.Trace{})
			return err
		},
		"reset": func(s *sqlstore.Store) error {
			return s.ResetPassword(t.Context(), token, "hash", account.Access{Links: true}, now,
				audit.New(now, "ada", audit.Person(), "account.password_changed", "", "set a new password"), audit.Trace{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			where := onPostgres(t)
			s, db := openStore(t, where), enginetest.Connect(t, where)
			defer s.Close()
			defer db.Close()
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			ok(s.InsertAccount(t.Context(), account.Account{ID: "ada", Email: "ada@example.com", Active: true, CreatedAt: now,
				VerifiedAt: now}))
			ok(s.InsertMailToken(t.Context(), token, now.Add(-time.Hour), 0))
			ok(s.InsertCode(t.Context(), link.Code{DeviceHash: "d", UserHash: "u", State: link.Pending, CreatedAt: now,
				ExpiresAt: now.Add(time.Hour)}, audit.Trace{}))
			if moved, err := s.Decide(t.Context(), "u", link.Approved, "ada", now, audit.Trace{}); err != nil || !moved {
				t.Fatalf("approve: got %v (error %v), want true", moved, err)
			}
			revoked := make(chan error, 1)
			// The redeeming transaction pauses after its first statement until the other transaction waits for it.
			ok(sqlstore.Write(s, t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(),
					`UPDATE device_codes SET state = 'redeemed' WHERE device_hash = 'd' AND state = 'approved'`)
				go func() { revoked <- revoke(s) }()
				waitForLock(t, db)
				_, inserted := tx.ExecContext(t.Context(), `INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at)
					VALUES ('l', 'ada', 't', '', '', '', '', $1)`, now.UnixMilli())
				return errors.Join(err, inserted)
			}))
			ok(<-revoked)
			l, err := s.LinkByToken(t.Context(), "t")
			if err != nil || l.RevokedAt.IsZero() {
				t.Errorf("read the link: got error %v, want it revoked like all others", err)
			}
		})
	}
}

// waitForLock returns once a transaction is waiting for another.
func waitForLock(t *testing.T, db *sql.DB) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		waiting := 0
		err := db.QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		if waiting > 0 {
			return
		}
	}
	t.Fatal("no transaction is waiting for a lock")
}
