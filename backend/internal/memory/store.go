package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"errors"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
)

// Store stores profiles. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a Store backed by d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// rowID identifies a row. boundTo is the project that its hash and its envelope are bound to, which differs from
// project after a merge.
type rowID struct{ account, project, hash, boundTo string }

type stored struct {
	rowID
	sealed                       credentials.Sealed
	generation                   int64
	updatedAt, usedAt, expiresAt time.Time
}

// daysOf selects how long the profiles of a project are kept, in milliseconds.
const daysOf = `86400000 * COALESCE((SELECT g.memory_days FROM gateway_settings g
	WHERE g.account_id = $1 AND g.app_id = $2), 30)` // DefaultDays

func (s *Store) aliases(ctx context.Context, account, project string) ([]string, error) {
	return db.All(ctx, s, db.Value[string],
		"SELECT alias FROM project_aliases WHERE account_id = $1 AND app_id = $2 ORDER BY alias", account, project)
}

func (s *Store) memory(ctx context.Context, id rowID) (stored, bool, error) {
	row, err := db.One(ctx, s, sql.ErrNoRows, func(row db.Row) (stored, error) {
		m := stored{rowID: id}
		err := row.Scan(&m.sealed.Text, &m.sealed.Wrapped, &m.sealed.KeyID, &m.generation, db.IntoTime(&m.updatedAt),
			db.IntoTime(&m.usedAt), db.IntoTime(&m.expiresAt))
		return m, err
	}, `SELECT sealed, wrapped, key_id, generation, updated_at, used_at, expires_at FROM memories
		WHERE account_id = $1 AND app_id = $2 AND user_hash = $3 AND sealed_for = $4`,
		id.account, id.project, id.hash, id.boundTo)
	if errors.Is(err, sql.ErrNoRows) {
		return stored{}, false, nil
	}
	return row, err == nil, err
}

// newMark returns the mark of an erasure, a random number: the marks of a deleted row must not appear again.
func newMark() (int64, error) {
	var b [8]byte
	_, err := rand.Read(b[:])
	return int64(binary.BigEndian.Uint64(b[:])>>2) + 1, err // #nosec G115 -- less than 1<<62, and never 0
}

// allErased selects the mark of the last erasure of all profiles of a project.
const allErased = `COALESCE((SELECT g.memory_generation FROM gateway_settings g
	WHERE g.account_id = $1 AND g.app_id = $2), 0)`

func (s *Store) erasures(ctx context.Context, account, project string) (int64, error) {
	return db.QueryValue[int64](ctx, s, "SELECT "+allErased, account, project)
}

// touch notes a use of a profile.
func (s *Store) touch(ctx context.Context, id rowID, now time.Time) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		return db.Exec(ctx, tx, "note use of memory", `UPDATE memories SET used_at = $4, expires_at = $4 + `+daysOf+`
			WHERE account_id = $1 AND app_id = $2 AND user_hash = $3 AND sealed <> ''`,
			id.account, id.project, id.hash, db.ToMS(now))
	})
}

