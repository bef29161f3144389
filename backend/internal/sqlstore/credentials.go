package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
)

// selectCredentials looks up the host of the agent that asked, as long as its link is known. An envelope that is bound
// to another project counts as that one's only after a merge: else the row was moved by hand, and must not open.
const selectCredentials = `SELECT c.account_id, c.app_id, c.provider,
		CASE WHEN EXISTS (SELECT 1 FROM project_aliases a WHERE a.account_id = c.account_id AND a.alias = c.sealed_for AND a.app_id = c.app_id)
			THEN c.sealed_for ELSE c.app_id END, c.sealed, c.wrapped, c.key_id, c.hint, c.set_at,
		c.requested_by, l.host, c.tested_at, c.test_result
	FROM credentials c LEFT JOIN links l ON l.id = c.requested_by AND l.account_id = c.account_id `

func scanCredential(row interface{ Scan(into ...any) error }) (credentials.Stored, error) {
	var c credentials.Stored
	var setAt int64
	var host sql.NullString
	var tested sql.NullInt64
	err := row.Scan(&c.AccountID, &c.Project, &c.Provider, &c.SealedFor, &c.Sealed, &c.Wrapped, &c.KeyID, &c.Hint, &setAt,
		&c.RequestedBy, &host, &tested, &c.TestResult)
	c.SetAt, c.AskedOn, c.TestedAt = fromMS(setAt), host.String, fromNull(tested)
	return c, err
}

