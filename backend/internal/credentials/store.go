package credentials

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
)

// Store stores credentials and the links for entering them. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// Stored is a stored credential.
type Stored struct {
	AccountID, Project, Provider string
	// SealedFor is the project for which the value was encrypted. It differs from Project if the credential moved to
	// Project in a merge.
	SealedFor              string
	Sealed, Wrapped, KeyID string
	Hint                   string
	SetAt                  time.Time
	// RequestedBy is the link of the agent that requested the credential, or empty. AskedOn is that link's host.
	// Reads set AskedOn, and writes ignore it.
	RequestedBy, AskedOn string
	TestedAt             time.Time // zero if never tested
	TestResult           string
}

// StoredLink is a stored paste link, identified by the hash of its ID.
type StoredLink struct {
	Hash                         string
	AccountID, Project, Provider string
	RequestedBy, AskedOn         string // same as in Stored
	CreatedAt, ExpiresAt         time.Time
}

// boundTo selects the project that an envelope is bound to. It accepts another project than the row's only if the
// projects were merged. Otherwise the row was moved by hand and must not be decrypted.
const boundTo = `CASE WHEN EXISTS (SELECT 1 FROM project_aliases a
		WHERE a.account_id = c.account_id AND a.alias = c.sealed_for AND a.app_id = c.app_id)
	THEN c.sealed_for ELSE c.app_id END`

// selectCredentials includes the host of the requesting agent as long as its link exists.
const selectCredentials = `SELECT c.account_id, c.app_id, c.provider, ` + boundTo + `, c.sealed, c.wrapped, c.key_id, c.hint, c.set_at,
		c.requested_by, l.host, c.tested_at, c.test_result
	FROM credentials c LEFT JOIN links l ON l.id = c.requested_by AND l.account_id = c.account_id `

func scanCredential(row db.Row) (c Stored, err error) {
	err = row.Scan(&c.AccountID, &c.Project, &c.Provider, &c.SealedFor, &c.Sealed, &c.Wrapped, &c.KeyID, &c.Hint,
		db.IntoTime(&c.SetAt), &c.RequestedBy, db.IntoText(&c.AskedOn), db.IntoTime(&c.TestedAt), &c.TestResult)
	return c, err
}

// Credentials lists the credentials of a project.
func (s *Store) Credentials(ctx context.Context, account, project string) ([]Stored, error) {
	return db.All(ctx, s, scanCredential,
		selectCredentials+"WHERE c.account_id = $1 AND c.app_id = $2 ORDER BY c.provider", account, project)
}

// Credential returns ErrNotSet if the credential is not set.
func (s *Store) Credential(ctx context.Context, account, project, provider string) (Stored, error) {
	return db.One(ctx, s, ErrNotSet, scanCredential,
		selectCredentials+"WHERE c.account_id = $1 AND c.app_id = $2 AND c.provider = $3", account, project, provider)
}

// PutCredential inserts or replaces a credential and deletes the result of any earlier test. If linkHash is not
// empty, it also consumes that link and copies its RequestedBy. It returns ErrUnknownLink unless the link is valid
// and is for this credential.
func (s *Store) PutCredential(ctx context.Context, c Stored, linkHash string, e audit.Entry) error {
	return audit.Write(ctx, s.DB, e, func(tx *sql.Tx) (err error) {
		requestedBy := c.RequestedBy
		if linkHash != "" {
			requestedBy, err = db.QueryValue[string](ctx, tx, `DELETE FROM credential_links WHERE hash = $1
				AND account_id = $2 AND app_id = $3 AND provider = $4 AND expires_at > $5 RETURNING requested_by`,
				linkHash, c.AccountID, c.Project, c.Provider, db.ToMS(c.SetAt))
			if err != nil {
				return db.ReplaceNoRows(err, ErrUnknownLink)
			}
		}
		return db.Exec(ctx, tx, "save credential", `INSERT INTO credentials (account_id, app_id, provider, sealed_for, sealed,
				wrapped, key_id, hint, set_at, requested_by, tested_at, test_result)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '')
			ON CONFLICT (account_id, app_id, provider) DO UPDATE SET sealed_for = $4, sealed = $5, wrapped = $6,
				key_id = $7, hint = $8, set_at = $9, requested_by = $10, tested_at = NULL, test_result = ''`,
			c.AccountID, c.Project, c.Provider, c.SealedFor, c.Sealed, c.Wrapped, c.KeyID, c.Hint, db.ToMS(c.SetAt), requestedBy)
	})
}

// DeleteCredential returns ErrNotSet if the credential is not set.
func (s *Store) DeleteCredential(ctx context.Context, account, project, provider string, e audit.Entry) error {
	return audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		return db.MustChange(ctx, tx, ErrNotSet, "delete credential",
			"DELETE FROM credentials WHERE account_id = $1 AND app_id = $2 AND provider = $3", account, project, provider)
	})
}

// MarkTested stores the result of a test, unless the credential has been replaced since the test (c.Sealed
// differs).
func (s *Store) MarkTested(ctx context.Context, c Stored, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		same, err := db.Changed(ctx, tx, "save test result", `UPDATE credentials SET tested_at = $1, test_result = $2
			WHERE account_id = $3 AND app_id = $4 AND provider = $5 AND sealed = $6`,
			db.TimeOrNull(c.TestedAt), c.TestResult, c.AccountID, c.Project, c.Provider, c.Sealed)
		if err != nil || !same {
			return err
		}
		return audit.Insert(ctx, tx, e)
	})
}