// save replaces the text that p was read from. Each sealed text is unique, so that the statement notices every change.
func (s *Store) save(ctx context.Context, m stored, p Profile) (saved bool, err error) {
	values := []any{m.account, m.project, m.hash, db.ToMS(m.updatedAt), m.sealed.Text, m.sealed.Wrapped, m.sealed.KeyID}
	text := `INSERT INTO memories (account_id, app_id, user_hash, updated_at, sealed, wrapped, key_id, sealed_for,
			generation, created_at, used_at, expires_at)
		SELECT $1, $2, $3, CAST($4 AS BIGINT), $5, $6, $7, $8, 0, $4, $4, $4 + ` + daysOf + ` WHERE $9 = ` + allErased + `
		ON CONFLICT (account_id, app_id, user_hash) DO NOTHING`
	values = append(values, m.boundTo, p.ofAll)
	if p.exists {
		text = `UPDATE memories SET updated_at = $4, sealed = $5, wrapped = $6, key_id = $7, used_at = $4,
				expires_at = $4 + ` + daysOf + `, created_at = CASE WHEN sealed = '' THEN $4 ELSE created_at END
			WHERE account_id = $1 AND app_id = $2 AND user_hash = $3 AND sealed_for = $8
				AND $9 = ` + allErased + ` AND generation = $10 AND sealed = $11`
		values = append(values, p.generation, p.was)
	}
	err = s.Write(ctx, func(tx *sql.Tx) error {
		// Waits for eraseEntries, whose changes the statement could not see otherwise.
		if err := projects.Lock(ctx, tx, db.ErrNoProject, m.account, m.project); err != nil {
			return err
		}
		if !p.exists {
			if full, err := isFull(ctx, tx, m.account, m.project); err != nil || full {
				return cmp.Or(err, ErrTooMany)
			}
		}
		saved, err = db.Changed(ctx, tx, "save memory", text, values...)
		return err
	})
	return saved, err
}

// isFull reports whether a project has MaxProfiles rows.
func isFull(ctx context.Context, tx *sql.Tx, account, project string) (bool, error) {
	n, err := db.QueryValue[int](ctx, tx, `SELECT COUNT(*) FROM memories WHERE account_id = $1 AND app_id = $2`,
		account, project)
	return n >= MaxProfiles, err
}

// erased is the change of a row whose text is erased. The row keeps no text, and is deleted at $1. $2 is the mark
// of the erasure.
const erased = `sealed = '', wrapped = '', key_id = '', expires_at = $1, generation = $2`

// erase erases a user's text in all rows that it may be in, and adds the first row if there is none. In a project with
// too many rows, it marks an erasure of all profiles instead of adding a row.
func (s *Store) erase(ctx context.Context, ids []rowID, now time.Time) error {
	until := db.ToMS(now.Add(fenceTime))
	mark, err := newMark()
	if err != nil {
		return err
	}
	return s.Write(ctx, func(tx *sql.Tx) error {
		for _, id := range ids[1:] {
			if err := db.Exec(ctx, tx, "erase memory", `UPDATE memories SET `+erased+`
				WHERE account_id = $3 AND app_id = $4 AND user_hash = $5`, until, mark, id.account, id.project,
				id.hash); err != nil {
				return err
			}
		}
		id := ids[0]
		if full, err := isFull(ctx, tx, id.account, id.project); err != nil || full {
			return cmp.Or(err, eraseWithoutRow(ctx, tx, id, until, mark))
		}
		return db.Exec(ctx, tx, "erase memory", `INSERT INTO memories (expires_at, generation, account_id, app_id,
				user_hash, sealed_for, sealed, wrapped, key_id, created_at, updated_at, used_at)
			VALUES ($1, $2, $3, $4, $5, $6, '', '', '', $7, $7, $7)
			ON CONFLICT (account_id, app_id, user_hash) DO UPDATE SET `+erased,
			until, mark, id.account, id.project, id.hash, id.boundTo, db.ToMS(now))
	})
}

func eraseWithoutRow(ctx context.Context, tx *sql.Tx, id rowID, until, mark int64) error {
	n, err := db.ExecCount(ctx, tx, "erase memory", `UPDATE memories SET `+erased+`
		WHERE account_id = $3 AND app_id = $4 AND user_hash = $5`, until, mark, id.account, id.project, id.hash)
	if err != nil || n > 0 {
		return err
	}
	return markAllErased(ctx, tx, id.account, id.project, mark)
}

// markAllErased keeps conversations from writing that began before.
func markAllErased(ctx context.Context, tx *sql.Tx, account, project string, mark int64) error {
	return db.Exec(ctx, tx, "erase memories", `INSERT INTO gateway_settings (account_id, app_id, memory_generation)
		VALUES ($1, $2, $3) ON CONFLICT (account_id, app_id)
		DO UPDATE SET memory_generation = excluded.memory_generation`, account, project, mark)
}

