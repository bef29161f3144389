package storetest

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/test/enginetest"
)

// A code that is redeemed while all links are being revoked leaves no link behind, because the second transaction sees
// the changes of the first.
func TestRevokeLinks_IncludesConcurrentRedemption(t *testing.T) {
	now := time.Now()
	token := account.MailToken{Hash: "m", AccountID: "ada", Purpose: "reset", Email: "ada@example.com", CreatedAt: now,
		ExpiresAt: now.Add(time.Hour)}
	for name, revoke := range map[string]func(s *db.DB) error{
		"revoke all": func(s *db.DB) error {
			_, err := link.NewStore(s).RevokeLinks(t.Context(), "", now, audit.New(now, "ada", audit.Person(), "link.revoked",
				"",
				"revoked all links"), audit.Trace{})
			return err
		},
		"reset": func(s *db.DB) error {
			return account.NewStore(s).ResetPassword(t.Context(), token, "hash", account.Access{Links: true}, now,
				audit.New(now, "ada", audit.Person(), "account.password_changed", "", "set a new password"), audit.Trace{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			where := dbtest.Postgres(t)
			s, client := dbtest.OpenAt(t, where), enginetest.Connect(t, where)
			defer s.Close()
			defer client.Close()
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			ok(account.NewStore(s).InsertAccount(t.Context(), account.Account{ID: "ada", Email: "ada@example.com", Active: true,
				CreatedAt:  now,
				VerifiedAt: now}))
			ok(account.NewStore(s).InsertMailToken(t.Context(), token, now.Add(-time.Hour), 0))
			ok(link.NewStore(s).InsertCode(t.Context(), link.Code{DeviceHash: "d", UserHash: "u", State: link.Pending,
				CreatedAt: now,
				ExpiresAt: now.Add(time.Hour)}, audit.Trace{}))
			if moved, err := link.NewStore(s).Decide(t.Context(), "u", link.Approved, "ada", now,
				audit.Trace{}); err != nil || !moved {
				t.Fatalf("approve: got %v (error %v), want true", moved, err)
			}
			revoked := make(chan error, 1)
			// The redeeming transaction pauses after its first statement until the other transaction waits for it.
			ok(s.Write(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(),
					`UPDATE device_codes SET state = 'redeemed' WHERE device_hash = 'd' AND state = 'approved'`)
				go func() { revoked <- revoke(s) }()
				dbtest.AwaitLock(t, client)
				_, inserted := tx.ExecContext(t.Context(),
					`INSERT INTO links (id, account_id, token_hash, host, os, client, ip, linked_at)
					VALUES ('l', 'ada', 't', '', '', '', '', $1)`, now.UnixMilli())
				return errors.Join(err, inserted)
			}))
			ok(<-revoked)
			l, err := link.NewStore(s).LinkByToken(t.Context(), "t")
			if err != nil || l.RevokedAt.IsZero() {
				t.Errorf("read the link: got error %v, want it revoked like all others", err)
			}
		})
	}
}
