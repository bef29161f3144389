package sqlstore

import (
	"context"
	"database/sql"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/gateway"
)

// KeySource returns the way in which a project pays for its model calls.
func (s *Store) KeySource(ctx context.Context, account, project string) (string, error) {
	source, err := value[string](s.pointQuery(ctx, `SELECT key_source FROM gateway_settings
		WHERE account_id = $1 AND app_id = $2`, account, project))
	if source == "" {
		source = gateway.KeySourceCredit
	}
	return source, replaceNoRows(err, nil)
}

// SetKeySource sets the way in which the entry's project pays for its model calls.
func (s *Store) SetKeySource(ctx context.Context, source string, e audit.Entry) error {
	return s.writeAudited(ctx, e, func(tx *sql.Tx) error {
		return execTx(ctx, tx, "set key source", `INSERT INTO gateway_settings (account_id, app_id, key_source)
			VALUES ($1, $2, $3) ON CONFLICT (account_id, app_id) DO UPDATE SET key_source = excluded.key_source`,
			e.AccountID, e.Project, source)
	})
}