// eraseEntries erases the texts of the entry's project whose hash begins with prefix. It returns ErrNotFound if prefix
// is not empty and there is none. Without a prefix, it also keeps conversations from writing that have no row yet.
func (s *Store) eraseEntries(ctx context.Context, prefix string, e audit.Entry) error {
	mark, err := newMark()
	if err != nil {
		return err
	}
	return audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		// A save that begins meanwhile waits, and then sees the mark.
		if err := projects.Lock(ctx, tx, ErrNotFound, e.AccountID, e.Project); err != nil {
			return err
		}
		n, err := db.ExecCount(ctx, tx, "erase memories", `UPDATE memories SET `+erased+`
			WHERE account_id = $3 AND app_id = $4 AND user_hash >= $5 AND user_hash < $6 AND sealed <> ''`,
			db.ToMS(e.At.Add(fenceTime)), mark, e.AccountID, e.Project, prefix, prefix+"g")
		if err != nil || prefix != "" {
			return db.Require(n > 0, err, ErrNotFound)
		}
		return markAllErased(ctx, tx, e.AccountID, e.Project, mark)
	})
}

// ofProject selects the profiles of a project. The sum keeps PostgreSQL from reading those of all projects by their
// time.
const ofProject = ` FROM memories WHERE account_id = $1 AND app_id = $2 AND sealed <> '' AND expires_at + 0 > $3`

func (s *Store) summary(ctx context.Context, account, project string, now time.Time) (Summary, error) {
	return db.One(ctx, s, sql.ErrNoRows, func(row db.Row) (sum Summary, err error) {
		return sum, row.Scan(&sum.Profiles, db.IntoTime(&sum.Oldest), db.IntoTime(&sum.LastUsed), &sum.Days)
	}, `SELECT COUNT(*), MIN(created_at), MAX(used_at), `+daysOf+` / 86400000`+ofProject, account, project, db.ToMS(now))
}

func (s *Store) list(ctx context.Context, account, project string, now time.Time) ([]Entry, error) {
	return db.All(ctx, s, func(row db.Row) (e Entry, err error) {
		err = row.Scan(&e.ID, db.IntoTime(&e.CreatedAt), db.IntoTime(&e.UpdatedAt), db.IntoTime(&e.UsedAt),
			db.IntoTime(&e.ExpiresAt))
		e.ID = e.ID[:shortID]
		return e, err
	}, `SELECT user_hash, created_at, updated_at, used_at, expires_at`+ofProject+` ORDER BY used_at DESC, user_hash LIMIT $4`,
		account, project, db.ToMS(now), MaxListed)
}

// setDays stores the days, and counts them from the last use of each profile.
func (s *Store) setDays(ctx context.Context, days int, e audit.Entry) error {
	return audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		if err := projects.Lock(ctx, tx, projects.ErrNotFound, e.AccountID, e.Project); err != nil {
			return err
		}
		return db.ExecAll(ctx, tx, "set days of memories",
			db.Stmt(`INSERT INTO gateway_settings (account_id, app_id, memory_days) VALUES ($1, $2, $3)
				ON CONFLICT (account_id, app_id) DO UPDATE SET memory_days = excluded.memory_days`,
				e.AccountID, e.Project, days),
			db.Stmt(`UPDATE memories SET expires_at = used_at + $3
				WHERE account_id = $1 AND app_id = $2 AND sealed <> ''`,
				e.AccountID, e.Project, (time.Duration(days)*24*time.Hour).Milliseconds()))
	})
}

// SweepMemories deletes the rows that are due.
func (s *Store) SweepMemories(ctx context.Context, now time.Time) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		return db.Exec(ctx, tx, "sweep memories", `DELETE FROM memories WHERE expires_at <= $1`, db.ToMS(now))
	})
}
