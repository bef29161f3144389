package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/projects"
)

// selectCredentials includes the host of the requesting agent as long as its link exists. It accepts an envelope that
// is bound to another project only after a merge: otherwise the row was moved by hand and must not be decrypted.
const selectCredentials = `SELECT c.account_id, c.app_id, c.provider,
		CASE WHEN EXISTS (SELECT 1 FROM project_aliases a
				WHERE a.account_id = c.account_id AND a.alias = c.sealed_for AND a.app_id = c.app_id)
			THEN c.sealed_for ELSE c.app_id END, c.sealed, c.wrapped, c.key_id, c.hint, c.set_at,
		c.requested_by, l.host, c.tested_at, c.test_result
	FROM credentials c LEFT JOIN links l ON l.id = c.requested_by AND l.account_id = c.account_id `

func scanCredential(row scanner) (c credentials.Stored, err error) {
	err = row.Scan(&c.AccountID, &c.Project, &c.Provider, &c.SealedFor, &c.Sealed, &c.Wrapped, &c.KeyID, &c.Hint,
		intoTime(&c.SetAt), &c.RequestedBy, intoText(&c.AskedOn), intoTime(&c.TestedAt), &c.TestResult)
	return c, err
}

// Credentials lists a project's credentials.
func (s *Store) Credentials(ctx context.Context, account, project string) ([]credentials.Stored, error) {
	return queryAll(ctx, s.reads, scanCredential,
		selectCredentials+"WHERE c.account_id = $1 AND c.app_id = $2 ORDER BY c.provider", account, project)
}

// Credential returns credentials.ErrNotSet if the credential is not set.
func (s *Store) Credential(ctx context.Context, account, project, provider string) (credentials.Stored, error) {
	return queryOne(ctx, s.reads, credentials.ErrNotSet, scanCredential,
		selectCredentials+"WHERE c.account_id = $1 AND c.app_id = $2 AND c.provider = $3", account, project, provider)
}

// PutCredential inserts or replaces a credential. If linkHash is not empty, it also deletes that link, or returns
// credentials.ErrUnknownLink.
func (s *Store) PutCredential(ctx context.Context, c credentials.Stored, linkHash string, e audit.Entry) error {
	return s.writeAudited(ctx, e, func(tx *sql.Tx) (err error) {
		requestedBy := c.RequestedBy
		if linkHash != "" {
			requestedBy, err = queryValue[string](ctx, tx, `DELETE FROM credential_links WHERE hash = $1
				AND account_id = $2 AND app_id = $3 AND provider = $4 AND expires_at > $5 RETURNING requested_by`,
				linkHash, c.AccountID, c.Project, c.Provider, toMS(c.SetAt))
			if err != nil {
				return replaceNoRows(err, credentials.ErrUnknownLink)
			}
		}
		return execTx(ctx, tx, "save credential", `INSERT INTO credentials (account_id, app_id, provider, sealed_for, sealed,
				wrapped, key_id, hint, set_at, requested_by, tested_at, test_result)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '')
			ON CONFLICT (account_id, app_id, provider) DO UPDATE SET sealed_for = $4, sealed = $5, wrapped = $6,
				key_id = $7, hint = $8, set_at = $9, requested_by = $10, tested_at = NULL, test_result = ''`,
			c.AccountID, c.Project, c.Provider, c.SealedFor, c.Sealed, c.Wrapped, c.KeyID, c.Hint, toMS(c.SetAt), requestedBy)
	})
}

// DeleteCredential returns credentials.ErrNotSet if the credential is not set.
func (s *Store) DeleteCredential(ctx context.Context, account, project, provider string, e audit.Entry) error {
	return s.writeAudited(ctx, e, func(tx *sql.Tx) error {
		return mustChange(ctx, tx, credentials.ErrNotSet, "delete credential",
			"DELETE FROM credentials WHERE account_id = $1 AND app_id = $2 AND provider = $3", account, project, provider)
	})
}

