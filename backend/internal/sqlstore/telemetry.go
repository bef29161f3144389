package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/service-dev/service/backend/internal/telemetry"
)

// AddTelemetry inserts the new records and returns their number. It uses the fastest method of each engine: COPY on
// PostgreSQL, and one statement per row on SQLite, where a single statement with many values is slower.
func (s *Store) AddTelemetry(ctx context.Context, b telemetry.Batch) (fresh int, err error) {
	if s.batches == nil {
		err := s.retry(ctx, func() error { return s.copyTelemetry(ctx, &b) })
		switch {
		case isDuplicate(err): // COPY inserts either all rows or none
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
	insert, err := tx.PrepareContext(ctx, `INSERT INTO telemetry_events
			(day, install_hash, id, at, received_at, name, fields)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`)
	if err != nil {
		return 0, fmt.Errorf("prepare insertion of events: %w", err)
	}
	defer insert.Close()
	install, received := int64(b.Install), toMS(b.ReceivedAt)
	for i := range b.Records {
		r := &b.Records[i]
		result, err := insert.ExecContext(ctx, telemetry.Day(r), install, telemetry.Key(r), telemetry.Hour(r.At), received,
			r.Name, string(r.Fields))
		n, err := rowsChanged(result, err, "insert events")
		if err != nil {
			return 0, err
		}
		fresh += int(n)
	}
	return fresh, nil
}

// copyTelemetry inserts all records, or none if one of them already exists.
func (s *Store) copyTelemetry(ctx context.Context, b *telemetry.Batch) error {
	conn, err := s.writes.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	install, received := int64(b.Install), toMS(b.ReceivedAt)
	rows := pgx.CopyFromSlice(len(b.Records), func(i int) ([]any, error) {
		r := &b.Records[i]
		return []any{telemetry.Day(r), install, telemetry.Key(r), telemetry.Hour(r.At), received, r.Name, string(r.Fields)},
			nil
	})
	err = conn.Raw(func(c any) error {
		_, err := c.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{"telemetry_events"},
			[]string{"day", "install_hash", "id", "at", "received_at", "name", "fields"}, rows)
		return err
	})
	if err != nil {
		return fmt.Errorf("copy events: %w", err)
	}
	return nil
}

// addTelemetryAtOnce inserts the records that do not exist yet, with a single statement on PostgreSQL.
func (s *Store) addTelemetryAtOnce(ctx context.Context, b *telemetry.Batch) (int, error) {
	n := len(b.Records)
	days, ats, ids := make([]int64, n), make([]int64, n), make([]int64, n)
	names, fields := make([]string, n), make([]string, n)
	for i := range b.Records {
		r := &b.Records[i]
		days[i], ats[i], ids[i] = telemetry.Day(r), telemetry.Hour(r.At), telemetry.Key(r)
		names[i], fields[i] = r.Name, string(r.Fields)
	}
	fresh, err := s.exec(ctx, "insert events", `INSERT INTO telemetry_events
			(day, install_hash, id, at, received_at, name, fields)
		SELECT e.day, $1, e.id, e.at, $2, e.name, e.fields
		FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[]) AS e (day, id, at, name, fields)
		ON CONFLICT DO NOTHING`,
		int64(b.Install), toMS(b.ReceivedAt), days, ids, ats, names, fields)
	return int(fresh), err
}

// TelemetryOfDay counts the events of an install on a day, up to limit.
func (s *Store) TelemetryOfDay(ctx context.Context, of telemetry.Install, day int64, limit int) (int, error) {
	return queryValue[int](ctx, s.reads, `SELECT COUNT(*) FROM
		(SELECT 1 FROM telemetry_events WHERE day = $1 AND install_hash = $2 LIMIT $3) AS held`, day, int64(of), limit)
}

// TelemetryRows returns the number of events. It reads a whole index.
func (s *Store) TelemetryRows(ctx context.Context) (int64, error) {
	return queryValue[int64](ctx, s.reads, "SELECT COUNT(*) FROM telemetry_events")
}

// PurgeTelemetry deletes up to limit events of an install and returns the number of deleted events. The query lists the
// days, because the key starts with the day.
func (s *Store) PurgeTelemetry(
	ctx context.Context, of telemetry.Install, from, to int64, limit int,
) (int64, error) {
	args := []any{int64(of), limit}
	for day := from; day <= to; day++ {
		args = append(args, day)
	}
	return s.exec(ctx, "delete events", `DELETE FROM telemetry_events WHERE (day, install_hash, id) IN
		(SELECT day, install_hash, id FROM telemetry_events
			WHERE install_hash = $1 AND day IN `+placeholders(len(args)-2, 3)+` LIMIT $2)`, args...)
}

// SweepTelemetry deletes up to limit events from before an hour and returns the number of deleted events. It examines
// two more days, because an event may arrive a day before its own time.
func (s *Store) SweepTelemetry(ctx context.Context, before int64, limit int) (int64, error) {
	return s.exec(ctx, "delete old events", `DELETE FROM telemetry_events WHERE (day, install_hash, id) IN
		(SELECT day, install_hash, id FROM telemetry_events WHERE day <= $1 AND (at < $2 OR received_at < $2)
			ORDER BY day LIMIT $3)`, telemetry.DayOf(before)+2, before, limit)
}
