package passkey

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
)

// Store stores passkeys. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// PasskeyHolder returns ErrUnknown for an unknown account.
func (s *Store) PasskeyHolder(ctx context.Context, accountID string) (Holder, error) {
	h, err := db.One(ctx, s, ErrUnknown, func(row db.Row) (Holder, error) {
		h := Holder{ID: accountID}
		err := row.Scan(&h.Email, &h.Active)
		return h, err
	}, "SELECT email, state = 'active' FROM accounts WHERE id = $1", accountID)
	if err != nil {
		return Holder{}, err
	}
	h.Passkeys, err = db.All(ctx, s, func(row db.Row) (Stored, error) {
		p := Stored{AccountID: accountID}
		err := row.Scan(&p.ID, &p.Name, &p.Host, &p.CredentialID, &p.Credential, &p.SignCount, db.IntoTime(&p.CreatedAt),
			db.IntoTime(&p.UsedAt))
		return p, err
	}, `SELECT id, name, host, credential_id, credential, sign_count, created_at, used_at FROM passkeys
		WHERE account_id = $1 ORDER BY created_at, id`, accountID)
	return h, err
}

// ceremonyRetention is how long the count of an expired ceremony is kept. A process whose clock is behind still accepts
// responses to the ceremony, and must be able to see that it is finished.
const ceremonyRetention = time.Hour

// TryCeremony counts a response to a ceremony, across all processes. It returns false if the ceremony is finished
// or already had most responses. The store may delete the count after until.
func (s *Store) TryCeremony(
	ctx context.Context, challenge string, until, now time.Time, limit int,
) (ok bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		err := db.Exec(ctx, tx, "delete old ceremonies",
			"DELETE FROM passkey_ceremonies WHERE until <= $1", db.ToMS(now.Add(-ceremonyRetention)))
		if err != nil {
			return err
		}
		ok, err = db.Changed(ctx, tx, "count answer", `INSERT INTO passkey_ceremonies (challenge, until, tries, done)
			VALUES ($1, $2, 1, 0)
			ON CONFLICT (challenge) DO UPDATE SET tries = passkey_ceremonies.tries + 1
			WHERE passkey_ceremonies.done = 0 AND passkey_ceremonies.tries < $3`, challenge, db.ToMS(until), limit)
		return err
	})
	return ok, err
}

// endCeremony returns ErrInvalid for a ceremony that is finished or had no response.
func endCeremony(ctx context.Context, tx *sql.Tx, challenge string) error {
	return db.MustChange(ctx, tx, ErrInvalid, "end ceremony",
		"UPDATE passkey_ceremonies SET done = 1 WHERE challenge = $1 AND done = 0", challenge)
}

// InsertPasskey finishes the ceremony and stores its passkey. It returns ErrTooMany if the account already has
// limit passkeys, and ErrInvalid for a known credential or a finished ceremony.
func (s *Store) InsertPasskey(
	ctx context.Context, p Stored, limit int, challenge string, e audit.Entry,
) error {
	err := audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		if err := endCeremony(ctx, tx, challenge); err != nil {
			return err
		}
		found, err := db.LockAccount(ctx, tx, p.AccountID)
		if err := db.Require(found, err, ErrUnknown); err != nil {
			return err
		}
		return db.MustChange(ctx, tx, ErrTooMany, "insert passkey", `INSERT INTO passkeys
				(id, account_id, credential_id, name, credential, sign_count, created_at, host)
			SELECT $1, id, $2, $3, $4, $5, $6, $9 FROM accounts WHERE id = $7 AND state = 'active'
				AND (SELECT COUNT(*) FROM passkeys WHERE account_id = $7) < $8`,
			p.ID, p.CredentialID, p.Name, string(p.Credential), int64(p.SignCount), db.ToMS(p.CreatedAt),
			p.AccountID, limit, p.Host)
	})
	if db.IsDuplicate(err) {
		return ErrInvalid
	}
	return err
}

// UsePasskey finishes a ceremony and stores the passkey's new state in one transaction. It returns false if the
// stored counter no longer equals was, and ErrInvalid if the ceremony is finished.
func (s *Store) UsePasskey(
	ctx context.Context, p Stored, was uint32, challenge string,
) (used bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		if err := endCeremony(ctx, tx, challenge); err != nil {
			return err
		}
		used, err = db.Changed(ctx, tx, "update passkey", `UPDATE passkeys SET credential = $1, sign_count = $2, used_at = $3
			WHERE id = $4 AND account_id = $5 AND sign_count = $6`,
			string(p.Credential), int64(p.SignCount), db.TimeOrNull(p.UsedAt), p.ID, p.AccountID, int64(was))
		return err
	})
	return used, err
}

// DeletePasskey returns ErrUnknown if the account has no such passkey, or ErrLastWayIn if no other way
// to sign in is left.
func (s *Store) DeletePasskey(ctx context.Context, id string, e audit.Entry) error {
	err := account.DeleteWayIn(ctx, s.DB, e, ErrLastWayIn, func(tx *sql.Tx) error {
		return db.MustChange(ctx, tx, ErrUnknown, "delete passkey",
			"DELETE FROM passkeys WHERE id = $1 AND account_id = $2", id, e.AccountID)
	})
	if errors.Is(err, account.ErrNotFound) {
		return ErrUnknown
	}
	return err
}