// MarkTested stores the result of a test, unless the tested credential has been replaced.
func (s *Store) MarkTested(ctx context.Context, c credentials.Stored, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		same, err := changed(ctx, tx, "save test result", `UPDATE credentials SET tested_at = $1, test_result = $2
			WHERE account_id = $3 AND app_id = $4 AND provider = $5 AND sealed = $6`,
			orNull(c.TestedAt), c.TestResult, c.AccountID, c.Project, c.Provider, c.Sealed)
		if err != nil || !same {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// AddCredentialLink inserts a link and deletes all others of the project except the keep-1 newest.
func (s *Store) AddCredentialLink(ctx context.Context, l credentials.StoredLink, keep int, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockProject(ctx, tx, projects.ErrNotFound, l.AccountID, l.Project); err != nil {
			return err
		}
		return execAll(ctx, tx, "insert credential link",
			stmt("DELETE FROM credential_links WHERE expires_at <= $1", toMS(l.CreatedAt)),
			stmt(`DELETE FROM credential_links WHERE account_id = $1 AND app_id = $2 AND hash NOT IN
				(SELECT hash FROM credential_links WHERE account_id = $1 AND app_id = $2
					ORDER BY created_at DESC, hash LIMIT $3)`, l.AccountID, l.Project, keep-1),
			stmt(`INSERT INTO credential_links (hash, account_id, app_id, provider, requested_by, created_at, expires_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7)`,
				l.Hash, l.AccountID, l.Project, l.Provider, l.RequestedBy, toMS(l.CreatedAt), toMS(l.ExpiresAt)),
			auditStatement(e))
	})
}

// CredentialLink returns credentials.ErrUnknownLink for an unknown or expired link.
func (s *Store) CredentialLink(ctx context.Context, hash string, now time.Time) (credentials.StoredLink, error) {
	return queryOne(ctx, s.reads, credentials.ErrUnknownLink, func(row scanner) (credentials.StoredLink, error) {
		l := credentials.StoredLink{Hash: hash}
		err := row.Scan(&l.AccountID, &l.Project, &l.Provider, &l.RequestedBy, intoText(&l.AskedOn),
			intoTime(&l.CreatedAt), intoTime(&l.ExpiresAt))
		return l, err
	}, `SELECT c.account_id, c.app_id, c.provider, c.requested_by, l.host, c.created_at, c.expires_at
		FROM credential_links c LEFT JOIN links l ON l.id = c.requested_by AND l.account_id = c.account_id
		WHERE c.hash = $1 AND c.expires_at > $2`, hash, toMS(now))
}

// CredentialsUnder lists up to limit credentials whose data key is wrapped with the given key. It sorts them by
// account, project and provider, and starts after the position of after.
func (s *Store) CredentialsUnder(
	ctx context.Context, keyID string, after credentials.Stored, limit int,
) ([]credentials.Stored, error) {
	return queryAll(ctx, s.reads, scanCredential, selectCredentials+`WHERE c.key_id = $1
		AND (c.account_id, c.app_id, c.provider) > ($2, $3, $4) ORDER BY c.account_id, c.app_id, c.provider LIMIT $5`,
		keyID, after.AccountID, after.Project, after.Provider, limit)
}

// Rewrap replaces the wrapped data key if it has not changed since it was read, and reports whether it did so.
func (s *Store) Rewrap(ctx context.Context, c credentials.Stored, wrapped string) (done bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		done, err = changed(ctx, tx, "rewrap credential", `UPDATE credentials SET wrapped = $1, key_id = $2
			WHERE account_id = $3 AND app_id = $4 AND provider = $5 AND wrapped = $6`,
			c.Wrapped, c.KeyID, c.AccountID, c.Project, c.Provider, wrapped)
		return err
	})
	return done, err
}

// CredentialKeys counts credentials by the ID of their key.
func (s *Store) CredentialKeys(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	err := queryEach(ctx, s.reads, func(row scanner) error {
		var id string
		var n int
		err := row.Scan(&id, &n)
		counts[id] = n
		return err
	}, "SELECT key_id, COUNT(*) FROM credentials GROUP BY key_id")
	if err != nil {
		return nil, err
	}
	return counts, nil
}
