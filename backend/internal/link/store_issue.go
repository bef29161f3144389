package link

import (
	"context"
	"database/sql"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
)

// InsertCode returns ErrDuplicate if either hash is already in use.
func (s *Store) InsertCode(ctx context.Context, c Code, t audit.Trace) error {
	writes := []db.Statement{db.Stmt(`INSERT INTO device_codes
			(device_hash, user_hash, state, host, os, client, ip, created_at, expires_at, interval_ms)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		c.DeviceHash, c.UserHash, c.State, c.Requester.Host, c.Requester.OS, c.Requester.Client, c.Requester.IP,
		db.ToMS(c.CreatedAt), db.ToMS(c.ExpiresAt), c.Interval.Milliseconds())}
	if !t.Empty() {
		writes = append(writes, audit.TrailStatement(t.Line(c.UserHash, "", "")))
	}
	err := s.WriteShared(ctx, "device codes", func(ctx context.Context, tx *sql.Tx) error {
		return s.ExecUnordered(ctx, tx, "insert code", writes...)
	})
	if db.IsDuplicate(err) {
		return ErrDuplicate
	}
	return err
}
