package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/service-dev/service/backend/internal/telemetry"
	wire "github.com/service-dev/service/proto/telemetry"
)

// AddTelemetry keeps the records that are not there yet and counts them.
func (s *Store) AddTelemetry(ctx context.Context, b telemetry.Batch) (fresh int, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		fresh = 0
		for chunk := range slices.Chunk(b.Records, rowsAtOnce) {
			n, err := insertEvents(ctx, tx, &b, chunk)
			if err != nil {
				return fmt.Errorf("inserting events: %w", err)
			}
			fresh += int(n)
		}
		return nil
	})
	return fresh, err
}

func insertEvents(ctx context.Context, tx *sql.Tx, b *telemetry.Batch, records []wire.Record) (int64, error) {
	args := append(make([]any, 0, 2+5*len(records)), b.Install[:], toMS(b.ReceivedAt))
	for i := range records {
		r := &records[i]
		args = append(args, telemetry.Day(r), r.ID[:], r.At, r.Name, string(r.Fields))
	}
	result, err := tx.ExecContext(ctx, `INSERT INTO telemetry_events (install_hash, received_at, day, id, at, name, fields) VALUES `+
		tuples(len(records), 5, "$1", "$2")+` ON CONFLICT DO NOTHING`, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// PurgeTelemetry asks day by day, since days stand first in the key.
func (s *Store) PurgeTelemetry(ctx context.Context, of telemetry.Install, from, to int64) (deleted int64, err error) {
	args := []any{of[:]}
	for day := from; day <= to; day++ {
		args = append(args, day)
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM telemetry_events WHERE install_hash = $1 AND day IN `+list(len(args)-1, 2), args...)
		if err != nil {
			return fmt.Errorf("deleting events: %w", err)
		}
		deleted, err = result.RowsAffected()
		return err
	})
	return deleted, err
}

// SweepTelemetry deletes the oldest first.
func (s *Store) SweepTelemetry(ctx context.Context, day int64, limit int) (more bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM telemetry_events WHERE (day, install_hash, id) IN
			(SELECT day, install_hash, id FROM telemetry_events WHERE day < $1 ORDER BY day LIMIT $2)`, day, limit)
		if err != nil {
			return fmt.Errorf("deleting old events: %w", err)
		}
		n, err := result.RowsAffected()
		more = n == int64(limit)
		return err
	})
	return more, err
}
