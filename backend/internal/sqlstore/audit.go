package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/service-dev/service/backend/internal/audit"
)

// insertAudit writes an entry in the transaction of the change that it tells of.
func insertAudit(ctx context.Context, tx *sql.Tx, e audit.Entry) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary, before, after)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		e.ID, e.AccountID, toMS(e.At), e.Actor.Kind, e.Actor.LinkID, e.Action, e.Project, e.Summary, textOrNull(e.Before), textOrNull(e.After))
	if err != nil {
		return fmt.Errorf("inserting audit entry: %w", err)
	}
	return nil
}

func textOrNull(b []byte) sql.NullString { return sql.NullString{String: string(b), Valid: b != nil} }

// InsertAudit writes an entry of its own, of something read.
func (s *Store) InsertAudit(ctx context.Context, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error { return insertAudit(ctx, tx, e) })
}
