package projects

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
)

// Store stores projects and the hashes of their keys. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// Lock blocks other changes to a project's row, including its deletion. It returns none for an unknown project.
func Lock(ctx context.Context, tx *sql.Tx, none error, accountID, project string) error {
	return db.MustChange(ctx, tx, none, "lock project",
		`UPDATE projects SET created_at = created_at WHERE account_id = $1 AND app_id = $2`, accountID, project)
}

const projectIDQuery = `SELECT app_id FROM projects WHERE account_id = $1 AND app_id = $2
	UNION ALL SELECT app_id FROM project_aliases WHERE account_id = $1 AND alias = $2`

// resolveProject returns the ID itself, the ID it was merged into, or ErrNotFound.
func resolveProject(ctx context.Context, q db.Querier, accountID, id string) (string, error) {
	return db.One(ctx, q, ErrNotFound, db.Value[string], projectIDQuery, accountID, id)
}

// Ensure creates a project of an account if it does not exist. It returns the real ID, which differs if appID
// was merged into another project, or ErrTooManyProjects. It blocks merges and deletions until the
// transaction ends.
func Ensure(
	ctx context.Context, tx *sql.Tx, accountID, appID string, by audit.Actor, now time.Time,
) (string, error) {
	if _, err := db.LockAccount(ctx, tx, accountID); err != nil {
		return "", err
	}
	id, err := resolveProject(ctx, tx, accountID, appID)
	if !errors.Is(err, ErrNotFound) {
		return id, err
	}
	n, err := db.QueryValue[int](ctx, tx, `SELECT COUNT(*) FROM projects WHERE account_id = $1`, accountID)
	if err != nil {
		return "", fmt.Errorf("count projects: %w", err)
	}
	if n >= MaxProjects {
		return "", ErrTooManyProjects
	}
	return appID, db.ExecAll(ctx, tx, "insert project",
		db.Stmt(`INSERT INTO projects (account_id, app_id, created_at) VALUES ($1, $2, $3)`, accountID, appID, db.ToMS(now)),
		credit.NewProject(accountID, appID),
		audit.Statement(audit.New(now, accountID, by, "project.created", appID, appID)))
}

// ProjectID returns id, or the ID of the project that id was merged into. It returns ErrNotFound for an unknown ID.
func (s *Store) ProjectID(ctx context.Context, accountID, id string) (string, error) {
	return resolveProject(ctx, s, accountID, id)
}

// Projects lists an account's projects, ordered by ID. If id is not empty, it lists only that project. It reads only
// the sessions that have not expired, and one index entry for the latest activity.
func (s *Store) Projects(ctx context.Context, accountID, id string, now time.Time) ([]Project, error) {
	one, args := "", []any{accountID, db.ToMS(now)}
	if id != "" {
		one, args = "AND app_id = $3", append(args, id)
	}
	return db.All(ctx, s, func(row db.Row) (p Project, err error) {
		var platforms string
		var keyUsed time.Time
		err = row.Scan(&p.ID, &p.DisplayName, &platforms, db.IntoTime(&p.CreatedAt), &p.Keys, db.IntoTime(&keyUsed),
			&p.OpenSessions, db.IntoTime(&p.LastActiveAt))
		if keyUsed.After(p.LastActiveAt) {
			p.LastActiveAt = keyUsed
		}
		return withDefaults(p, platforms), err
	}, `SELECT p.app_id, p.display_name, p.platforms, p.created_at, COALESCE(k.live, 0), k.used,
			COALESCE(s.open, 0), (SELECT MAX(last_active_at) FROM sessions WHERE account_id = $1 AND app_id = p.app_id)
		FROM (SELECT * FROM projects WHERE account_id = $1 `+one+`) p
		LEFT JOIN (SELECT app_id, SUM(CASE WHEN revoked_at IS NULL THEN 1 ELSE 0 END) AS live, MAX(last_used_at) AS used
			FROM project_keys WHERE account_id = $1 `+one+` GROUP BY app_id) k ON k.app_id = p.app_id
		LEFT JOIN (SELECT app_id, COUNT(*) AS open FROM `+EffectiveSessions+`
			WHERE `+UnexpiredSessions+` `+one+` GROUP BY app_id) s ON s.app_id = p.app_id
		ORDER BY p.app_id`, args...)
}

// withDefaults replaces empty columns with their defaults.
func withDefaults(p Project, platforms string) Project {
	if p.DisplayName == "" {
		p.DisplayName = DefaultName(p.ID)
	}
	if platforms != "" {
		p.Platforms = strings.Split(platforms, ",")
	}
	return p
}

// readProject returns the columns of a project's row, in a transaction that holds the account's lock.
func readProject(ctx context.Context, q db.Querier, accountID, id string) (Project, error) {
	return db.One(ctx, q, ErrNotFound, func(row db.Row) (Project, error) {
		p := Project{ID: id}
		var platforms string
		err := row.Scan(&p.DisplayName, &platforms, db.IntoTime(&p.CreatedAt))
		return withDefaults(p, platforms), err
	}, `SELECT display_name, platforms, created_at FROM projects WHERE account_id = $1 AND app_id = $2`, accountID, id)
}

func saveProject(ctx context.Context, tx *sql.Tx, accountID string, p Project) error {
	if p.DisplayName == DefaultName(p.ID) {
		p.DisplayName = ""
	}
	return db.Exec(ctx, tx, "save project", `UPDATE projects SET display_name = $1, platforms = $2, created_at = $3
		WHERE account_id = $4 AND app_id = $5`,
		p.DisplayName, strings.Join(p.Platforms, ","), db.ToMS(p.CreatedAt), accountID, p.ID)
}

// ChangeProject stores the name and platforms that change sets, with the audit entry. If change returns false,
// ChangeProject writes nothing.
func (s *Store) ChangeProject(
	ctx context.Context, accountID, id string, change func(*Project) (audit.Entry, bool),
) error {
	return s.WriteAccount(ctx, accountID, func(tx *sql.Tx) error {
		p, err := readProject(ctx, tx, accountID, id)
		if err != nil {
			return err
		}
		e, ok := change(&p)
		if !ok {
			return nil
		}
		if err := saveProject(ctx, tx, accountID, p); err != nil {
			return err
		}
		return audit.Insert(ctx, tx, e)
	})
}

// EffectiveSessions selects sessions as all readers see them: a session ends with the link that created it, and is
// closed while its account is not active. A process that revokes a link therefore does not need to update sessions.
const EffectiveSessions = `(SELECT s.id, s.account_id, s.link_id, s.app_id, s.platform, s.device_model, s.created_at,
		s.last_active_at, CASE WHEN l.expires_at < s.expires_at THEN l.expires_at ELSE s.expires_at END AS expires_at,
		COALESCE(s.closed_at, l.revoked_at, CASE WHEN a.state <> 'active' THEN s.last_active_at END) AS closed_at,
		s.last_seq, s.first_seq
	FROM sessions s JOIN links l ON l.id = s.link_id JOIN accounts a ON a.id = s.account_id) AS s`

// UnexpiredSessions selects the open sessions of account $1 at the time $2. The inner query uses an index to select the
// sessions that have not expired; without it, every session that the account ever had would be read.
const UnexpiredSessions = `id IN (SELECT id FROM sessions WHERE account_id = $1 AND expires_at > $2)
	AND closed_at IS NULL AND expires_at > $2`
