package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/service-dev/service/backend/internal/analytics"
)

// AnalyticsSums gives totals by hour or day, and of the other kinds the sums over the range, at At 0.
func (s *Store) AnalyticsSums(ctx context.Context, account, project string, span analytics.Span, from, to int64) ([]analytics.Sum, error) {
	const of = ` FROM analytics_sums s JOIN analytics_projects p ON p.id = s.project
		WHERE p.account_id = $1 AND p.app_id = $2 AND s.span = $3 AND s.at >= $4 AND s.at < $5`
	rows, err := s.reads.QueryContext(ctx, `SELECT s.at, s.kind, s.name, s.n`+of+` AND s.kind = 0
		UNION ALL SELECT 0, s.kind, s.name, CAST(SUM(s.n) AS BIGINT)`+of+` AND s.kind > 0 GROUP BY s.kind, s.name`,
		account, project, int64(span), from, to)
	if err != nil {
		return nil, fmt.Errorf("reading sums: %w", err)
	}
	defer rows.Close()
	var all []analytics.Sum
	for rows.Next() {
		one := analytics.Sum{Slot: analytics.Slot{Moment: analytics.Moment{Span: span}}}
		if err := rows.Scan(&one.At, &one.Kind, &one.Name, &one.N); err != nil {
			return nil, fmt.Errorf("reading sums: %w", err)
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

// SweepAnalytics deletes salts first: from then on no hash of that day can be made again.
func (s *Store) SweepAnalytics(ctx context.Context, old analytics.Horizon, limit int) (more bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		left := int64(limit)
		for _, step := range []struct {
			statement string
			before    int64
		}{
			{`DELETE FROM analytics_salts WHERE day IN (SELECT day FROM analytics_salts WHERE day < $1 LIMIT $2)`, old.Day},
			{`DELETE FROM analytics_installs WHERE (project, day, hash) IN (SELECT i.project, i.day, i.hash FROM analytics_projects p
				JOIN analytics_installs i ON i.project = p.id WHERE i.day < $1 LIMIT $2)`, old.Day},
			{`DELETE FROM analytics_seen WHERE (project, hash) IN (SELECT project, hash FROM analytics_seen WHERE day < $1 LIMIT $2)`, old.Day},
			{`DELETE FROM analytics_sums WHERE span = 0 AND (project, at, kind, name) IN (SELECT s.project, s.at, s.kind, s.name FROM analytics_projects p
				JOIN analytics_sums s ON s.project = p.id WHERE s.span = 0 AND s.at < $1 LIMIT $2)`, old.Hour},
		} {
			if left == 0 {
				break
			}
			result, err := tx.ExecContext(ctx, step.statement, step.before, left)
			if err != nil {
				return fmt.Errorf("deleting old rows: %w", err)
			}
			n, err := result.RowsAffected()
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

// mergeAnalytics moves what was counted for from to into, both projects of the account: sums are added, ids and installs
// are united. Active installs of days whose hashes are gone are added, which counts an install of both twice.
func mergeAnalytics(ctx context.Context, tx *sql.Tx, account, from, into string) error {
	// Both rows are locked in the order of the ids, as CountAnalytics does.
	ids := map[string]int64{}
	for _, project := range slices.Sorted(slices.Values([]string{from, into})) {
		id, _, _, err := lockAnalytics(ctx, tx, account, project)
		if errors.Is(err, analytics.ErrNoProject) {
			return nil // nothing was counted there, or nothing can be
		}
		if err != nil {
			return err
		}
		ids[project] = id
	}
	for _, statement := range []string{
		`INSERT INTO analytics_seen (project, hash, day) SELECT CAST($2 AS BIGINT), hash, day FROM analytics_seen WHERE project = $1
			ON CONFLICT (project, hash) DO NOTHING`,
		`INSERT INTO analytics_sums (project, span, at, kind, name, n) SELECT CAST($2 AS BIGINT), span, at, kind, name, n FROM analytics_sums WHERE project = $1
			ON CONFLICT (project, span, at, kind, name) DO UPDATE SET n = analytics_sums.n + excluded.n`,
		`INSERT INTO analytics_installs (project, day, hash, hours, weight) SELECT CAST($2 AS BIGINT), day, hash, hours, weight FROM analytics_installs WHERE project = $1
			ON CONFLICT (project, day, hash) DO UPDATE SET hours = analytics_installs.hours | excluded.hours,
			weight = CASE WHEN excluded.weight < analytics_installs.weight THEN excluded.weight ELSE analytics_installs.weight END`,
	} {
		if _, err := tx.ExecContext(ctx, statement, ids[from], ids[into]); err != nil {
			return fmt.Errorf("merging analytics: %w", err)
		}
	}
	if err := recountInstalls(ctx, tx, ids[into]); err != nil {
		return fmt.Errorf("counting installs again: %w", err)
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM analytics_projects WHERE id = $1`, ids[from]); err != nil {
		return fmt.Errorf("deleting merged analytics: %w", err)
	}
	return nil
}

// recountInstalls counts the active installs of the days that still have a salt, and so all of their hashes.
func recountInstalls(ctx context.Context, tx *sql.Tx, project int64) error {
	const live = `day IN (SELECT day FROM analytics_salts)`
	_, err := tx.ExecContext(ctx, `DELETE FROM analytics_sums WHERE project = $1 AND kind = 0 AND name = $2 AND
		(span = 1 AND at IN (SELECT day FROM analytics_salts) OR span = 0 AND at / 24 IN (SELECT day FROM analytics_salts))`,
		project, analytics.TotalInstalls)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO analytics_sums (project, span, at, kind, name, n)
		SELECT project, 1, day, 0, $2, SUM(weight) FROM analytics_installs WHERE project = $1 AND `+live+` GROUP BY project, day`,
		project, analytics.TotalInstalls)
	if err != nil {
		return err
	}
	for hour := range int64(24) {
		_, err = tx.ExecContext(ctx, `INSERT INTO analytics_sums (project, span, at, kind, name, n)
			SELECT project, 0, day * 24 + $3, 0, $2, SUM(weight) FROM analytics_installs
			WHERE project = $1 AND hours & $4 <> 0 AND `+live+` GROUP BY project, day`,
			project, analytics.TotalInstalls, hour, int64(1)<<hour)
		if err != nil {
			return err
		}
	}
	return nil
}