func (s *Store) listCredentials(ctx context.Context, rest string, args ...any) ([]credentials.Stored, error) {
	rows, err := s.reads.QueryContext(ctx, selectCredentials+rest, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []credentials.Stored
	for rows.Next() {
		c, err := scanCredential(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// Credentials lists a project's.
func (s *Store) Credentials(ctx context.Context, account, project string) ([]credentials.Stored, error) {
	return s.listCredentials(ctx, "WHERE c.account_id = $1 AND c.app_id = $2 ORDER BY c.provider", account, project)
}

// Credential answers credentials.ErrNotSet.
func (s *Store) Credential(ctx context.Context, account, project, provider string) (credentials.Stored, error) {
	c, err := scanCredential(s.reads.QueryRowContext(ctx, selectCredentials+"WHERE c.account_id = $1 AND c.app_id = $2 AND c.provider = $3",
		account, project, provider))
	return c, missing(err, credentials.ErrNotSet)
}

// PutCredential sets or replaces one, and uses up the link that it came by, or answers credentials.ErrUnknownLink.
func (s *Store) PutCredential(ctx context.Context, c credentials.Stored, linkHash string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if linkHash != "" {
			err := tx.QueryRowContext(ctx, `DELETE FROM credential_links
				WHERE hash = $1 AND account_id = $2 AND app_id = $3 AND provider = $4 AND expires_at > $5 RETURNING requested_by`,
				linkHash, c.AccountID, c.Project, c.Provider, toMS(c.SetAt)).Scan(&c.RequestedBy)
			if err != nil {
				return missing(err, credentials.ErrUnknownLink)
			}
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO credentials (account_id, app_id, provider, sealed_for, sealed, wrapped, key_id, hint,
				set_at, requested_by, tested_at, test_result)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '')
			ON CONFLICT (account_id, app_id, provider) DO UPDATE SET sealed_for = $4, sealed = $5, wrapped = $6, key_id = $7, hint = $8,
				set_at = $9, requested_by = $10, tested_at = NULL, test_result = ''`,
			c.AccountID, c.Project, c.Provider, c.SealedFor, c.Sealed, c.Wrapped, c.KeyID, c.Hint, toMS(c.SetAt), c.RequestedBy)
		if err != nil {
			return fmt.Errorf("inserting credential: %w", err)
		}
		return insertAudit(ctx, tx, e)
	})
}

// DeleteCredential answers credentials.ErrNotSet.
func (s *Store) DeleteCredential(ctx context.Context, account, project, provider string, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		ok, err := changed(ctx, tx, "DELETE FROM credentials WHERE account_id = $1 AND app_id = $2 AND provider = $3", account, project, provider)
		if err != nil {
			return err
		}
		if !ok {
			return credentials.ErrNotSet
		}
		return insertAudit(ctx, tx, e)
	})
}

// MarkTested keeps a test's result of the very value that was tested.
func (s *Store) MarkTested(ctx context.Context, c credentials.Stored, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		ok, err := changed(ctx, tx, `UPDATE credentials SET tested_at = $1, test_result = $2
			WHERE account_id = $3 AND app_id = $4 AND provider = $5 AND sealed = $6`,
			orNull(c.TestedAt), c.TestResult, c.AccountID, c.Project, c.Provider, c.Sealed)
		if err != nil || !ok {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// AddCredentialLink stores a link, and of the project's others at most keep-1 that are live.
func (s *Store) AddCredentialLink(ctx context.Context, l credentials.StoredLink, keep int, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		// The no-op update locks the project's row: of many that ask at once each sees the links of those before.
		if _, err := tx.ExecContext(ctx, "UPDATE projects SET created_at = created_at WHERE account_id = $1 AND app_id = $2",
			l.AccountID, l.Project); err != nil {
			return fmt.Errorf("locking project: %w", err)
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM credential_links WHERE expires_at <= $1", toMS(l.CreatedAt)); err != nil {
			return fmt.Errorf("deleting old credential links: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM credential_links WHERE account_id = $1 AND app_id = $2 AND hash NOT IN
			(SELECT hash FROM credential_links WHERE account_id = $1 AND app_id = $2 ORDER BY created_at DESC, hash LIMIT $3)`,
			l.AccountID, l.Project, keep-1); err != nil {
			return fmt.Errorf("deleting old credential links: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO credential_links (hash, account_id, app_id, provider, requested_by, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			l.Hash, l.AccountID, l.Project, l.Provider, l.RequestedBy, toMS(l.CreatedAt), toMS(l.ExpiresAt)); err != nil {
			return fmt.Errorf("inserting credential link: %w", err)
		}
		return insertAudit(ctx, tx, e)
	})
}

// CredentialLink answers credentials.ErrUnknownLink unless it is live at now.
func (s *Store) CredentialLink(ctx context.Context, hash string, now time.Time) (credentials.StoredLink, error) {
	l := credentials.StoredLink{Hash: hash}
	var host sql.NullString
	var created, expires int64
	err := s.reads.QueryRowContext(ctx, `SELECT c.account_id, c.app_id, c.provider, c.requested_by, l.host, c.created_at, c.expires_at
		FROM credential_links c LEFT JOIN links l ON l.id = c.requested_by AND l.account_id = c.account_id
		WHERE c.hash = $1 AND c.expires_at > $2`, hash, toMS(now)).
		Scan(&l.AccountID, &l.Project, &l.Provider, &l.RequestedBy, &host, &created, &expires)
	l.AskedOn, l.CreatedAt, l.ExpiresAt = host.String, fromMS(created), fromMS(expires)
	return l, missing(err, credentials.ErrUnknownLink)
}

// CredentialsUnder lists up to limit credentials whose data key is under the key of an id, following after.
func (s *Store) CredentialsUnder(ctx context.Context, keyID string, after credentials.Stored, limit int) ([]credentials.Stored, error) {
	return s.listCredentials(ctx, `WHERE c.key_id = $1 AND (c.account_id, c.app_id, c.provider) > ($2, $3, $4)
		ORDER BY c.account_id, c.app_id, c.provider LIMIT $5`, keyID, after.AccountID, after.Project, after.Provider, limit)
}

// Rewrapped stores a new wrapping over the one that was read.
func (s *Store) Rewrapped(ctx context.Context, c credentials.Stored, wrapped string) (bool, error) {
	var done bool
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		done, err = changed(ctx, tx, `UPDATE credentials SET wrapped = $1, key_id = $2
			WHERE account_id = $3 AND app_id = $4 AND provider = $5 AND wrapped = $6`,
			c.Wrapped, c.KeyID, c.AccountID, c.Project, c.Provider, wrapped)
		return err
	})
	return done, err
}

// CredentialKeys counts credentials by the id of their key.
func (s *Store) CredentialKeys(ctx context.Context) (map[string]int, error) {
	rows, err := s.reads.QueryContext(ctx, "SELECT key_id, COUNT(*) FROM credentials GROUP BY key_id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		counts[id] = n
	}
	return counts, rows.Err()
}