// AddCredentialLink inserts a link. It deletes expired links, and the project's oldest links beyond keep.
func (s *Store) AddCredentialLink(ctx context.Context, l StoredLink, keep int, e audit.Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		if err := projects.Lock(ctx, tx, projects.ErrNotFound, l.AccountID, l.Project); err != nil {
			return err
		}
		return db.ExecAll(ctx, tx, "insert credential link",
			db.Stmt("DELETE FROM credential_links WHERE expires_at <= $1", db.ToMS(l.CreatedAt)),
			db.Stmt(`DELETE FROM credential_links WHERE account_id = $1 AND app_id = $2 AND hash NOT IN
				(SELECT hash FROM credential_links WHERE account_id = $1 AND app_id = $2
					ORDER BY created_at DESC, hash LIMIT $3)`, l.AccountID, l.Project, keep-1),
			db.Stmt(`INSERT INTO credential_links (hash, account_id, app_id, provider, requested_by, created_at, expires_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7)`,
				l.Hash, l.AccountID, l.Project, l.Provider, l.RequestedBy, db.ToMS(l.CreatedAt), db.ToMS(l.ExpiresAt)),
			audit.Statement(e))
	})
}

// CredentialLink returns ErrUnknownLink for an unknown or expired link.
func (s *Store) CredentialLink(ctx context.Context, hash string, now time.Time) (StoredLink, error) {
	return db.One(ctx, s, ErrUnknownLink, func(row db.Row) (StoredLink, error) {
		l := StoredLink{Hash: hash}
		err := row.Scan(&l.AccountID, &l.Project, &l.Provider, &l.RequestedBy, db.IntoText(&l.AskedOn),
			db.IntoTime(&l.CreatedAt), db.IntoTime(&l.ExpiresAt))
		return l, err
	}, `SELECT c.account_id, c.app_id, c.provider, c.requested_by, l.host, c.created_at, c.expires_at
		FROM credential_links c LEFT JOIN links l ON l.id = c.requested_by AND l.account_id = c.account_id
		WHERE c.hash = $1 AND c.expires_at > $2`, hash, db.ToMS(now))
}

// vault is a table of envelopes. name is the column that tells the envelopes of a project apart.
type vault struct{ kind, table, name string }

var vaults = []vault{{kindCredential, "credentials", "provider"}, {KindMemory, "memories", "user_hash"}}

// label names an envelope for the operator.
func (v vault) label(name string) string {
	if v.kind == KindMemory {
		return "memory of user " + name[:min(len(name), 12)]
	}
	return name
}

// under lists up to limit envelopes of a vault whose data key is encrypted with keyID, ordered by account, project and
// name, which is in Provider. It starts after the envelope after; the zero value starts at the beginning.
func (s *Store) under(ctx context.Context, v vault, keyID string, after Stored, limit int) ([]Stored, error) {
	return db.All(ctx, s, func(row db.Row) (c Stored, err error) {
		return c, row.Scan(&c.AccountID, &c.Project, &c.Provider, &c.SealedFor, &c.Sealed, &c.Wrapped, &c.KeyID)
	}, `SELECT c.account_id, c.app_id, c.`+v.name+`, `+boundTo+`, c.sealed, c.wrapped, c.key_id FROM `+v.table+` c
		WHERE c.key_id = $1 AND (c.account_id, c.app_id, c.`+v.name+`) > ($2, $3, $4)
		ORDER BY c.account_id, c.app_id, c.`+v.name+` LIMIT $5`,
		keyID, after.AccountID, after.Project, after.Provider, limit)
}

// rewrap replaces the wrapped data key of c if it has not changed since c was read. done reports whether the key was
// replaced.
func (s *Store) rewrap(ctx context.Context, v vault, c Stored, wrapped string) (done bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		done, err = db.Changed(ctx, tx, "rewrap envelope", `UPDATE `+v.table+` SET wrapped = $1, key_id = $2
			WHERE account_id = $3 AND app_id = $4 AND `+v.name+` = $5 AND wrapped = $6`,
			c.Wrapped, c.KeyID, c.AccountID, c.Project, c.Provider, wrapped)
		return err
	})
	return done, err
}

// Rewrap replaces the wrapped data key of a credential if it has not changed since c was read. done reports whether the
// key was replaced.
func (s *Store) Rewrap(ctx context.Context, c Stored, wrapped string) (done bool, err error) {
	return s.rewrap(ctx, vaults[0], c, wrapped)
}

// CredentialKeys returns the number of credentials and memories per key ID.
func (s *Store) CredentialKeys(ctx context.Context) (map[string]int, error) {
	counts := map[string]int{}
	for _, v := range vaults {
		err := db.Each(ctx, s, func(row db.Row) error {
			var id string
			var n int
			err := row.Scan(&id, &n)
			counts[id] += n
			return err
		}, "SELECT key_id, COUNT(*) FROM "+v.table+" WHERE key_id <> '' GROUP BY key_id")
		if err != nil {
			return nil, err
		}
	}
	return counts, nil
}
