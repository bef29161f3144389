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
		err := s.retried(ctx, func() error { return s.copyTelemetry(ctx, &b) })
		switch {
		case duplicate(err): // COPY takes all or nothing
			return s.addTelemetryAtOnce(ctx, &b)
		case err != nil:
			return 0, err
		}
		return len(b.Records), nil
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		fresh, err = addTelemetryRows(ctx, tx, &b)
		return err
	})
	if err != nil {
		return 0, err
	}
	return fresh, nil
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
		result, err := insert.ExecContext(ctx, telemetry.Day(r), install, telemetry.Key(r), telemetry.Hour(r.At), received, r.Name, string(r.Fields))
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
		return []any{telemetry.Day(r), install, telemetry.Key(r), telemetry.Hour(r.At), received, r.Name, string(r.Fields)}, nil
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
	days, ats, ids := make([]int64, n), make([]int64, n), make([]int64, n)
	names, fields := make([]string, n), make([]string, n)
	for i := range b.Records {
		r := &b.Records[i]
		days[i], ats[i], ids[i], names[i], fields[i] = telemetry.Day(r), telemetry.Hour(r.At), telemetry.Key(r), r.Name, string(r.Fields)
	}
	result, err := s.exec(ctx, `INSERT INTO telemetry_events (day, install_hash, id, at, received_at, name, fields)
		SELECT e.day, $1, e.id, e.at, $2, e.name, e.fields
		FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]) AS e (day, id, at, name, fields) ON CONFLICT DO NOTHING`,
		int64(b.Install), toMS(b.ReceivedAt), days, ids, ats, names, fields)
	if err != nil {
		return 0, fmt.Errorf("inserting events: %w", err)
	}
	fresh, err := result.RowsAffected()
	return int(fresh), err
}

// TelemetryOfDay stops counting at limit.
func (s *Store) TelemetryOfDay(ctx context.Context, of telemetry.Install, day int64, limit int) (n int, err error) {
	err = s.reads.QueryRowContext(ctx, `SELECT COUNT(*) FROM
		(SELECT 1 FROM telemetry_events WHERE day = $1 AND install_hash = $2 LIMIT $3) AS held`, day, int64(of), limit).Scan(&n)
	return n, err
}

// TelemetryRows reads the whole of an index.
func (s *Store) TelemetryRows(ctx context.Context) (n int64, err error) {
	err = s.reads.QueryRowContext(ctx, "SELECT COUNT(*) FROM telemetry_events").Scan(&n)
	return n, err
}

// PurgeTelemetry asks day by day, since days stand first in the key.
func (s *Store) PurgeTelemetry(ctx context.Context, of telemetry.Install, from, to int64, limit int) (int64, error) {
	args := []any{int64(of), limit}
	for day := from; day <= to; day++ {
		args = append(args, day)
	}
	n, err := s.deleteRows(ctx, `DELETE FROM telemetry_events WHERE (day, install_hash, id) IN
		(SELECT day, install_hash, id FROM telemetry_events WHERE install_hash = $1 AND day IN `+list(len(args)-2, 3)+` LIMIT $2)`, args...)
	if err != nil {
		return 0, fmt.Errorf("deleting events: %w", err)
	}
	return n, nil
}

// SweepTelemetry looks at two days more than before: an event may have come a day before it says it happened.
func (s *Store) SweepTelemetry(ctx context.Context, before int64, limit int) (int64, error) {
	n, err := s.deleteRows(ctx, `DELETE FROM telemetry_events WHERE (day, install_hash, id) IN
		(SELECT day, install_hash, id FROM telemetry_events WHERE day <= $1 AND (at < $2 OR received_at < $2) ORDER BY day LIMIT $3)`,
		telemetry.DayOf(before)+2, before, limit)
	if err != nil {
		return 0, fmt.Errorf("deleting old events: %w", err)
	}
	return n, nil
}
