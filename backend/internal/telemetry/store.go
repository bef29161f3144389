package telemetry

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/db"
)

// Store stores usage events. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// AddTelemetry inserts the new records and returns their number.
func (s *Store) AddTelemetry(ctx context.Context, b Batch) (fresh int64, err error) {
	n := len(b.Records)
	days, ats, ids := make([]int64, n), make([]int64, n), make([]int64, n)
	names, fields := make([]string, n), make([]string, n)
	for i := range b.Records {
		r := &b.Records[i]
		days[i], ats[i], ids[i] = Day(r), Hour(r.At), Key(r)
		names[i], fields[i] = r.Name, string(r.Fields)
	}
	err = s.Write(ctx, func(tx *sql.Tx) error {
		fresh, err = s.Bulk(tx).Insert(ctx, "insert events", "telemetry_events", " ON CONFLICT DO NOTHING", n,
			db.Col("day", days), db.Col("install_hash", int64(b.Install)), db.Col("id", ids), db.Col("at", ats),
			db.Col("received_at", db.ToMS(b.ReceivedAt)), db.Col("name", names), db.Col("fields", fields))
		return err
	})
	if err != nil {
		return 0, err
	}
	return fresh, nil
}

// Summary counts events of one kind.
type Summary struct {
	Day                    time.Time
	Name                   string
	Tool, Outcome, Version string // empty if the event has no such field
	Events, Installs       int64
}

// SummariseTelemetry counts the events at or after from by day, name, tool, outcome and version of the service, newest
// day first. It reads every event of these days.
func (s *Store) SummariseTelemetry(ctx context.Context, from time.Time) ([]Summary, error) {
	field := func(name string) string {
		if s.Postgres() {
			return "COALESCE(fields::json ->> '" + name + "', '')"
		}
		return "COALESCE(fields ->> '" + name + "', '')"
	}
	return db.All(ctx, s, func(row db.Row) (one Summary, err error) {
		var day int64
		err = row.Scan(&day, &one.Name, &one.Tool, &one.Outcome, &one.Version, &one.Events, &one.Installs)
		one.Day = time.Unix(day*secondsOfDay, 0).UTC()
		return one, err
	}, `SELECT day, name, `+field("tool")+` AS tool, `+field("outcome")+` AS outcome, `+field("version")+` AS version,
			COUNT(*) AS events, COUNT(DISTINCT install_hash)
		FROM telemetry_events WHERE day >= $1 GROUP BY 1, 2, 3, 4, 5
		ORDER BY day DESC, events DESC, name, tool, outcome, version`, DayOf(from.UnixMilli()))
}

// TelemetryOfDay counts the events of an install on a day, up to limit.
func (s *Store) TelemetryOfDay(ctx context.Context, of Install, day int64, limit int) (int, error) {
	return db.QueryValue[int](ctx, s, `SELECT COUNT(*) FROM
		(SELECT 1 FROM telemetry_events WHERE day = $1 AND install_hash = $2 LIMIT $3) AS held`, day, int64(of), limit)
}

// TelemetryRows returns the number of events. It reads a whole index.
func (s *Store) TelemetryRows(ctx context.Context) (int64, error) {
	return db.QueryValue[int64](ctx, s, "SELECT COUNT(*) FROM telemetry_events")
}

// PurgeTelemetry deletes up to limit events of an install and returns the number of deleted events. The query lists the
// days, because the key starts with the day.
func (s *Store) PurgeTelemetry(
	ctx context.Context, of Install, from, to int64, limit int,
) (int64, error) {
	args := []any{int64(of), limit}
	for day := from; day <= to; day++ {
		args = append(args, day)
	}
	return s.Exec(ctx, "delete events", `DELETE FROM telemetry_events WHERE (day, install_hash, id) IN
		(SELECT day, install_hash, id FROM telemetry_events
			WHERE install_hash = $1 AND day IN `+db.Placeholders(len(args)-2, 3)+` LIMIT $2)`, args...)
}

// SweepTelemetry deletes up to limit events from before an hour and returns the number of deleted events. It examines
// two more days, because an event may arrive a day before its own time.
func (s *Store) SweepTelemetry(ctx context.Context, before int64, limit int) (int64, error) {
	return s.Exec(ctx, "delete old events", `DELETE FROM telemetry_events WHERE (day, install_hash, id) IN
		(SELECT day, install_hash, id FROM telemetry_events WHERE day <= $1 AND (at < $2 OR received_at < $2)
			ORDER BY day LIMIT $3)`, DayOf(before)+2, before, limit)
}
