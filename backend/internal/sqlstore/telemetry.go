package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/service-dev/service/backend/internal/telemetry"
)

// AddTelemetry keeps the records that are not there yet and counts them, each engine in its fastest way: PostgreSQL by
// COPY, SQLite row by row, for there binding many values to one statement costs more than running it often.
func (s *Store) AddTelemetry(ctx context.Context, b telemetry.Batch) (fresh int, err error) {
	if s.group == nil {
		err := s.copyTelemetry(ctx, &b)
		if duplicate(err) { // COPY takes all or nothing
			return s.addTelemetryAtOnce(ctx, &b)
		}
		return len(b.Records), err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		fresh, err = addTelemetryRows(ctx, tx, &b)
		return err
	})
	return fresh, err
}

func addTelemetryRows(ctx context.Context, tx *sql.Tx, b *telemetry.Batch) (fresh int, err error) {
	insert, err := tx.PrepareContext(ctx, `INSERT INTO telemetry_events (day, install_hash, id, at, received_at, name, fields)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`)
	if err != nil {
		return 0, fmt.Errorf("preparing the insertion of events: %w", err)
	}
	defer insert.Close()
	install, received := int64(b.Install), toMS(b.ReceivedAt)
	for i := range b.Records {
		r := &b.Records[i]
		result, err := insert.ExecContext(ctx, telemetry.Day(r), install, r.ID[:], r.At, received, r.Name, string(r.Fields))
		if err != nil {
			return 0, fmt.Errorf("inserting events: %w", err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		fresh += int(n)
	}
	return fresh, nil
}

// copyTelemetry keeps all of the records, or none when one of them is there.
func (s *Store) copyTelemetry(ctx context.Context, b *telemetry.Batch) error {
	conn, err := s.writes.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	install, received := int64(b.Install), toMS(b.ReceivedAt)
	rows := pgx.CopyFromSlice(len(b.Records), func(i int) ([]any, error) {
		r := &b.Records[i]
		return []any{telemetry.Day(r), install, r.ID[:], r.At, received, r.Name, string(r.Fields)}, nil
	})
	err = conn.Raw(func(c any) error {
		_, err := c.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{"telemetry_events"},
			[]string{"day", "install_hash", "id", "at", "received_at", "name", "fields"}, rows)
		return err
	})
	if err != nil {
		return fmt.Errorf("copying events: %w", err)
	}
	return nil
}

// addTelemetryAtOnce leaves out what is there.
func (s *Store) addTelemetryAtOnce(ctx context.Context, b *telemetry.Batch) (int, error) {
	n := len(b.Records)
	days, ats, ids := make([]int64, n), make([]int64, n), make([][]byte, n)
	names, fields := make([]string, n), make([]string, n)
	for i := range b.Records {
		r := &b.Records[i]
		days[i], ats[i], ids[i], names[i], fields[i] = telemetry.Day(r), r.At, r.ID[:], r.Name, string(r.Fields)
	}
	result, err := s.exec(ctx, `INSERT INTO telemetry_events (day, install_hash, id, at, received_at, name, fields)
		SELECT e.day, $1, e.id, e.at, $2, e.name, e.fields
		FROM unnest($3::bigint[], $4::bytea[], $5::bigint[], $6::text[], $7::text[]) AS e (day, id, at, name, fields) ON CONFLICT DO NOTHING`,
		int64(b.Install), toMS(b.ReceivedAt), days, ids, ats, names, fields)
	if err != nil {
		return 0, fmt.Errorf("inserting events: %w", err)
	}
	fresh, err := result.RowsAffected()
	return int(fresh), err
}

// PurgeTelemetry asks day by day, since days stand first in the key.
func (s *Store) PurgeTelemetry(ctx context.Context, of telemetry.Install, from, to int64) (deleted int64, err error) {
	args := []any{int64(of)}
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
