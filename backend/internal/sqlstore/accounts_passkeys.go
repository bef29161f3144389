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

// PasskeyHolder returns passkey.ErrUnknown for an unknown account.
func (s *Store) PasskeyHolder(ctx context.Context, accountID string) (passkey.Holder, error) {
	h, err := queryOne(ctx, s.reads, passkey.ErrUnknown, func(row scanner) (passkey.Holder, error) {
		h := passkey.Holder{ID: accountID}
		err := row.Scan(&h.Email, &h.Active)
		return h, err
	}, "SELECT email, state = 'active' FROM accounts WHERE id = $1", accountID)
	if err != nil {
		return passkey.Holder{}, err
	}
	h.Passkeys, err = queryAll(ctx, s.reads, func(row scanner) (passkey.Stored, error) {
		p := passkey.Stored{AccountID: accountID}
		err := row.Scan(&p.ID, &p.Name, &p.Host, &p.CredentialID, &p.Credential, &p.SignCount, intoTime(&p.CreatedAt),
			intoTime(&p.UsedAt))
		return p, err
	}, `SELECT id, name, host, credential_id, credential, sign_count, created_at, used_at FROM passkeys
		WHERE account_id = $1 ORDER BY created_at, id`, accountID)
	return h, err
}

// ceremonyRetention is how long an expired ceremony is kept: a process whose clock is behind still accepts responses to
// it, and needs to find out that it is finished.
const ceremonyRetention = time.Hour

// TryCeremony counts a response to a passkey ceremony. It returns false if the ceremony is finished or already had
// limit responses. It also deletes old ceremonies.
func (s *Store) TryCeremony(
	ctx context.Context, challenge string, until, now time.Time, limit int,
) (ok bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		err := execTx(ctx, tx, "delete old ceremonies",
			"DELETE FROM passkey_ceremonies WHERE until <= $1", toMS(now.Add(-ceremonyRetention)))
		if err != nil {
			return err
		}
		ok, err = changed(ctx, tx, "count answer", `INSERT INTO passkey_ceremonies (challenge, until, tries, done)
			VALUES ($1, $2, 1, 0)
			ON CONFLICT (challenge) DO UPDATE SET tries = passkey_ceremonies.tries + 1
			WHERE passkey_ceremonies.done = 0 AND passkey_ceremonies.tries < $3`, challenge, toMS(until), limit)
		return err
	})
	return ok, err
}

// endCeremony returns passkey.ErrInvalid for a ceremony that is finished or had no response.
func endCeremony(ctx context.Context, tx *sql.Tx, challenge string) error {
	return mustChange(ctx, tx, passkey.ErrInvalid, "end ceremony",
		"UPDATE passkey_ceremonies SET done = 1 WHERE challenge = $1 AND done = 0", challenge)
}

// InsertPasskey finishes the ceremony and stores its passkey. It returns passkey.ErrTooMany if the account already has
// limit passkeys, and passkey.ErrInvalid for a known credential or a finished ceremony.
func (s *Store) InsertPasskey(
	ctx context.Context, p passkey.Stored, limit int, challenge string, e audit.Entry,
) error {
	err := s.writeAudited(ctx, e, func(tx *sql.Tx) error {
		if err := endCeremony(ctx, tx, challenge); err != nil {
			return err
		}
		if err := lockAccount(ctx, tx, p.AccountID); err != nil {
			return err
		}
		return mustChange(ctx, tx, passkey.ErrTooMany, "insert passkey", `INSERT INTO passkeys
				(id, account_id, credential_id, name, credential, sign_count, created_at, host)
			SELECT $1, id, $2, $3, $4, $5, $6, $9 FROM accounts WHERE id = $7 AND state = 'active'
				AND (SELECT COUNT(*) FROM passkeys WHERE account_id = $7) < $8`,
			p.ID, p.CredentialID, p.Name, string(p.Credential), int64(p.SignCount), toMS(p.CreatedAt),
			p.AccountID, limit, p.Host)
	})
	if isDuplicate(err) {
		return passkey.ErrInvalid
	}
	return unknownHolder(err)
}

// unknownHolder replaces account.ErrNotFound with passkey.ErrUnknown.
func unknownHolder(err error) error {
	if errors.Is(err, account.ErrNotFound) {
		return passkey.ErrUnknown
	}
	return err
}

// UsePasskey finishes the ceremony and stores the changes made by the sign-in. It returns false if the stored counter
// no longer equals was, and passkey.ErrInvalid if the ceremony is finished.
func (s *Store) UsePasskey(
	ctx context.Context, p passkey.Stored, was uint32, challenge string,
) (used bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if err := endCeremony(ctx, tx, challenge); err != nil {
			return err
		}
		used, err = changed(ctx, tx, "update passkey", `UPDATE passkeys SET credential = $1, sign_count = $2, used_at = $3
			WHERE id = $4 AND account_id = $5 AND sign_count = $6`,
			string(p.Credential), int64(p.SignCount), orNull(p.UsedAt), p.ID, p.AccountID, int64(was))
		return err
	})
	return used, err
}

// DeletePasskey returns passkey.ErrUnknown if the account has no such passkey, or passkey.ErrLastWayIn if no other way
// to sign in is left.
func (s *Store) DeletePasskey(ctx context.Context, id string, e audit.Entry) error {
	return unknownHolder(s.deleteWayIn(ctx, e, passkey.ErrLastWayIn, func(tx *sql.Tx) error {
		return mustChange(ctx, tx, passkey.ErrUnknown, "delete passkey",
			"DELETE FROM passkeys WHERE id = $1 AND account_id = $2", id, e.AccountID)
	}))
}
