package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/passkey"
)

// PasskeyHolder answers passkey.ErrUnknown.
func (s *Store) PasskeyHolder(ctx context.Context, accountID string) (passkey.Holder, error) {
	h := passkey.Holder{ID: accountID}
	var state string
	err := s.reads.QueryRowContext(ctx, "SELECT email, state FROM accounts WHERE id = $1", accountID).Scan(&h.Email, &state)
	if err != nil {
		return passkey.Holder{}, missing(err, passkey.ErrUnknown)
	}
	h.Active = state == "active"
	rows, err := s.reads.QueryContext(ctx, `SELECT id, name, credential_id, credential, sign_count, created_at, used_at FROM passkeys
		WHERE account_id = $1 ORDER BY created_at, id`, accountID)
	if err != nil {
		return passkey.Holder{}, err
	}
	defer rows.Close()
	for rows.Next() {
		p := passkey.Stored{AccountID: accountID}
		var credential string
		var created int64
		var used sql.NullInt64
		if err := rows.Scan(&p.ID, &p.Name, &p.CredentialID, &credential, &p.SignCount, &created, &used); err != nil {
			return passkey.Holder{}, err
		}
		p.Credential, p.CreatedAt, p.UsedAt = []byte(credential), fromMS(created), fromNull(used)
		h.Passkeys = append(h.Passkeys, p)
	}
	return h, rows.Err()
}

// ceremonyKept is how long a ceremony outlives its end: a process whose clock is behind still takes answers to it, and must
// know that it is done.
const ceremonyKept = time.Hour

// TryCeremony counts an answer to a passkey ceremony; false when it is done or had most answers. Ceremonies that are long
// overdue go.
func (s *Store) TryCeremony(ctx context.Context, challenge string, until, now time.Time, most int) (ok bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM passkey_ceremonies WHERE until <= $1", toMS(now.Add(-ceremonyKept))); err != nil {
			return err
		}
		ok, err = changed(ctx, tx, `INSERT INTO passkey_ceremonies (challenge, until, tries, done) VALUES ($1, $2, 1, 0)
			ON CONFLICT (challenge) DO UPDATE SET tries = passkey_ceremonies.tries + 1
			WHERE passkey_ceremonies.done = 0 AND passkey_ceremonies.tries < $3`, challenge, toMS(until), most)
		return err
	})
	return ok, err
}

// endCeremony answers passkey.ErrInvalid for a ceremony that is done, or that nobody answered.
func endCeremony(ctx context.Context, tx *sql.Tx, challenge string) error {
	ended, err := changed(ctx, tx, "UPDATE passkey_ceremonies SET done = 1 WHERE challenge = $1 AND done = 0", challenge)
	if err == nil && !ended {
		return passkey.ErrInvalid
	}
	return err
}

// InsertPasskey ends the ceremony and answers passkey.ErrTooMany, and passkey.ErrInvalid for a credential that is known or
// a ceremony that is done.
func (s *Store) InsertPasskey(ctx context.Context, p passkey.Stored, most int, challenge string, e audit.Entry) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if err := endCeremony(ctx, tx, challenge); err != nil {
			return err
		}
		if err := holdAccount(ctx, tx, p.AccountID); err != nil {
			return err
		}
		made, err := changed(ctx, tx, `INSERT INTO passkeys (id, account_id, credential_id, name, credential, sign_count, created_at)
			SELECT $1, id, $2, $3, $4, $5, $6 FROM accounts WHERE id = $7 AND state = 'active' AND (SELECT COUNT(*) FROM passkeys WHERE account_id = $7) < $8`,
			p.ID, p.CredentialID, p.Name, string(p.Credential), int64(p.SignCount), toMS(p.CreatedAt), p.AccountID, most)
		if err != nil {
			return err
		}
		if !made {
			return passkey.ErrTooMany
		}
		return insertAudit(ctx, tx, e)
	})
	switch {
	case duplicate(err):
		return passkey.ErrInvalid
	case errors.Is(err, account.ErrNotFound):
		return passkey.ErrUnknown
	}
	return err
}

// UsePasskey ends the ceremony and stores what the sign-in changed; false when the counter is no longer was.
// passkey.ErrInvalid: the ceremony is done.
func (s *Store) UsePasskey(ctx context.Context, p passkey.Stored, was uint32, challenge string) (bool, error) {
	var fresh bool
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		if err := endCeremony(ctx, tx, challenge); err != nil {
			return err
		}
		fresh, err = changed(ctx, tx, "UPDATE passkeys SET credential = $1, sign_count = $2, used_at = $3 WHERE id = $4 AND account_id = $5 AND sign_count = $6",
			string(p.Credential), int64(p.SignCount), orNull(p.UsedAt), p.ID, p.AccountID, int64(was))
		return err
	})
	return fresh, err
}

// DeletePasskey answers passkey.ErrUnknown and passkey.ErrLastWayIn.
func (s *Store) DeletePasskey(ctx context.Context, id string, e audit.Entry) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if err := holdAccount(ctx, tx, e.AccountID); err != nil {
			return err
		}
		gone, err := changed(ctx, tx, "DELETE FROM passkeys WHERE id = $1 AND account_id = $2", id, e.AccountID)
		if err != nil {
			return err
		}
		if !gone {
			return passkey.ErrUnknown
		}
		if left, err := waysIn(ctx, tx, e.AccountID); err != nil || left == 0 {
			return orErr(err, passkey.ErrLastWayIn)
		}
		return insertAudit(ctx, tx, e)
	})
	if errors.Is(err, account.ErrNotFound) {
		return passkey.ErrUnknown
	}
	return err
}
