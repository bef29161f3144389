package analytics

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"github.com/service-dev/service/backend/internal/db"
)

// AnalyticsCounters returns the counters of one span in the range [from, until). KindTotal has one counter per
// period; the other kinds are summed over the range, with At 0. If filter is not zero, it returns the sums of the
// slices that the filter selects.
func (s *Store) AnalyticsCounters(
	ctx context.Context, account, project string, span Span, from, to int64, filter Slice,
) ([]Counter, error) {
	args := []any{account, project, int64(span), from, to}
	table, condition := "analytics_sums", ""
	if filter != (Slice{}) {
		table = "analytics_slices"
	}
	for _, part := range []struct{ column, value string }{{"version", filter.Version}, {"platform", filter.Platform}} {
		if part.value != "" {
			args = append(args, part.value)
			condition += " AND s." + part.column + " = $" + strconv.Itoa(len(args))
		}
	}
	inRange := ` FROM ` + table + ` s JOIN analytics_projects p ON p.id = s.project
		WHERE p.account_id = $1 AND p.app_id = $2 AND s.span = $3 AND s.at >= $4 AND s.at < $5` + condition
	counters, err := db.All(ctx, s, func(row db.Row) (Counter, error) {
		c := Counter{CounterKey: CounterKey{Period: Period{Span: span}}}
		err := row.Scan(&c.At, &c.Kind, &c.Name, &c.N)
		return c, err
	}, `SELECT s.at, s.kind, s.name, CAST(SUM(s.n) AS BIGINT)`+inRange+` AND s.kind = 0 GROUP BY s.at, s.kind, s.name
		UNION ALL SELECT 0, s.kind, s.name, CAST(SUM(s.n) AS BIGINT)`+inRange+` AND s.kind > 0 GROUP BY s.kind, s.name`,
		args...)
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	return counters, nil
}

// AnalyticsSlices returns the KindTotal counters of each slice, summed over the range, with At 0.
func (s *Store) AnalyticsSlices(
	ctx context.Context, account, project string, span Span, from, to int64,
) ([]Counter, error) {
	counters, err := db.All(ctx, s, func(row db.Row) (Counter, error) {
		c := Counter{CounterKey: CounterKey{Period: Period{Span: span}}}
		err := row.Scan(&c.Slice.Version, &c.Slice.Platform, &c.Name, &c.N)
		return c, err
	}, `SELECT s.version, s.platform, s.name, CAST(SUM(s.n) AS BIGINT)
		FROM analytics_slices s JOIN analytics_projects p ON p.id = s.project
		WHERE p.account_id = $1 AND p.app_id = $2 AND s.span = $3 AND s.at >= $4 AND s.at < $5 AND s.kind = 0
		GROUP BY s.version, s.platform, s.name`, account, project, int64(span), from, to)
	if err != nil {
		return nil, fmt.Errorf("read counters by version and platform: %w", err)
	}
	return counters, nil
}

// SweepAnalytics deletes data older than before. It deletes salts first, because without a day's salt the
// day's hashes cannot be computed again.
func (s *Store) SweepAnalytics(ctx context.Context, before Cutoff, limit int) (more bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		left := int64(limit)
		for _, step := range []struct {
			statement string
			before    int64
		}{
			{`DELETE FROM analytics_salts WHERE day IN (SELECT day FROM analytics_salts WHERE day < $1 LIMIT $2)`, before.Day},
			{`DELETE FROM analytics_installs WHERE (project, day, hash) IN
				(SELECT project, day, hash FROM analytics_installs WHERE day < $1 LIMIT $2)`, before.Day},
			{`DELETE FROM analytics_seen WHERE (project, hash) IN
				(SELECT project, hash FROM analytics_seen WHERE day < $1 LIMIT $2)`, before.Day},
			{`DELETE FROM analytics_sums WHERE span = 0 AND (project, at, kind, name) IN
				(SELECT project, at, kind, name FROM analytics_sums WHERE span = 0 AND at < $1 LIMIT $2)`, before.Hour},
			{`DELETE FROM analytics_slices WHERE span = 0 AND (project, at, kind, version, platform, name) IN
				(SELECT project, at, kind, version, platform, name FROM analytics_slices
				WHERE span = 0 AND at < $1 LIMIT $2)`, before.Hour},
		} {
			if left == 0 {
				break
			}
			n, err := db.ExecCount(ctx, tx, "delete old rows", step.statement, step.before, left)
			if err != nil {
				return err
			}
			left -= n
		}
		more = left == 0
		return nil
	})
	return more, err
}

// LockProjects locks the analytics of two projects in ID order, like CountAnalytics, and returns their numbers.
func LockProjects(ctx context.Context, tx *sql.Tx, account, one, other string) (map[string]int64, error) {
	numbers := map[string]int64{}
	for _, project := range slices.Sorted(slices.Values([]string{one, other})) {
		number, _, _, err := lockAnalytics(ctx, tx, account, project)
		if err != nil {
			return nil, err
		}
		numbers[project] = number
	}
	return numbers, nil
}

// Merge moves the counts of one project of the account to another. It adds counters, and merges IDs and installs. For
// days whose hashes were deleted, it adds the numbers of active installs, so an install of both projects is counted
// twice. The caller must hold the locks of both projects.
func Merge(ctx context.Context, tx *sql.Tx, from, into int64) error {
	err := db.ExecAll(ctx, tx, "merge analytics",
		db.Stmt(`INSERT INTO analytics_seen (project, hash, day)
			SELECT CAST($2 AS BIGINT), hash, day FROM analytics_seen WHERE project = $1
			ON CONFLICT (project, hash) DO NOTHING`, from, into),
		db.Stmt(`INSERT INTO analytics_sums (project, span, at, kind, name, n)
			SELECT CAST($2 AS BIGINT), span, at, kind, name, n FROM analytics_sums WHERE project = $1
			ON CONFLICT (project, span, at, kind, name) DO UPDATE SET n = analytics_sums.n + excluded.n`, from, into),
		db.Stmt(`INSERT INTO analytics_slices (project, span, at, kind, version, platform, name, n)
			SELECT CAST($2 AS BIGINT), span, at, kind, version, platform, name, n FROM analytics_slices WHERE project = $1
			ON CONFLICT (project, span, at, kind, version, platform, name)
			DO UPDATE SET n = analytics_slices.n + excluded.n`, from, into),
		db.Stmt(`INSERT INTO analytics_installs (project, day, hash, hours, weight)
			SELECT CAST($2 AS BIGINT), day, hash, hours, weight FROM analytics_installs WHERE project = $1
			ON CONFLICT (project, day, hash) DO UPDATE SET hours = analytics_installs.hours | excluded.hours,
			weight = CASE WHEN excluded.weight < analytics_installs.weight THEN excluded.weight
				ELSE analytics_installs.weight END`, from, into))
	if err != nil {
		return err
	}
	if err := recountInstalls(ctx, tx, into); err != nil {
		return err
	}
	return db.Exec(ctx, tx, "delete merged analytics", `DELETE FROM analytics_projects WHERE id = $1`, from)
}

// recountInstalls counts the active installs of the days that still have a salt and therefore all of their hashes.
func recountInstalls(ctx context.Context, tx *sql.Tx, project int64) error {
	const live = `day IN (SELECT day FROM analytics_salts)`
	statements := []db.Statement{
		db.Stmt(`DELETE FROM analytics_sums WHERE project = $1 AND kind = 0 AND name = $2 AND
			(span = 1 AND at IN (SELECT day FROM analytics_salts) OR span = 0 AND at / 24 IN (SELECT day FROM analytics_salts))`,
			project, TotalInstalls),
		db.Stmt(`INSERT INTO analytics_sums (project, span, at, kind, name, n)
			SELECT project, 1, day, 0, $2, SUM(weight) FROM analytics_installs
			WHERE project = $1 AND `+live+` GROUP BY project, day`, project, TotalInstalls),
	}
	for hour := range int64(24) {
		statements = append(statements, db.Stmt(`INSERT INTO analytics_sums (project, span, at, kind, name, n)
			SELECT project, 0, day * 24 + $3, 0, $2, SUM(weight) FROM analytics_installs
			WHERE project = $1 AND hours & $4 <> 0 AND `+live+` GROUP BY project, day`,
			project, TotalInstalls, hour, int64(1)<<hour))
	}
	return db.ExecAll(ctx, tx, "recount installs", statements...)
}
